//! Remembers the alert that a failed run was about to report. The transaction that stores the failure then raises the
//! alert's level. So a rule's function that fails delays no level.
//!
//! Retries of the check try to report the alert again. After `max_attempts` failures awty gives up the report, and the
//! check continues with the next level.
//!
//! Invariant: the level is raised only if the check has not changed since the run read it. A client that changes the
//! row also changes its check.
//! This module does not report the alert (see `judge`), and does not evaluate the row again. If a run ends its process,
//! no level is raised.

use super::Watched;
use super::statements::raised::{self, Raised};
use super::statements::rule::Rule;
use super::statements::rule_check::RuleCheck;
use super::statements::stop;
use crate::pg::subtransaction::kept_whole;
use crate::pg::text::Text;
use crate::shmem::wakeup;
use crate::store::check_row::Row;
use awty_core::{After, Time};
use std::cell::RefCell;
use std::rc::Rc;

thread_local! {
    static UNTOLD: RefCell<Option<Untold>> = const { RefCell::new(None) };
}

pub struct Untold {
    rule: Rc<Rule>,
    check: (i64, Time, i32, Time),
    alert: Option<i64>,
    key: Text,
    from: u32,
    level: u32,
    since: Option<Time>,
    due_at: Time,
    /// When the check continues with the next level.
    next: Option<Time>,
}

pub fn forget() {
    UNTOLD.set(None);
}

/// Remembers the alert that a run of a single check is about to report.
pub fn remember(watched: &Watched, check: &RuleCheck, raised: &Raised, next: Option<Time>) {
    UNTOLD.set(Some(Untold {
        rule: Rc::clone(&watched.rule),
        check: (check.id, check.slot, check.attempt, check.scheduled_at),
        alert: raised.id,
        key: raised.key.clone(),
        from: raised.from,
        level: raised.level,
        since: raised.since,
        due_at: raised.due_at,
        next,
    }));
}

impl Untold {
    /// Returns the alert that the failed run was about to report, if it was a run of this check. The caller has locked
    /// the check's row.
    pub fn of(row: &Row) -> Option<Self> {
        UNTOLD.take().filter(|untold| untold.check == (row.id, row.slot, row.attempt, row.scheduled_at()))
    }

    /// Raises the alert's level. Returns `false` if the alert already has the level, or if the level cannot be stored.
    pub fn raise(&self, now: Time) -> bool {
        let Self { alert: id, ref key, from, level, since, due_at, .. } = *self;
        let raised = Raised { id, key, from, level, since, due_at };
        let is_raised =
            level > from && !self.is_stopped() && kept_whole(|| raised::raise_untold(&self.rule, &raised, now)).is_ok();
        wakeup::count_rows(self.rule.name.as_bytes(), 0, u64::from(is_raised && from == 0));
        is_raised
    }

    /// Whether a client has stopped the row meanwhile. The begin of a stop does not change the check.
    fn is_stopped(&self) -> bool {
        let read = || stop::read(&self.rule.name, std::slice::from_ref(&self.key));
        let is_stopped = |known: &stop::Known| known.clock.as_ref().is_some_and(|clock| clock.stops.since().is_some());
        self.rule.terms.stopped.is_some() && read().iter().any(is_stopped)
    }

    /// Returns what happens to the check of a failed run. A retry never delays the next level. After the last retry,
    /// the check continues with the next level.
    pub fn fate(&self, fate: After) -> After {
        match (fate, self.next) {
            (After::Again(retry), Some(next)) => After::Again(retry.min(next)),
            (After::End(_), Some(next)) => After::Again(next),
            (fate, None) => fate,
        }
    }
}
