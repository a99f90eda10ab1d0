//! Checks awty's tables and most of awty's promises (docs/promises.md).
//!
//! Invariant: the result depends only on [`Evidence`]. Jobs may run while the evidence is read, because the clients'
//! log is copied before the tables are read.

use crate::faults::MAX_CRASHES;
use crate::ledger::{self, Work};
use crate::left::Left;
use crate::repeat::Repeated;
use crate::watched::Watched;
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, BTreeSet};

pub type Time = DateTime<Utc>;

#[derive(Clone, Debug)]
pub struct Effect {
    pub check: i64,
    pub check_count: i32,
    pub slot: Time,
    pub began: Time,
    pub xid: i64,
    pub act: String,
    pub bad: bool,
    /// True if the run removes its own check.
    #[allow(dead_code)] // only `Debug` reads it
    pub own: bool,
    pub committed: Option<Time>,
}

impl Effect {
    fn is_outside(&self) -> bool {
        self.act == "outside"
    }
}

#[derive(Clone, Debug)]
pub struct Pending {
    pub check: i64,
    pub check_count: i32,
    pub attempt: i32,
    pub first_slot: Time,
    /// True if awty itself has put the check on hold, for example after crashes.
    pub held: bool,
    /// True if the test's clients may also change the check's row, for example to hold or move the check.
    pub is_handled: bool,
    pub act: String,
    pub xmin: i64,
}

#[derive(Clone, Debug)]
pub struct Ended {
    pub check: i64,
    pub check_count: i32,
    pub first_slot: Time,
    pub slot: Time,
    pub started: Option<Time>,
    pub outcome: String,
    pub run_time: f64,
    pub attempts: i32,
    pub timeout: Option<f64>,
    pub sqlstate: Option<String>,
    pub message: Option<String>,
    pub xmin: i64,
    pub committed: Option<Time>,
    /// True if the row was later moved to another partition. `xmin` and `committed` then describe the move instead of
    /// the original insertion.
    pub is_moved: bool,
}

#[derive(Clone, Debug)]
pub struct Placed {
    pub check: i64,
    pub wanted: Option<Time>,
}

#[derive(Clone, Debug)]
pub enum Told {
    Placed { check: i64 },
    Cancelled { xid: i64, count: i64, at: Time },
}

#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub effects: Vec<Effect>,
    pub pending: Vec<Pending>,
    pub ended: Vec<Ended>,
    pub placed: Vec<Placed>,
    pub told: Vec<Told>,
    pub struck: Vec<i64>,
    /// Number of runs that found a concurrent run of the same check. Runs that were rolled back also count.
    pub overlaps: i64,
    pub early: i64,
    pub leaks: i64,
    pub fillers: [i64; 2],
    pub ledger: Vec<Work>,
    pub repeated: Repeated,
    pub watched: Watched,
    pub deadlines: Vec<(String, String)>,
    /// Rows that awty failed to delete. `None` until the load has ended.
    pub left: Option<Left>,
    /// True if the test changed the system clock. The commit times of two transactions are then not comparable.
    pub clock_was_set: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    pub promise: &'static str,
    /// Id of the check, or 0 if the violation belongs to no single check.
    pub check: i64,
    pub what: String,
}

#[derive(Default)]
struct Story<'a> {
    effects: Vec<&'a Effect>,
    pending: Vec<&'a Pending>,
    ended: Vec<&'a Ended>,
    placed: Vec<&'a Placed>,
}

const DEADLY: [&str; 2] = ["leave", "crash"];

/// awty may hold a check after this number of crashes during the check's runs, even if other checks caused the crashes.
const OFTEN: usize = MAX_CRASHES - 1;

/// Maximum seconds between a run's timeout and its end. Equals the watchdog's `GRACE` plus one second.
const TO_BE_GONE: f64 = 3.0;
/// Maximum delay of a run in seconds, if a fault freezes the run's worker.
const NOISE: f64 = 10.0;

const PROMISES: [&str; 4] = ["P2", "P6", "P12", "P15"];

const BY_SUCCESS: [&str; 4] = ["done", "exhausted", "past", "beyond_horizon"];

pub fn judge(evidence: &Evidence) -> Vec<Violation> {
    let mut stories: BTreeMap<i64, Story> = BTreeMap::new();
    evidence.effects.iter().for_each(|row| stories.entry(row.check).or_default().effects.push(row));
    evidence.pending.iter().for_each(|row| stories.entry(row.check).or_default().pending.push(row));
    evidence.ended.iter().for_each(|row| stories.entry(row.check).or_default().ended.push(row));
    evidence.placed.iter().for_each(|row| stories.entry(row.check).or_default().placed.push(row));

    let mut violations = Vec::new();
    for (check, story) in &stories {
        let in_the_way = evidence.struck.iter().filter(|last| *last >= check).count() >= OFTEN;
        story.judge(in_the_way, evidence.clock_was_set, &mut |promise, what| {
            let rows =
                format!("{what}; effects {:?}, pending {:?}, ended {:?}", story.effects, story.pending, story.ended);
            violations.push(Violation { promise, check: *check, what: rows });
        });
    }
    let mut general = |promise, check, what| violations.push(Violation { promise, check, what });
    if evidence.overlaps > 0 {
        general("P4", 0, "a run began while another of the same check was going on (see the log)".into());
    }
    if evidence.early > 0 {
        general("P2", 0, "a run began before its slot (see the log)".into());
    }
    if evidence.leaks > 0 {
        general("P6", 0, "a run found what another had left in the session (see the log)".into());
    }
    if evidence.fillers[0] != evidence.fillers[1] {
        let [expected, found] = evidence.fillers;
        general("P3", 0, format!("{expected} filler checks should be pending, and {found} are"));
    }
    evidence.repeated.faults(evidence.clock_was_set).into_iter().for_each(|what| general("P11", 0, what));
    evidence.watched.faults().into_iter().for_each(|what| general("P12", 0, what));
    for (promise, what) in &evidence.deadlines {
        let known = PROMISES.iter().find(|known| *known == promise).unwrap_or(&"P12");
        general(known, 0, what.clone());
    }
    for (check, what) in ledger::faults(&evidence.ledger, evidence.clock_was_set) {
        general("P14", check, what);
    }
    evidence.left.iter().flat_map(Left::too_much).for_each(|what| general("tidiness", 0, what));
    judge_clients(evidence, &stories, &mut general);
    violations
}

fn judge_clients(
    evidence: &Evidence,
    stories: &BTreeMap<i64, Story>,
    report: &mut impl FnMut(&'static str, i64, String),
) {
    let placed: BTreeSet<i64> = evidence.placed.iter().map(|row| row.check).collect();
    let mut ended_by: BTreeMap<i64, Vec<&Ended>> = BTreeMap::new();
    for row in evidence.ended.iter().filter(|row| row.outcome == "cancelled") {
        ended_by.entry(row.xmin).or_default().push(row);
    }
    for told in &evidence.told {
        match told {
            Told::Placed { check } if !placed.contains(check) => {
                report("P3", *check, "a client was told that it is scheduled, and it is not".into());
            }
            // A transaction that cancelled no check leaves nothing on disk, so PostgreSQL may reuse its id after a
            // crash.
            Told::Placed { .. } | Told::Cancelled { count: 0, .. } => {}
            Told::Cancelled { xid, count, at } => {
                let ended = ended_by.get(&as_xmin(*xid)).map_or(&[][..], Vec::as_slice);
                if ended.len() as i64 != *count && !evidence.ended.iter().any(|row| row.is_moved) {
                    let what =
                        format!("a client was told at {at} that it cancelled {count} in {xid}; there are {ended:?}");
                    report("P3", 0, what);
                }
                for row in ended {
                    let late = stories.get(&row.check).into_iter().flat_map(|story| &story.effects);
                    for effect in late.filter(|effect| effect.began > *at && !evidence.clock_was_set) {
                        report("P4", row.check, format!("cancelled at {at} in {xid}; then came {effect:?}"));
                    }
                }
            }
        }
    }
}

impl Story<'_> {
    fn judge(&self, in_the_way: bool, clock_was_set: bool, report: &mut impl FnMut(&'static str, String)) {
        self.judge_place(in_the_way, report);
        self.judge_slots(report);
        let (check_count, outcome) = match (self.pending.first(), self.ended.first()) {
            (Some(row), _) => (row.check_count, None),
            (None, Some(row)) => (row.check_count, Some(row.outcome.as_str())),
            (None, None) => {
                for effect in &self.effects {
                    report("P1", format!("{effect:?} belongs to no check"));
                }
                return;
            }
        };
        self.judge_effects(check_count, outcome, report);
        self.judge_transactions(report);
        self.judge_length(clock_was_set, report);
        if self.ended.iter().any(|row| row.sqlstate.as_ref().is_some_and(|state| state.starts_with("XX"))) {
            report("integrity", "it ended with an internal error".into());
        }
        if !clock_was_set {
            self.judge_times(report);
        }
    }

    /// P3: a scheduled check is in exactly one table. P7: a failure of one check never makes awty hold another check.
    fn judge_place(&self, in_the_way: bool, report: &mut impl FnMut(&'static str, String)) {
        match (self.placed.is_empty(), self.pending.len() + self.ended.len()) {
            (false, 1)
                if !in_the_way && self.pending.iter().any(|row| row.held && !DEADLY.contains(&row.act.as_str())) =>
            {
                report("P7", "held, and did no harm".into());
            }
            (false, 1) => {}
            (false, 0) => report("P3", "scheduled, and neither pending nor in the history".into()),
            (true, 0) => {}
            (true, _) => report("P3", "nobody scheduled it".into()),
            (false, _) => report("P3", "in more than one place".into()),
        }
    }

    fn judge_slots(&self, report: &mut impl FnMut(&'static str, String)) {
        let first_slot =
            self.pending.first().map(|row| row.first_slot).or(self.ended.first().map(|row| row.first_slot));
        // A run that a client requested by `check_now()` may start before the check's first regular time. The test
        // recognizes such a run by a time with a fraction of a second.
        let asked_for = self.effects.iter().any(|effect| effect.slot.timestamp_subsec_micros() > 0);
        for effect in &self.effects {
            if effect.began < effect.slot || !asked_for && first_slot.is_some_and(|first| effect.slot < first) {
                report("P2", format!("{effect:?} is early"));
            }
        }
        for row in &self.ended {
            if row.started.is_some_and(|started| started < row.slot) && BY_SUCCESS.contains(&row.outcome.as_str()) {
                report("P2", "started before its slot".into());
            }
        }
        for wanted in self.placed.iter().filter_map(|row| row.wanted) {
            if first_slot.is_some_and(|first| first < wanted) {
                report("P2", format!("wanted not before {wanted}"));
            }
        }
    }

    /// P1: each finished run of a check has exactly one effect. A run that removes its own check also counts as
    /// finished.
    fn judge_effects(&self, check_count: i32, outcome: Option<&str>, report: &mut impl FnMut(&'static str, String)) {
        if let Some(effect) = self.effects.iter().find(|effect| effect.bad) {
            report("P1", format!("the run failed and its {effect:?} is there"));
        }
        let taken_away = matches!(outcome, Some("cancelled" | "replaced"));
        let mut counts: Vec<i32> = self.effects.iter().map(|effect| effect.check_count).collect();
        counts.sort_unstable();
        if counts != (0..check_count).collect::<Vec<_>>() {
            let promise = if taken_away { "P4" } else { "P1" };
            report(promise, format!("{check_count} checks were done, and there are effects of {counts:?}"));
        }
    }

    /// P1: one transaction writes the effect, the history row and the time of the next run.
    fn judge_transactions(&self, report: &mut impl FnMut(&'static str, String)) {
        let effect_of = |check_count: i32| self.effects.iter().find(|effect| effect.check_count == check_count);
        // Omits the runs of external workers, because awty may write their results in a subtransaction, whose id
        // differs from the transaction's id.
        let xid_of = |check_count: i32| {
            effect_of(check_count).filter(|effect| !effect.is_outside()).map(|effect| as_xmin(effect.xid))
        };
        let written = || self.ended.iter().filter(|row| !row.is_moved);
        for row in written().filter(|row| BY_SUCCESS.contains(&row.outcome.as_str())) {
            let effect = effect_of(row.check_count - 1).filter(|effect| effect.is_outside());
            if effect.is_some_and(|effect| effect.committed != row.committed) {
                report("P1", "the effect of an external worker and the history are of two transactions".into());
            }
        }
        for row in
            self.pending.iter().filter(|row| row.check_count > 0 && row.attempt == 0 && !row.held && !row.is_handled)
        {
            if xid_of(row.check_count - 1).is_some_and(|xid| xid != row.xmin) {
                report("P1", "the effect and the next time are of two transactions".into());
            }
        }
        for row in written() {
            let same = self.effects.iter().any(|effect| as_xmin(effect.xid) == row.xmin);
            match row.outcome.as_str() {
                outcome
                    if BY_SUCCESS.contains(&outcome)
                        && xid_of(row.check_count - 1).is_some_and(|xid| xid != row.xmin) =>
                {
                    report("P1", "the effect and the history are of two transactions".into());
                }
                "cancelled" | "replaced" if same => {
                    report("P4", "it was taken away by a run of its own, which has not answered".into());
                }
                "failed" | "timed_out" if same => report("P1", "the history of a failure came with an effect".into()),
                _ => {}
            }
        }
    }

    /// Verifies promise P4: no run commits after its check has ended, or begins before the check's previous run has
    /// committed.
    fn judge_times(&self, report: &mut impl FnMut(&'static str, String)) {
        for (row, ended) in self.ended.iter().filter_map(|row| Some((row, row.committed?))) {
            let is_late = |effect: &&&Effect| effect.began > ended || effect.committed.is_some_and(|at| at > ended);
            if let Some(effect) = self.effects.iter().find(is_late) {
                report("P4", format!("{effect:?} came after the check had ended as {}", row.outcome));
            }
        }
        let mut effects = self.effects.clone();
        effects.sort_unstable_by_key(|effect| effect.check_count);
        for pair in effects.windows(2) {
            if pair[0].committed.is_some_and(|committed| pair[1].began < committed) {
                report("P4", format!("{:?} began before the run before it was committed", pair[1]));
            }
        }
    }

    /// P8: no run exceeds its timeout. The clock's jumps do not change `run_time`, because awty measures it with the
    /// monotonic clock.
    fn judge_length(&self, clock_was_set: bool, report: &mut impl FnMut(&'static str, String)) {
        for row in &self.ended {
            let allowed = row.timeout.map(|timeout| f64::from(row.attempts) * (timeout + TO_BE_GONE) + NOISE);
            if allowed.is_some_and(|allowed| row.run_time > allowed) {
                report("P8", "its runs took longer than they may".into());
            }
            let never_cancelled = row.message.as_ref().is_some_and(|message| message.contains("not cancelled in time"));
            if never_cancelled && !clock_was_set {
                report("P8", "a run over its timeout was not cancelled".into());
            }
        }
    }
}

fn as_xmin(xid: i64) -> i64 {
    xid & 0xffff_ffff
}

#[cfg(test)]
#[path = "checker_tests.rs"]
mod tests;
