//! Moves checks to the times of a changed plan or calendar. If the calendar is closed at all planned times, the
//! repetition has no check.
//!
//! Invariant: the caller has locked each check that is moved, and has locked the calendar before.

use super::of;
use super::statements::repetition::{self, Pending};
use crate::calendar::statements::calendar;
use crate::call::rights;
use crate::pg::clock;
use crate::pg::subtransaction::{kept_if_ok, undone_or_raised};
use crate::pg::text::Text;
use crate::pg::zone::Local;
use crate::shmem::wakeup;
use crate::store::job::{self, Job};
use crate::store::patience::MOMENT;
use crate::store::{history, hold};
use awty_core::repeat::{Change, Repetition};
use awty_core::{Outcome, Time};
use std::collections::HashSet;
use std::time::Duration;

const MOST_NAMED: usize = 20;
/// Each try waits for one check.
const TRIES: usize = 10;
const PAUSE: Duration = Duration::from_millis(10);

pub fn apply(pending: &Pending, change: Change, now: Time) -> Option<Time> {
    let repetition = pending.repetition.id;
    match change {
        Change::Stays { passed } => {
            repetition::set_passed(pending.check, passed);
            Some(pending.occurrence.check.slot)
        }
        Change::Moves(next) => {
            end(pending, now);
            if let Some(slot) = next {
                repetition::schedule(&[(repetition, slot)], pending.held, now);
                if pending.held {
                    hold::carry(&[(repetition, pending.check)]);
                }
                wakeup::count_written(1);
            }
            next
        }
    }
}

pub fn end(pending: &Pending, now: Time) {
    wakeup::count_ended(1);
    history::end(&[pending.check], Outcome::Replaced, now, None);
}

pub struct Users(Vec<(Pending, Job, Option<Repetition<Local>>)>);

impl Users {
    /// Waits for one check at a time, with no other check locked, because a client may give back many locks one after
    /// the other, and because a run that ends meanwhile inserts its next check at a time of the old calendar.
    pub fn of(calendar: &Text) -> Self {
        let wait = |check| undone_or_raised(|| calendar::waiting_for(calendar, || repetition::wait_for(check)));
        let mut tries = 1;
        let checks = loop {
            match kept_if_ok(|| lock_all(calendar)) {
                Ok(checks) => break checks,
                Err(_) if tries == TRIES => calendar::busy(calendar).raise(),
                Err(check) => wait(check),
            }
            tries += 1;
        };
        let pending = repetition::of_checks(&checks);
        let with_job = |pending: Pending| {
            let job = job::find(&pending.repetition.job)?.ok()?;
            let before = of(&pending.repetition, job.options.limits.width);
            Some((pending, job, before))
        };
        Self(pending.into_iter().filter_map(with_job).collect())
    }

    pub fn follow(self, now: Time) {
        for (pending, job, before) in self.0 {
            let occurrence = &pending.occurrence;
            let after = of(&pending.repetition, job.options.limits.width);
            let change = match (before, after) {
                (Some(before), Some(after)) => before.replaced_by(&after, occurrence, now),
                _ if occurrence.first <= now => continue,
                (None, Some(after)) => Change::Moves(after.begin(now)),
                (_, None) => Change::Moves(None),
            };
            // A held check cannot run, and its hold must outlive the time in which the calendar is closed.
            if pending.held && change == Change::Moves(None) {
                continue;
            }
            if change == Change::Moves(Some(occurrence.first)) && occurrence.passed.is_none() {
                continue;
            }
            if let Some(slot) = apply(&pending, change, now) {
                wakeup::at_commit(job.runner(), clock::to_timestamp(slot));
            }
        }
        wakeup::inspect_at_commit(false);
    }
}

/// Returns a check that another transaction keeps locked, if there is one after a moment.
fn lock_all(calendar: &Text) -> Result<Vec<i64>, i64> {
    let mut until = None;
    loop {
        let checks = repetition::lock_users(calendar);
        until = until.or_else(|| Some(clock::mono().plus(MOMENT)));
        let locked: HashSet<i64> = checks.iter().copied().collect();
        match repetition::checks_of_users(calendar).into_iter().find(|check| !locked.contains(check)) {
            None => return Ok(checks),
            Some(busy) if clock::is_past(until) => return Err(busy),
            Some(_) => clock::pause(PAUSE),
        }
    }
}

pub fn users(calendar: &Text) -> (Vec<String>, usize) {
    let all = repetition::users(calendar);
    let is_visible = |name: &Text| job::find(name).and_then(Result::ok).is_some_and(|job| rights::may_read(&job));
    let label = |(job, entity_name, entity_key): &(Text, Text, Text)| {
        format!("the repetition of job \"{job}\" for \"{entity_name}\" \"{entity_key}\"")
    };
    let named: Vec<String> = all.iter().filter(|(job, ..)| is_visible(job)).take(MOST_NAMED).map(label).collect();
    let others = all.len() - named.len();
    (named, others)
}
