//! Ends holds of checks and pauses of jobs at their planned ends.
//!
//! Invariant: `on_missed` uses the planned end of a hold or pause, even if awty ends it later. If another session has
//! locked a row, the next inspection ends its hold or pause.

use crate::pg::clock;
use crate::pg::text::Text;
use crate::repeat::continuation::{Continuation, Decision};
use crate::settings;
use crate::shmem::wakeup;
use crate::store::future_job::{self, LockedHeld, Pending};
use crate::store::hold::{self, Held};
use crate::store::job::{self, Job};
use crate::store::{check_stat, history};
use awty_core::{Before, Time, policy};
use chrono::TimeDelta;
use pgrx::pg_sys;
use std::collections::VecDeque;
use std::time::Duration;

/// Number of holds that awty locks at once. On a busy machine, locking many takes a whole slice, so that each slice
/// would end only one.
const PIECE: i64 = 100;
/// Time after which a call of [`end_holds`] stops, so that the roles take turns.
const SLICE: Duration = Duration::from_millis(50);
/// Delay before awty tries again to end a hold or pause that another session has locked.
pub const LOCKED: TimeDelta = TimeDelta::seconds(2);

type Place = (Time, i64);
const START: Place = (Time::UNIX_EPOCH, i64::MIN);
/// Stands for all roles. SQL statements receive NULL instead of this OID.
pub const ALL: pg_sys::Oid = pg_sys::InvalidOid;

pub fn first_end(role: pg_sys::Oid, after: Time) -> Option<Time> {
    [hold::first_end(role, after), job::first_end(role, after)].into_iter().flatten().min()
}

pub fn announce(now: Time) {
    let is_left = first_end(ALL, Time::UNIX_EPOCH).is_some_and(|end| end <= now);
    for end in first_end(ALL, now).into_iter().chain(is_left.then(|| now + LOCKED)) {
        wakeup::end_at_commit(end);
    }
}

pub fn end_pauses(role: pg_sys::Oid, now: Time) {
    for (role, first) in job::resume_passed(now, role) {
        // Checks became due during the pause, so a worker must search from the first such check.
        first.into_iter().for_each(|first| wakeup::at_commit(Some(role), clock::to_timestamp(first)));
    }
}

/// Jobs of one role that have expired holds, each with the position from which the search for its holds continues.
pub type Ends = VecDeque<(Text, Place)>;

/// Returns one list of jobs for each role, so that the roles can take turns.
pub fn over(role: pg_sys::Oid, now: Time) -> Vec<Ends> {
    let passed = hold::jobs_passed(now, role);
    passed
        .chunk_by(|(one, _), (other, _)| one == other)
        .map(|of_role| of_role.iter().map(|(_, job)| (job.clone(), START)).collect())
        .collect()
}

/// Ends expired holds of one role, and stops after about `SLICE`. Removes a job from `jobs` when it has no more expired
/// holds. Returns whether a hold has ended.
pub fn end_holds(jobs: &mut Ends, now: Time) -> bool {
    let began = clock::mono();
    let is_over = || clock::mono().since(began) >= SLICE;
    let mut has_ended = false;
    while let Some((job, after)) = jobs.front_mut() {
        let passed = hold::passed(job, now, after.0, after.1, PIECE);
        let ids: Vec<i64> = passed.iter().map(|(_, id)| *id).collect();
        // Removes the row of a hold if its check is not marked as held. Skips a row that a run has locked, because the
        // run's commit will mark the check.
        has_ended |= hold::remove_unheld(&ids, now) > 0;
        for held in future_job::lock_held(&ids, settings::max_crashes()) {
            let ended = end_hold(&held, now);
            has_ended |= ended;
            if ended && is_over() {
                return true;
            }
        }
        match passed.last() {
            Some(last) if ids.len() == PIECE as usize => *after = *last,
            _ => drop(jobs.pop_front()),
        }
        if is_over() {
            break;
        }
    }
    has_ended
}

pub fn end_passed(role: pg_sys::Oid, now: Time) {
    end_pauses(role, now);
    for mut jobs in over(role, now) {
        while !jobs.is_empty() {
            end_holds(&mut jobs, now);
        }
    }
}

fn end_hold(held: &LockedHeld, now: Time) -> bool {
    let Some(ended) = hold::remove_passed(held.check.id, now) else { return false };
    match job::find(&held.job) {
        _ if held.is_after_crashes => {}
        Some(Ok(job)) => release(&held.check, &job, Some(ended), now),
        _ => future_job::release(held.check.id),
    }
    true
}

/// Releases a held check. If the check became due during the hold, awty applies the job's option `on_missed` to the
/// check. The caller must have locked the check's row and removed the hold.
pub fn release(check: &Pending, job: &Job, ended: Option<Held>, now: Time) {
    future_job::release(check.id);
    check_stat::absolve(check.id);
    wakeup::at_commit(job.runner(), clock::to_timestamp(check.slot));
    let Some(hold) = ended else { return };
    let end = hold.until.map_or(now, |until| until.min(now));
    if hold.at <= check.slot {
        apply_policy(check, job, end, now);
    }
}

fn apply_policy(check: &Pending, job: &Job, end: Time, now: Time) {
    let by_policy = policy::before(&check.check(), &job.options.limits, end, now);
    if matches!(by_policy, Before::NotYet | Before::Run) {
        return;
    }
    let mut continuation = Continuation::of(job, &[check.id]);
    match continuation.before(check.id, by_policy, end, now) {
        Decision::Policy(Before::NotYet | Before::Run) => {}
        Decision::Policy(Before::Move(slot)) => {
            future_job::put_at(check.id, slot);
            wakeup::at_commit(job.runner(), clock::to_timestamp(slot));
        }
        Decision::Policy(Before::End(outcome)) => {
            wakeup::count_ended(1);
            history::end(&[check.id], outcome, now, None);
        }
        Decision::Replace => {
            wakeup::count_ended(1);
            history::remove(&[check.id]);
        }
    }
    if let Some(slot) = continuation.begin_next(now) {
        wakeup::count_written(1);
        wakeup::at_commit(job.runner(), clock::to_timestamp(slot));
    }
}
