//! Invariant: a run writes a result only if no other session has changed or locked the check's row since the run read
//! it. The run never waits for another session's lock on this row.

use crate::failpoint::failpoint;
use crate::figures::account::Account;
use crate::pg::catch::Failure;
use crate::repeat::continuation::{Continuation, Decision};
use crate::store::check_row::{Locked, Row, Table};
use crate::store::job::Job;
use crate::store::record::{End, Rescheduled, RunRecord};
use crate::store::{future_job, history};
use crate::watch::untold;
use awty_core::figures::Fate;
use awty_core::{After, Answer, Before, Failed, Outcome, Time, policy};
use chrono::TimeDelta;

#[derive(Clone, Copy)]
pub struct Timing {
    pub started_at: Time,
    pub finished_at: Time,
    pub run_time: TimeDelta,
}

impl Timing {
    fn of(&self, row: &Row) -> RunRecord {
        let Timing { started_at, finished_at, run_time } = *self;
        RunRecord { slot: row.slot, started_at, finished_at, run_time }
    }
}

pub struct Conflict;

/// Stores the answers of a run's checks.
///
/// If `suspected` is true, an earlier run may have crashed the server or ended its process, and each check may have a
/// row in `awty_internal.check_stat`.
pub fn answers(
    table: &Table,
    job: &Job,
    answered: impl Iterator<Item = (Row, Answer)>,
    timing: &Timing,
    suspected: bool,
    account: &mut Account,
) -> Result<(), Conflict> {
    let mut locked = Vec::new();
    let is_first = |row: &Row| !suspected && row.check_count == 0 && row.attempt == 0;
    for (row, answer) in answered {
        // Locks and deletes the check's row in one step if the first run ends the check. For a repeated job, awty first
        // locks the row and reads the repetition, because the repetition decides whether the check ends.
        let limits = &job.options.limits;
        let is_over = !job.repeats
            && is_first(&row)
            && matches!(policy::after(&row.check(), limits, answer, timing.finished_at), After::End(_));
        match if is_over { table.lock_and_delete(&row) } else { table.lock(&row) } {
            Locked::Same => locked.push((row, answer, is_over)),
            Locked::Own => {
                let run = timing.of(&row);
                account.ran(&run, Fate::End(Outcome::Done));
                history::end_own(row, job, &run);
                continue;
            }
            Locked::Other => return Err(Conflict),
        }
        failpoint!("run.row_locked");
    }
    let mut continuation = Continuation::of_rows(job, &locked.iter().map(|(row, ..)| row).collect::<Vec<_>>());
    let mut ended: Vec<(Row, Outcome)> = Vec::new();
    for (row, answer, is_deleted) in locked {
        let run = timing.of(&row);
        let fate = continuation.after(row.id, &row.check(), answer, timing.finished_at);
        account.answered(job, &row, &run, fate);
        account.settled(row.id, fate, continuation.next_of(row.id));
        match fate {
            After::Again(slot) => {
                future_job::put_again(row.id, &Rescheduled { slot, done: 1, attempt: 0, failure: None }, &run);
            }
            After::End(outcome) if !is_first(&row) || continuation.is_noted(row.id) => {
                history::end_run(row.id, job, &run, &End { outcome, done: 1, failure: None });
            }
            After::End(outcome) => {
                if !is_deleted {
                    table.delete(&row);
                }
                ended.push((row, outcome));
            }
        }
    }
    if let Some((row, _)) = ended.first() {
        history::archive(&ended, job, &timing.of(row));
    }
    continuation.begin_next(timing.finished_at);
    Ok(())
}

pub fn failure(
    table: &Table,
    job: &Job,
    row: &Row,
    failure: &Failure,
    how: Failed,
    timing: &Timing,
    account: &mut Account,
) -> Result<(), Conflict> {
    if table.lock(row) != Locked::Same {
        return Err(Conflict);
    }
    failpoint!("failure.row_locked");
    let run = timing.of(row);
    let mut continuation = Continuation::of_rows(job, &[row]);
    let untold = untold::of(row);
    let mut check = row.check();
    if untold.is_some_and(|untold| untold::raise(&untold, &job.name, &row.key(), timing.finished_at)) {
        // Each level of an alert counts its own attempts.
        check.attempt = 0;
    }
    let wanted = continuation.failed(row.id, &check, how, timing.finished_at);
    let fate = untold.map_or(wanted, |untold| untold::fate(&untold, wanted));
    let attempt = if matches!(wanted, After::End(_)) { 0 } else { check.attempt.saturating_add(1).cast_signed() };
    account.failed(job, row, &run, failure, fate);
    account.settled(row.id, fate, continuation.next_of(row.id));
    match fate {
        After::Again(slot) => {
            let again = Rescheduled { slot, done: 0, attempt, failure: Some(failure) };
            future_job::put_again(row.id, &again, &run);
        }
        After::End(outcome) => {
            history::end_run(row.id, job, &run, &End { outcome, done: 0, failure: Some(failure) });
        }
    }
    continuation.begin_next(timing.finished_at);
    Ok(())
}

pub fn apply_guards(
    table: &Table,
    job: &Job,
    rows: Vec<Row>,
    able_since: Time,
    now: Time,
    account: &mut Account,
) -> Result<Vec<Row>, Conflict> {
    let mut run = Vec::with_capacity(rows.len());
    for row in rows.into_iter().filter(|row| !row.held) {
        match policy::before(&row.check(), &job.options.limits, able_since, now) {
            Before::Run => run.push(row),
            Before::NotYet => {}
            Before::Move(_) | Before::End(_) if table.lock(&row) != Locked::Same => return Err(Conflict),
            instead => {
                let mut continuation = Continuation::of_rows(job, &[&row]);
                match continuation.before(row.id, instead, able_since, now) {
                    Decision::Policy(Before::Run) => run.push(row),
                    Decision::Policy(Before::NotYet) => {}
                    Decision::Policy(Before::Move(slot)) => future_job::put_at(row.id, slot),
                    Decision::Policy(Before::End(outcome)) => {
                        account.ended(job, &row, outcome);
                        history::end(&[row.id], outcome, now, None);
                    }
                    Decision::Replace => history::remove(&[row.id]),
                }
                continuation.begin_next(now);
            }
        }
    }
    Ok(run)
}
