//! Computes the due times of repetitions again after a server start, because PostgreSQL may have new zone data.

use super::of;
use super::statements::{repetition, upkeep};
use crate::pg::subtransaction::unless_locked;
use crate::pg::{catalog, clock};
use crate::shmem::{self, wakeup};
use crate::store::job::{self, Job};
use awty_core::Time;
use pgrx::pg_sys;
use std::collections::HashMap;
use std::time::Duration;

const PIECE: i64 = 1000;
/// One transaction inserts missing checks of repetitions for at most this time. Without the limit, the transaction
/// could become long, because finding the next time of one repetition may take milliseconds.
const LONGEST: Duration = Duration::from_millis(500);
/// Time for the repetitions of one role that stay without a check, in one piece.
const OF_ROLE: Duration = Duration::from_millis(50);
/// Time in which one inspection looks for repetitions without checks.
const LOOKING: Duration = Duration::from_millis(100);

/// Looks at repetitions until the time limit has passed, or until some needed a repair.
pub fn repair(now: Time) {
    let until = Some(clock::mono().plus(LOOKING));
    while repair_piece(now) && !clock::is_past(until) {}
}

/// Returns whether the piece needed no repair, was looked at to its end, and is not the last one.
fn repair_piece(now: Time) -> bool {
    let here = catalog::database();
    let after = shmem::read(|shared| shared.database(here).map_or(i64::MIN, |line| line.repaired));
    let piece = upkeep::piece(after, PIECE);
    if !piece.stray.is_empty() {
        // Skips locked repetitions, so that the other repetitions do not wait for a client.
        let free: Vec<i64> = upkeep::lock(&piece.stray).into_iter().map(|stray| stray.id).collect();
        repetition::remove(&free);
    }
    let (is_changed, is_stopped) = begin_again(&piece.alone, now);
    // Usually stays at a piece that is not finished. A role that stops its repetitions again must not keep it there.
    let stays = is_changed && is_stopped && !now.timestamp_subsec_millis().is_multiple_of(8);
    let reached = if stays { after } else { piece.last.unwrap_or(i64::MIN) };
    shmem::write(|shared| {
        if let Some(line) = shared.database_mut(here) {
            line.repaired = reached;
        }
    });
    piece.stray.is_empty() && !is_changed && !is_stopped && piece.last.is_some()
}

/// Inserts checks for repetitions that have none. Returns whether anything has changed, and whether the time limit has
/// stopped the work.
fn begin_again(alone: &[i64], now: Time) -> (bool, bool) {
    let until = Some(clock::mono().plus(LONGEST));
    let mut is_changed = false;
    // Skips the other repetitions of a role that has inserted the same check in an open transaction, or that has many
    // repetitions whose calendars stay closed.
    let mut left: HashMap<pg_sys::Oid, Duration> = HashMap::new();
    let mut stopped = if alone.is_empty() { Vec::new() } else { upkeep::lock(alone) };
    if !stopped.is_empty() {
        // Begins at another repetition each time, so that each of a role gets its turn.
        let first = now.timestamp_subsec_micros() as usize % stopped.len();
        stopped.rotate_left(first);
    }
    for stored in stopped {
        let Some(Ok(job)) = job::find(&stored.job) else { continue };
        let (began, left) = (clock::mono(), left.entry(job.role).or_insert(OF_ROLE));
        if left.is_zero() {
            continue;
        }
        if let Some(plan) = of(&stored, job.options.limits.width) {
            match plan.begin(now) {
                Some(slot) => {
                    let schedule = || {
                        repetition::schedule(&[(stored.id, slot)], false, now);
                    };
                    if unless_locked(schedule).is_some() {
                        wakeup::at_commit(job.runner(), clock::to_timestamp(slot));
                        is_changed = true;
                    } else {
                        *left = Duration::ZERO;
                    }
                }
                None => {
                    repetition::remove(&[stored.id]);
                    is_changed = true;
                }
            }
        } else {
            *left = left.saturating_sub(clock::mono().since(began));
        }
        if clock::is_past(until) {
            return (is_changed, true);
        }
    }
    (is_changed, false)
}

pub fn compute_again(after: i64, now: Time) -> Option<i64> {
    let (last, checks) = upkeep::zoned(after, PIECE, now);
    if checks.is_empty() {
        return last;
    }
    for pending in repetition::of_checks(&upkeep::lock_pending(&checks)) {
        let stored = &pending.repetition;
        let Some(Ok(job @ Job { options, .. })) = job::find(&stored.job) else { continue };
        let Some(plan) = of(stored, options.limits.width) else { continue };
        let slot = plan.with_new_zone_data(&pending.occurrence, now);
        if slot != pending.occurrence.first {
            upkeep::move_to(pending.check, slot);
            wakeup::at_commit(job.runner(), clock::to_timestamp(slot));
        }
    }
    last
}
