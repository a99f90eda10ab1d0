//! Records what each external worker does with its leases (promise P14 in docs/promises.md). The ledger is outside of
//! the database, so that a crash loses no line.
//!
//! Invariant: a worker writes a line when it gets a lease, and again before it acts, answers or gives the lease back.

use crate::checker::Time;
use std::collections::BTreeMap;
use std::time::Instant;

#[derive(Clone, Debug)]
pub struct Work {
    pub check: i64,
    /// The check's id and `scheduled_at` together identify the check, because a promoted standby may give the id to a
    /// new check.
    pub scheduled_at: Time,
    pub check_count: i32,
    pub key: String,
    pub at_most_once: bool,
    /// `leased_at`, `expires_at` and `deadline` are times of the server's clock.
    pub leased_at: Time,
    pub expires_at: Time,
    pub deadline: Time,
    pub claimed: Instant,
    pub let_go: Option<Instant>,
    pub acted: bool,
    /// The value of `Shared::epoch` when the worker claimed the check.
    pub epoch: u64,
}

impl Work {
    fn is_over_for(&self, next: &Work) -> bool {
        next.leased_at >= self.expires_at || self.let_go.is_some_and(|at| at <= next.claimed)
    }
}

pub fn faults(ledger: &[Work], clock_was_set: bool) -> Vec<(i64, String)> {
    let mut faults = Vec::new();
    let mut of_piece: BTreeMap<(i64, Time, i32), &str> = BTreeMap::new();
    let mut of_key: BTreeMap<&str, (i64, Time, i32)> = BTreeMap::new();
    let mut acted: BTreeMap<(u64, &str), u32> = BTreeMap::new();
    let mut of_check: BTreeMap<(u64, i64, Time), Vec<&Work>> = BTreeMap::new();
    for work in ledger {
        let piece = (work.check, work.scheduled_at, work.check_count);
        if *of_piece.entry(piece).or_insert(&work.key) != work.key {
            faults.push((work.check, format!("another key than before: {work:?}")));
        }
        if *of_key.entry(&work.key).or_insert(piece) != piece {
            faults.push((work.check, format!("the key of another piece of work: {work:?}")));
        }
        if work.at_most_once && work.acted {
            let times = acted.entry((work.epoch, &work.key)).or_default();
            *times += 1;
            if *times == 2 {
                faults.push((work.check, format!("done twice, which may be done once: {work:?}")));
            }
        }
        of_check.entry((work.epoch, work.check, work.scheduled_at)).or_default().push(work);
    }
    for mut works in of_check.into_values().filter(|_| !clock_was_set) {
        works.sort_by_key(|work| work.leased_at);
        for (place, next) in works.iter().enumerate() {
            if let Some(other) = works[..place].iter().find(|other| !other.is_over_for(next)) {
                faults.push((next.check, format!("leased to two at a time: {other:?} and {next:?}")));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn ledger() -> Vec<Work> {
        let (at, now) = (Time::UNIX_EPOCH, Instant::now());
        let second = Duration::from_secs(1);
        let work = Work {
            check: 7,
            scheduled_at: at,
            check_count: 0,
            key: "K".into(),
            at_most_once: false,
            leased_at: at,
            expires_at: at + second,
            deadline: at + second * 4,
            claimed: now,
            let_go: None,
            acted: true,
            epoch: 0,
        };
        let next = Work {
            leased_at: at + second,
            expires_at: at + second * 2,
            claimed: now + second,
            let_go: Some(now + second * 2),
            ..work.clone()
        };
        vec![work, next]
    }

    fn said(change: impl FnOnce(&mut Vec<Work>)) -> Vec<String> {
        let mut ledger = ledger();
        change(&mut ledger);
        faults(&ledger, false).into_iter().map(|(_, what)| what.split(':').next().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_ledger_that_keeps_the_promise_is_passed() {
        assert!(said(|_| {}).is_empty());
        assert!(
            said(|works| (works[0].expires_at, works[0].let_go) = (works[0].deadline, Some(works[1].claimed)))
                .is_empty()
        );
        assert!(said(|works| (works[1].check_count, works[1].key) = (1, "L".into())).is_empty());
        assert!(
            said(|works| works
                .iter_mut()
                .enumerate()
                .for_each(|(n, work)| (work.at_most_once, work.epoch) = (true, n as u64)))
            .is_empty()
        );
    }

    #[test]
    fn each_way_to_break_it_is_found() {
        let two = ["leased to two at a time"];
        assert_eq!(said(|works| works[0].expires_at = works[0].deadline), two);
        assert_eq!(said(|works| (works[0].expires_at, works[0].let_go) = (works[0].deadline, works[1].let_go)), two);
        assert_eq!(said(|works| works[1].key = "L".into()), ["another key than before"]);
        assert_eq!(said(|works| works[1].check = 8), ["the key of another piece of work"]);
        assert_eq!(said(|works| works[1].check_count = 1), ["the key of another piece of work"]);
        assert_eq!(
            said(|works| works.iter_mut().for_each(|work| work.at_most_once = true)),
            ["done twice, which may be done once"]
        );
    }
}
