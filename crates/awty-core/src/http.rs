use crate::label::labels;
use serde::{Deserialize, Deserializer};
use std::str::FromStr;

labels! {
    #[derive(Default)]
    Method for "method" {
        #[default] Post = "POST",
        Get = "GET",
        Head = "HEAD",
        Put = "PUT",
        Patch = "PATCH",
        Delete = "DELETE",
    }
}

/// Headers that only the gateway or the HTTP connection sets. An entry that ends with `-` means all names with this
/// prefix.
pub const RESERVED_HEADERS: &[&str] = &[
    "webhook-",
    "idempotency-key",
    "awty-",
    "user-agent",
    "content-type",
    "host",
    "connection",
    "keep-alive",
    "content-length",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "proxy-",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    Invalid,
    Reserved,
}

pub fn check_header(name: &str) -> Result<(), HeaderError> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(HeaderError::Invalid);
    }
    let name = name.to_ascii_lowercase();
    let is_reserved = |reserved: &&str| name == **reserved || reserved.ends_with('-') && name.starts_with(*reserved);
    if RESERVED_HEADERS.iter().any(is_reserved) { Err(HeaderError::Reserved) } else { Ok(()) }
}

/// HTTP statuses that count as success, for example `200,300-304`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statuses(Vec<(u16, u16)>);

const MAX_RANGES: usize = 20;
const MAX_TEXT: usize = 255;

impl Statuses {
    pub fn contains(&self, status: u16) -> bool {
        self.0.iter().any(|(from, to)| (*from..=*to).contains(&status))
    }
}

impl Default for Statuses {
    fn default() -> Self {
        Statuses(vec![(200, 299)])
    }
}

impl FromStr for Statuses {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let is_status = |text: &str| text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
        let status = |text: &str| {
            let text = Some(text.trim()).filter(|text| is_status(text))?;
            text.parse::<u16>().ok().filter(|status| (100..=599).contains(status))
        };
        let range = |text: &str| match text.split_once('-') {
            Some((from, to)) => status(from).zip(status(to)).filter(|(from, to)| from <= to),
            None => status(text).map(|one| (one, one)),
        };
        let ranges: Option<Vec<_>> = text.split(',').take(MAX_RANGES + 1).map(range).collect();
        let ranges = ranges.filter(|ranges| ranges.len() <= MAX_RANGES && text.len() <= MAX_TEXT);
        ranges.map(Statuses).ok_or("success is no list of statuses; write 200-299 or 200,202")
    }
}

impl<'de> Deserialize<'de> for Statuses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_both_ends() {
        let statuses: Statuses = "200, 202-204,404".parse().unwrap();
        let held: Vec<u16> = (100..600).filter(|status| statuses.contains(*status)).collect();
        assert_eq!(held, [200, 202, 203, 204, 404]);
    }

    #[test]
    fn what_is_no_status_is_refused() {
        for text in ["", "2xx", "99", "600", "204-200", "200-", "200,,201", "-1", "+200", "0200"] {
            assert!(text.parse::<Statuses>().is_err(), "{text}");
        }
        let many = "200,".repeat(MAX_RANGES);
        assert!(many.trim_end_matches(',').parse::<Statuses>().is_ok());
        assert!(format!("{many}200").parse::<Statuses>().is_err());
        assert!(format!("200{}", " ".repeat(MAX_TEXT)).parse::<Statuses>().is_err());
    }

    #[test]
    fn a_user_sets_no_header_of_the_gateway() {
        for (name, refused) in [
            ("X-From", None),
            ("Te-x", None),
            ("webhook", None),
            ("TE", Some(HeaderError::Reserved)),
            ("Webhook-Id", Some(HeaderError::Reserved)),
            ("Proxy-Authorization", Some(HeaderError::Reserved)),
            ("", Some(HeaderError::Invalid)),
            ("a b", Some(HeaderError::Invalid)),
            ("ä", Some(HeaderError::Invalid)),
        ] {
            assert_eq!(check_header(name).err(), refused, "{name}");
        }
    }
}
