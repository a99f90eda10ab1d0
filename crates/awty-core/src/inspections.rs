//! When each database is inspected next, and in which order.
//!
//! Invariant: every database is inspected once after it appears, whether awty is there or not. One with awty is inspected again within
//! [`AUDIT`], and on request. Those with awty come before those of which nothing is known, which never wait for that longer than
//! [`AFTER_KNOWN`].
//! Does not: connect to any of them.

use crate::Mono;
use std::collections::BTreeMap;
use std::time::Duration;

/// Between two audits of a database, and between two looks at the list of databases.
pub const AUDIT: Duration = Duration::from_secs(60);
/// Where the extension has to be updated, and nothing tells when it has been; or where the first inspection failed.
pub const SOON: Duration = Duration::from_secs(5);
/// After a database was wanted by DROP DATABASE or the like, or no process was free.
pub const LATER: Duration = Duration::from_secs(1);
/// Databases not known to have awty are inspected this much later. An inspection costs about 10 ms of CPU, and there may be hundreds.
pub const AFTER_KNOWN: Duration = Duration::from_secs(10);

/// What an inspection has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// No awty.
    Nothing,
    /// awty, which runs there, or waits for a word that is announced.
    Awty,
    /// awty of another version, or an inspection that failed.
    Unclear,
}

/// The databases, by a key of the caller's.
#[derive(Debug)]
pub struct Inspections<K> {
    /// When each is inspected next; `None` if awty was not there.
    at: BTreeMap<K, Option<Mono>>,
    /// When the list was last read.
    listed: Option<Mono>,
}

impl<K: Copy + Ord> Default for Inspections<K> {
    fn default() -> Self {
        Self { at: BTreeMap::new(), listed: None }
    }
}

impl<K: Copy + Ord> Inspections<K> {
    /// Every database is due.
    pub fn all_due(&mut self) {
        *self = Self::default();
    }

    /// Is it time to read the list of databases?
    pub fn wants_list(&self, now: Mono) -> bool {
        self.listed.is_none_or(|listed| now >= listed.plus(AUDIT))
    }

    /// Takes in the list: new ones are due, those that are gone are forgotten.
    pub fn list(&mut self, present: &[K], now: Mono) {
        self.at.retain(|key, _| present.contains(key));
        for key in present {
            self.at.entry(*key).or_insert(Some(now));
        }
        self.listed = Some(now);
    }

    /// An inspection is over. One that was asked for meanwhile stays due.
    pub fn returned(&mut self, key: K, found: Found, now: Mono) {
        if found == Found::Unclear {
            // Nobody may have come back because it is gone.
            self.listed = None;
        }
        // A database that left the list meanwhile, because it allows no connections, is new when it is in the list again. Its inspection
        // says nothing about that time.
        let Some(at) = self.at.get(&key) else { return };
        if at.is_none_or(|at| at > now) {
            let next = match found {
                Found::Nothing => None,
                Found::Awty => Some(now.plus(AUDIT)),
                Found::Unclear => Some(now.plus(SOON)),
            };
            self.at.insert(key, next);
        }
    }

    /// One is asked for.
    pub fn ask(&mut self, key: K, now: Mono) {
        self.at.insert(key, Some(now));
    }

    /// One begins.
    pub fn started(&mut self, key: K, now: Mono) {
        self.at.insert(key, Some(now.plus(AUDIT)));
    }

    /// One cannot begin now.
    pub fn put_off(&mut self, key: K, now: Mono) {
        self.at.insert(key, Some(now.plus(LATER)));
    }

    /// Those that are due, in their order, and how long until the next one is. `is_known`: has it awty, as far as is known?
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

    const START: Mono = Mono(5_000_000);

    fn after(seconds: u64) -> Mono {
        START.plus(Duration::from_secs(seconds))
    }

    #[test]
    fn those_with_awty_come_first_and_the_others_before_long() {
        let mut inspections = Inspections::default();
        assert!(inspections.wants_list(START));
        inspections.list(&[1, 2, 3], START);
        assert!(!inspections.wants_list(after(59)) && inspections.wants_list(after(60)));
        assert_eq!(inspections.due(START, |key| key == 3).0, [3, 1, 2]);
        inspections.started(3, START);
        inspections.returned(3, Found::Awty, START);
        inspections.ask(3, after(11));
        assert_eq!(inspections.due(after(11), |key| key == 3).0, [1, 2, 3]);
    }

    /// A database that allows no connections for a while leaves the list during its inspection, which then finds nothing.
    #[test]
    fn a_database_that_leaves_the_list_during_its_inspection_is_new_later() {
        let mut inspections = Inspections::default();
        inspections.list(&[1, 2], START);
        inspections.started(1, START);
        inspections.list(&[2], after(1));
        inspections.returned(1, Found::Nothing, after(2));
        inspections.list(&[1, 2], after(61));
        assert!(inspections.due(after(61), |_| true).0.contains(&1));
    }

    #[test]
    fn where_awty_is_not_nobody_comes_again_until_asked() {
        let mut inspections = Inspections::default();
        inspections.list(&[1], START);
        inspections.started(1, START);
        inspections.returned(1, Found::Nothing, START);
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
        inspections.returned(1, Found::Awty, after(2));
        assert_eq!(inspections.due(after(2), |_| true).0, [1]);
    }

    #[test]
    fn one_that_failed_comes_soon_and_has_the_list_read() {
        let mut inspections = Inspections::default();
        inspections.list(&[1], START);
        inspections.started(1, START);
        inspections.returned(1, Found::Unclear, after(1));
        assert!(inspections.wants_list(after(1)));
        assert_eq!(inspections.due(after(1), |_| true), (vec![], SOON));
    }
}
