//! Decides when awty inspects each database to find out whether the extension awty is installed there.
//!
//! Invariant: each new database is inspected once. A database with awty is inspected again within [`AUDIT`].

use crate::Mono;
use std::collections::BTreeMap;
use std::time::Duration;

pub const AUDIT: Duration = Duration::from_secs(60);
/// A database with an outdated extension is inspected again after this time, because no event announces an update.
pub const SOON: Duration = Duration::from_secs(5);
/// Delay before awty repeats an inspection that found no free process, or that stopped for a DROP DATABASE.
pub const LATER: Duration = Duration::from_secs(1);
/// In the inspection queue, a database that is known to have awty moves ahead by this time.
pub const AFTER_KNOWN: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    Nothing,
    Awty,
    Unclear,
}

#[derive(Debug)]
pub struct Inspections<K> {
    /// Time of each database's next inspection. `None` if the database lacks awty.
    at: BTreeMap<K, Option<Mono>>,
    listed: Option<Mono>,
}

impl<K: Copy + Ord> Default for Inspections<K> {
    fn default() -> Self {
        Self { at: BTreeMap::new(), listed: None }
    }
}

impl<K: Copy + Ord> Inspections<K> {
    pub fn all_due(&mut self) {
        *self = Self::default();
    }

    pub fn wants_list(&self, now: Mono) -> bool {
        self.listed.is_none_or(|listed| now >= listed.plus(AUDIT))
    }

    pub fn list(&mut self, present: &[K], now: Mono) {
        self.at.retain(|key, _| present.contains(key));
        for key in present {
            self.at.entry(*key).or_insert(Some(now));
        }
        self.listed = Some(now);
    }

    /// Keeps the database due if another inspection was requested while the last inspection ran.
    pub fn returned(&mut self, key: K, found: Finding, now: Mono) {
        if found == Finding::Unclear {
            self.listed = None;
        }
        // The list of databases lacks this database, because the database no longer allows connections.
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

    /// A database that is already due keeps its place in the queue. Otherwise, a role that asks for inspections in a
    /// loop would postpone the inspection of its database.
    pub fn ask(&mut self, key: K, now: Mono) {
        let at = self.at.entry(key).or_default();
        *at = Some(at.map_or(now, |at| at.min(now)));
    }

    pub fn started(&mut self, key: K, now: Mono) {
        self.at.insert(key, Some(now.plus(AUDIT)));
    }

    pub fn put_off(&mut self, key: K, now: Mono) {
        self.at.insert(key, Some(now.plus(LATER)));
    }

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
    fn one_that_is_due_keeps_its_place_when_it_is_asked_for_again() {
        let mut inspections = Inspections::default();
        inspections.list(&[1, 2], START);
        for key in [1, 2] {
            inspections.started(key, START);
        }
        inspections.ask(1, after(1));
        inspections.ask(2, after(2));
        inspections.ask(1, after(3));
        assert_eq!(inspections.due(after(3), |_| true).0, [1, 2]);
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
