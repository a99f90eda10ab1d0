//! What the maintainer does for repetitions: it gives one without a check a new one, removes those that belong to nothing any more,
//! and after a start computes pending occurrences again, because PostgreSQL may have other zone data by then.
//!
//! Invariant: what a client has locked is left for the next time.
//! Does not: touch an occurrence that is due or has begun.

use super::of;
use crate::pg::text::Text;
use crate::pg::{catalog, clock};
use crate::shmem::{self, wakeup};
use crate::store::job::{self, Job};
use crate::store::{repetition, repetition_upkeep};
use awty_core::Time;

/// So many repetitions are looked at in one transaction.
const PIECE: i64 = 1000;

/// Looks after the next piece of the repetitions.
pub fn mend(now: Time) {
    let here = catalog::database();
    let after = shmem::read(|shared| shared.database(here).map_or(i64::MIN, |line| line.mended));
    let piece = repetition_upkeep::piece(after, PIECE);
    if !piece.stray.is_empty() {
        repetition::remove(&piece.stray);
    }
    if !piece.alone.is_empty() {
        begin_again(&piece.alone, now);
    }
    shmem::write(|shared| {
        if let Some(line) = shared.database_mut(here) {
            line.mended = piece.last.unwrap_or(i64::MIN);
        }
    });
}

fn begin_again(alone: &[i64], now: Time) {
    for stored in repetition_upkeep::lock(alone) {
        let Some(Ok(job @ Job { options, .. })) = job::find(&Text::from(stored.job.as_str())) else { continue };
        let Some(plan) = of(&stored, options.limits.width) else { continue };
        match plan.begin(now) {
            Some(slot) => {
                repetition::schedule(&[(stored.id, slot)], false, now);
                wakeup::at_commit(job.runner(), clock::to_timestamp(slot));
            }
            None => repetition::remove(&[stored.id]),
        }
    }
}

/// Computes the pending occurrences of a piece of the repetitions again, after an id. Returns where to go on.
pub fn compute_again(after: i64, now: Time) -> Option<i64> {
    let (last, checks) = repetition_upkeep::zoned(after, PIECE, now);
    if checks.is_empty() {
        return last;
    }
    for pending in repetition::of_checks(&repetition_upkeep::lock_pending(&checks)) {
        let stored = &pending.repetition;
        let Some(Ok(job @ Job { options, .. })) = job::find(&Text::from(stored.job.as_str())) else { continue };
        let Some(plan) = of(stored, options.limits.width) else { continue };
        let slot = plan.with_new_zone_data(&pending.occurrence, now);
        if slot != pending.occurrence.first {
            repetition_upkeep::move_to(pending.check, slot);
            wakeup::at_commit(job.runner(), clock::to_timestamp(slot));
        }
    }
    last
}
