//! Statuses that count as success: `200-299`, `200,202,300-304`.

use serde::{Deserialize, Deserializer};
use std::str::FromStr;

/// Ranges of statuses, both ends included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranges(Vec<(u16, u16)>);

const MOST: usize = 20;

impl Ranges {
    /// Whether a range contains the status.
    pub fn contains(&self, status: u16) -> bool {
        self.0.iter().any(|(from, to)| (*from..=*to).contains(&status))
    }
}

impl Default for Ranges {
    fn default() -> Self {
        Ranges(vec![(200, 299)])
    }
}

impl FromStr for Ranges {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let status = |text: &str| text.trim().parse::<u16>().ok().filter(|status| (100..=599).contains(status));
        let range = |text: &str| match text.split_once('-') {
            Some((from, to)) => status(from).zip(status(to)).filter(|(from, to)| from <= to),
            None => status(text).map(|one| (one, one)),
        };
        let ranges: Option<Vec<_>> = text.split(',').take(MOST + 1).map(range).collect();
        let ranges = ranges.filter(|ranges| ranges.len() <= MOST);
        ranges.map(Ranges).ok_or_else(|| "success is no list of statuses; write 200-299 or 200,202".into())
    }
}

impl<'de> Deserialize<'de> for Ranges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_both_ends() {
        let ranges: Ranges = "200, 202-204,404".parse().unwrap();
        let held: Vec<u16> = (100..600).filter(|status| ranges.contains(*status)).collect();
        assert_eq!(held, [200, 202, 203, 204, 404]);
    }

    #[test]
    fn what_is_no_status_is_refused() {
        for text in ["", "2xx", "99", "600", "204-200", "200-", "200,,201", "-1"] {
            assert!(text.parse::<Ranges>().is_err(), "{text}");
        }
        assert!("200,".repeat(MOST + 1).trim_end_matches(',').parse::<Ranges>().is_err());
    }
}
