//! Decides when and in which order awty inspects databases. An inspection finds out whether awty is installed in a
//! database.
//!
//! Invariant: awty inspects each database once after it appears, and inspects a database with awty again within
//! [`AUDIT`]. Due databases with awty come first, unless another database has been due for [`AFTER_KNOWN`] longer.

use crate::Mono;
use std::collections::BTreeMap;
use std::time::Duration;

/// This much time passes between two inspections of a database with awty, and between two reads of the list of
/// databases.
pub const AUDIT: Duration = Duration::from_secs(60);
/// An inspection that failed or found an outdated extension is repeated after this time, because no event announces
/// that the extension was updated.
pub const SOON: Duration = Duration::from_secs(5);
/// An inspection is repeated after this time if no process was free, or if a command such as DROP DATABASE needed the
/// database.
pub const LATER: Duration = Duration::from_secs(1);
/// Databases that may lack awty are sorted as if they became due this much later, because each inspection costs about
/// 10 ms of CPU.
pub const AFTER_KNOWN: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    Nothing,
    Awty,
    /// The database has another version of awty, or the inspection failed.
    Unclear,
}

/// Holds the time of each database's next inspection. `K` identifies a database.
#[derive(Debug)]
pub struct Inspections<K> {
    /// `None` means that the database has no awty, so it needs no inspection.
    at: BTreeMap<K, Option<Mono>>,
    listed: Option<Mono>,
}

impl<K: Copy + Ord> Default for Inspections<K> {
    fn default() -> Self {
        Self { at: BTreeMap::new(), listed: None }
    }
}

impl<K: Copy + Ord> Inspections<K> {
    /// Makes the inspection of every database due. The list of databases must then be read again.
    pub fn all_due(&mut self) {
        *self = Self::default();
    }

    pub fn wants_list(&self, now: Mono) -> bool {
        self.listed.is_none_or(|listed| now >= listed.plus(AUDIT))
    }

    /// Records the list of databases, and makes the inspection of new databases due.
    pub fn list(&mut self, present: &[K], now: Mono) {
        self.at.retain(|key, _| present.contains(key));
        for key in present {
            self.at.entry(*key).or_insert(Some(now));
        }
        self.listed = Some(now);
    }

    /// Records the result of an inspection. The database stays due if a caller has requested another inspection
    /// meanwhile.
    pub fn returned(&mut self, key: K, found: Finding, now: Mono) {
        if found == Finding::Unclear {
            self.listed = None;
        }
        // A database that no longer allows connections is missing from the list.
        let Some(at) = self.at.get(&key) else { return };
        if at.is_none_or(|at| at > now) {
            let next = match found {
                Finding::Nothing => None,
                Finding::Awty => Some(now.plus(AUDIT)),
                Finding::Unclear => Some(now.plus(SOON)),
            };
            self.at.insert(key, next);
        }
    }

    /// Makes an inspection of the database due now.
    pub fn ask(&mut self, key: K, now: Mono) {
        self.at.insert(key, Some(now));
    }

    pub fn started(&mut self, key: K, now: Mono) {
        self.at.insert(key, Some(now.plus(AUDIT)));
    }

    /// Delays the next inspection by [`LATER`].
    pub fn put_off(&mut self, key: K, now: Mono) {
        self.at.insert(key, Some(now.plus(LATER)));
    }

    /// Returns the due databases in the order of their inspection, and the time until another database becomes due.
    pub fn due(&self, now: Mono, is_known: impl Fn(K) -> bool) -> (Vec<K>, Duration) {
        let mut due = Vec::new();
        let mut next = AUDIT;
        for (key, at) in self.at.iter().filter_map(|(key, at)| Some((*key, (*at)?))) {
            if at > now {
                next = next.min(at.since(now));
            } else {
                due.push((if is_known(key) { at } else { at.plus(AFTER_KNOWN) }, key));
            }
        }
        due.sort_unstable();
        (due.into_iter().map(|(_, key)| key).collect(), next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{START, after};

    #[test]
    fn those_with_awty_come_first_and_the_others_before_long() {
        let mut inspections = Inspections::default();
        assert!(inspections.wants_list(START));
        inspections.list(&[1, 2, 3], START);
        assert!(!inspections.wants_list(after(59)) && inspections.wants_list(after(60)));
        assert_eq!(inspections.due(START, |key| key == 3).0, [3, 1, 2]);
        inspections.started(3, START);
        inspections.returned(3, Finding::Awty, START);
        inspections.ask(3, after(11));
        assert_eq!(inspections.due(after(11), |key| key == 3).0, [1, 2, 3]);
    }

    #[test]
    fn a_database_that_leaves_the_list_during_its_inspection_is_new_later() {
        let mut inspections = Inspections::default();
        inspections.list(&[1, 2], START);
        inspections.started(1, START);
        inspections.list(&[2], after(1));
        inspections.returned(1, Finding::Nothing, after(2));
        inspections.list(&[1, 2], after(61));
        assert!(inspections.due(after(61), |_| true).0.contains(&1));
    }

    #[test]
    fn where_awty_is_not_nobody_comes_again_until_asked() {
        let mut inspections = Inspections::default();
        inspections.list(&[1], START);
        inspections.started(1, START);
        inspections.returned(1, Finding::Nothing, START);
        assert_eq!(inspections.due(after(1000), |_| true), (vec![], AUDIT));
        inspections.ask(1, after(1000));
        assert_eq!(inspections.due(after(1000), |_| true).0, [1]);
    }

    #[test]
    fn one_that_was_asked_for_meanwhile_stays_due() {
        let mut inspections = Inspections::default();
        inspections.list(&[1], START);
        inspections.started(1, START);
        inspections.ask(1, after(1));
        inspections.returned(1, Finding::Awty, after(2));
        assert_eq!(inspections.due(after(2), |_| true).0, [1]);
    }

    #[test]
    fn one_that_failed_comes_soon_and_has_the_list_read() {
        let mut inspections = Inspections::default();
        inspections.list(&[1], START);
        inspections.started(1, START);
        inspections.returned(1, Finding::Unclear, after(1));
        assert!(inspections.wants_list(after(1)));
        assert_eq!(inspections.due(after(1), |_| true), (vec![], SOON));
    }
}
