//! A rule watches a table. A scheduled check tests each row until the row meets the rule's condition. Each late row has
//! an alert.
//!
//! - [`api`] has `awty.watch()`, whose arguments [`request`] reads. [`unwatch`] has `awty.unwatch()`. Both wait for locks
//!   in [`attempts`]. [`triggers`] has the trigger functions and the job function.
//! - Triggers call [`written`] for written rows.
//! - Runs call [`judge`] for due rows. If the run fails, [`untold`] raises the alert.
//! - [`walk`] adds the rows that are older than the rule. [`sweep`] compares open alerts with their rows. Both visit
//!   rows in [`pieces`].
//! - [`stops`] stores when the clocks of rows were stopped.
//!
//! Invariant: a session locks a row's check before it reads the row. A session that moves or ends a check also locks
//! the check, so that a run that read the row earlier is rolled back.

mod api;
mod attempts;
mod call;
mod cleared;
pub mod end_rule;
mod hand_over;
pub mod hold;
mod judge;
pub mod new_job;
mod pieces;
mod request;
pub mod silence;
pub mod statements;
mod status;
pub mod stops;
pub mod sweep;
mod triggers;
pub mod untold;
mod unwatch;
pub mod upkeep;
mod walk;
mod written;

use self::statements::rule_check;
use crate::calendar;
use crate::calendar::statements::calendar::waiting_for;
use crate::call::own_checks::{BACKFILL, CLEARED, FUNCTION, SWEEP, is_rules};
use crate::call::rights;
use crate::error::{CalendarError, Error};
use crate::pg::clock;
use crate::pg::subtransaction::has_one_snapshot;
use crate::pg::text::Text;
use crate::rule::statements::rule::{self, Rule};
use crate::shmem::wakeup;
use crate::store::job;
use awty_core::Time;
use pgrx::pg_sys;

const MOST_NAMED: usize = 20;

pub fn users(calendar: &Text) -> (Vec<String>, usize) {
    let all = rule::of_calendar(calendar);
    let is_visible = |name: &&Text| job::find(name).and_then(Result::ok).is_some_and(|job| rights::may_read(&job));
    let named: Vec<String> =
        all.iter().filter(is_visible).take(MOST_NAMED).map(|name| format!("rule \"{name}\"")).collect();
    let others = all.len() - named.len();
    (named, others)
}

pub fn follow_calendar(name: &Text, by: pg_sys::Oid, now: Time) {
    let mut names = rule::of_calendar(name);
    let mut of_due = Vec::new();
    if let Some(known) = calendar::find(name) {
        of_due = rule::of_due();
        of_due.retain(|(_, role)| known.moves_rules_of(*role, by));
    }
    names.extend(of_due.iter().map(|(rule, _)| rule.clone()));
    names.sort_by(|one, other| one.as_bytes().cmp(other.as_bytes()));
    names.dedup();
    // Locks the rules in the order of their names, so that two changes of calendars cannot deadlock.
    for rule in &names {
        let follows =
            |now: &Rule| now.terms.calendar.as_ref() == Some(name) || of_due.contains(&(rule.clone(), now.terms.role));
        let judge = || {
            let found = rule::find(rule);
            if found.is_none() && has_one_snapshot() {
                // The rule may be newer than the snapshot of this transaction.
                Error::from(CalendarError::Busy { calendar: name.to_string() }).raise();
            }
            if found.as_ref().is_some_and(follows) { Ok(()) } else { Err(()) }
        };
        // While this call waited, the name may have become that of another role's job.
        if waiting_for(name, || job::sharing_name(rule, judge)).is_err() {
            continue;
        }
        // Locks the check before the rule, as `awty.unwatch()` does.
        if let Some(Ok(job)) = job::find(rule) {
            waiting_for(name, || rule_check::restart_special(rule, BACKFILL, now, job.role));
            wakeup::at_commit(job.runner(), clock::to_timestamp(now));
        }
        waiting_for(name, || rule::walk_moved(rule));
    }
}
