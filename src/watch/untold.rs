//! An alert never waits for the function of its rule: what a run was about to tell, for the transaction that books its failure.
//!
//! That transaction raises the level without telling it, and retries of the check tell it. After `max_attempts` failures the telling is
//! given up, and the check continues with the next level.
//!
//! Invariant: the level is raised only if the check is as the run has read it. A client that changes the row changes its check.
//! Does not: tell (see `judge`), or evaluate the row again. A run that ends its process raises nothing.

use super::Watched;
use super::statements::alert::{self, Raised};
use super::statements::rule::Rule;
use super::statements::rule_check::RuleCheck;
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

/// An alert that a run was about to tell.
pub struct Untold {
    rule: Rc<Rule>,
    check: (i64, Time, i32, Time),
    alert: Option<i64>,
    key: Text,
    from: u32,
    level: u32,
    since: Option<Time>,
    due_at: Time,
    /// The slot of the next level.
    next: Option<Time>,
}

pub fn forget() {
    UNTOLD.set(None);
}

/// Remembers an alert of a run of one check.
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
    /// Returns the alert that the failed run of this check was about to report. The caller has locked the row.
    pub fn of(row: &Row) -> Option<Self> {
        UNTOLD.take().filter(|untold| untold.check == (row.id, row.slot, row.attempt, row.scheduled_at()))
    }

    /// Raises the level. Returns `false` if it is raised already, or cannot be raised.
    pub fn raise(&self, now: Time) -> bool {
        let Self { alert: id, ref key, from, level, since, due_at, .. } = *self;
        let raised = Raised { id, key, from, level, since, due_at };
        let is_raised = level > from && kept_whole(|| alert::raise_untold(&self.rule, &raised, now)).is_ok();
        wakeup::count_rows(self.rule.name.as_bytes(), 0, u64::from(is_raised && from == 0));
        is_raised
    }

    /// Lets no level wait for retries, and continues with the next level after the last one.
    pub fn fate(&self, fate: After) -> After {
        match (fate, self.next) {
            (After::Again(retry), Some(next)) => After::Again(retry.min(next)),
            (After::End(_), Some(next)) => After::Again(next),
            (fate, None) => fate,
        }
    }
}
