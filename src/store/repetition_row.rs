//! The repetition of one check, whose row is at hand, and the occurrence that comes after it.
//!
//! Invariant: what is read here is of this moment, and the check's row is locked.
//! Does not: hold what else is asked or written about repetitions (see `repetition`).

use super::check_row::Row;
use super::hold;
use super::keyed_row::{self, Key, Keyed};
use super::repetition::{Pattern, Pending, moment_of, passed, stored_in};
use super::statement::statement;
use super::time;
use crate::pg::owner::as_owner;
use crate::pg::relations::{self, Name};
use crate::pg::text;
use awty_core::Time;
use awty_core::repeat::Occurrence;

// After an occurrence whose row this transaction has deleted: nothing can be in the way.
statement!(
    insert_after,
    [TEXTOID, TEXTOID, TEXTOID, JSONBOID, TIMESTAMPTZOID, REGROLEOID, TIMESTAMPTZOID],
    c"INSERT INTO awty.future_job
          (entity_name, entity_key, job, args, first_check_at, next_check_at, scheduled_by, scheduled_at)
      VALUES ($1, $2, $3, $4, $5, $5, $6, $7)"
);

const REPETITION: Keyed = Keyed {
    table: relations::REPETITION,
    index: Name(c"awty_internal", c"repetition_one_per_job_and_entity"),
    columns: &[3, 4, 2],
};
const CHECK_STAT: Keyed =
    Keyed { table: relations::CHECK_STAT, index: Name(c"awty_internal", c"check_stat_pkey"), columns: &[1] };
const HOLD: Keyed = Keyed { table: relations::HOLD, index: Name(c"awty_internal", c"hold_pkey"), columns: &[1] };

/// The repetition of a check whose row the caller has read and locked, with what the check is of it.
pub fn of_row(check: &Row) -> Option<Pending> {
    let subject = check.subject();
    let [Some(entity_name), Some(entity_key), Some(job)] = subject else { return None };
    keyed_row::now(|| {
        let key = [Key::Text(entity_name), Key::Text(entity_key), Key::Text(job)];
        let (repetition, args, repeated_by) = REPETITION.read(&key, |row| {
            Some((stored_in(|column| row.get(column))?, row.get(12).map(text::copy_of_varlena), row.get(13)))
        })?;
        let passed = CHECK_STAT
            .read(&[Key::Number(check.id)], |row| passed(row.get(12).map(moment_of), row.get(13).map(moment_of)));
        let is_noted = HOLD.read(&[Key::Number(check.id)], |_| Some(())).is_some();
        let held = check.held || is_noted && !hold::in_force(&[check.id]).is_empty();
        let occurrence = Occurrence { first: check.first(), check: check.check(), passed };
        let pattern = Some(Pattern { subject, args, repeated_by });
        Some(Pending { check: check.id, occurrence, held, repetition, pattern })
    })
}

/// Inserts the next occurrence after one whose row this transaction has taken out of `awty.future_job`.
pub fn schedule_after(
    Pattern { subject: [entity_name, entity_key, job], args, repeated_by }: Pattern,
    slot: Time,
    now: Time,
) {
    let args = [entity_name, entity_key, job, args, time(slot), repeated_by, time(now)];
    as_owner(|| insert_after(|s| s.execute(&args)));
}
