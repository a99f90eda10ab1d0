//! Moves checks that end from `awty.future_job` to the history.

use super::record::{End, FailureTexts, RunRecord};
use super::typed::statement;
use super::{arg, interval, time};
use crate::pg::catch::Failure;
use crate::pg::relations;
use crate::pg::text::Text;
use crate::store::check_row::{self, Row};
use crate::store::job::Job;
use crate::store::{check_stat, future_job};
use awty_core::{Outcome, Time};
use chrono::TimeDelta;
use pgrx::pg_sys;

// The check is copied and deleted by separate statements, because PostgreSQL does not support an administrator's rules
// on a DELETE inside WITH.
statement! {
    fn archive_run(
        id: i64, started_at: Time, finished_at: Time, run_time: TimeDelta, lateness: TimeDelta, done: i32, outcome: Text,
        sqlstate: Option<Text>, message: Option<Text>, role: pg_sys::Oid, context: Option<Text>
    ) = query,
    c"INSERT INTO awty.future_job_history (id, job, entity_name, entity_key, args, first_check_at, next_check_at,
          scheduled_by, scheduled_at, started_at, finished_at, run_time, lateness, check_count, attempts, outcome,
          sqlstate, message, role, context)
      SELECT f.id, f.job, f.entity_name, f.entity_key, f.args, f.first_check_at, f.next_check_at,
          f.scheduled_by, f.scheduled_at, $2, greatest($2, $3), coalesce(u.run_time + $4, $4), $5, f.check_count + $6,
          coalesce(u.runs, 0) + 1, $7, $8, $9, $10::pg_catalog.regrole, $11
      FROM awty.future_job AS f LEFT JOIN awty_internal.check_stat AS u ON u.check_id = f.id
      WHERE f.id = $1"
}

// The caller has deleted the check's row, and check_stat has no row of the check.
statement! {
    archive_one,
    [
        INT8OID, TEXTOID, TEXTOID, TEXTOID, JSONBOID, TIMESTAMPTZOID, TIMESTAMPTZOID, REGROLEOID, TIMESTAMPTZOID,
        TIMESTAMPTZOID, TIMESTAMPTZOID, INTERVALOID, INTERVALOID, INT4OID, TEXTOID, REGROLEOID
    ],
    c"INSERT INTO awty.future_job_history (id, job, entity_name, entity_key, args, first_check_at, next_check_at,
          scheduled_by, scheduled_at, started_at, finished_at, run_time, lateness, check_count, attempts, outcome, role)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 1, $15, $16)"
}

statement!(
    archive_all,
    [RECORDARRAYOID, TIMESTAMPTZOID, TIMESTAMPTZOID, INTERVALOID, INTERVALOID, TEXTOID, OIDOID],
    c"INSERT INTO awty.future_job_history (id, job, entity_name, entity_key, args, first_check_at, next_check_at,
          scheduled_by, scheduled_at, started_at, finished_at, run_time, lateness, check_count, attempts, outcome,
          sqlstate, message, role)
      SELECT g.id, g.job, g.entity_name, g.entity_key, g.args, g.first_check_at, g.next_check_at,
          g.scheduled_by, g.scheduled_at, $2, $3, $4, $5, g.check_count + 1, 1, $6,
          NULL, NULL, $7::pg_catalog.regrole
      FROM pg_catalog.unnest($1) AS g"
);

statement! {
    fn archive_without_run(
        ids: &[i64], outcome: Text, now: Time, sqlstate: Option<Text>, message: Option<Text>, is_problem: bool
    ) = query,
    c"INSERT INTO awty.future_job_history (id, job, entity_name, entity_key, args, first_check_at, next_check_at,
          scheduled_by, scheduled_at, started_at, finished_at, run_time, lateness, check_count, attempts, outcome,
          sqlstate, message, role)
      SELECT f.id, f.job, f.entity_name, f.entity_key, f.args, f.first_check_at, f.next_check_at,
          f.scheduled_by, f.scheduled_at, u.started_at, greatest($3, u.started_at), coalesce(u.run_time, '0'),
          u.lateness, f.check_count, coalesce(u.runs, 0), $2, $4, $5, j.role
      FROM awty.future_job AS f LEFT JOIN awty_internal.check_stat AS u ON u.check_id = f.id LEFT JOIN awty.job AS j ON j.job = f.job
      WHERE f.id = ANY ($1)
        AND CASE j.keep_history WHEN 'none' THEN false WHEN 'ran' THEN u.runs > 0 WHEN 'problems' THEN $6 ELSE true END"
}

// A run that has ended its own check has already written the history row.
statement! {
    fn answer_own(id: i64, started_at: Time, finished_at: Time, run_time: TimeDelta, lateness: TimeDelta, outcome: Text) -> bool = query,
    c"UPDATE awty.future_job_history SET outcome = $6, started_at = $2, finished_at = greatest($2, $3), run_time = run_time + $4,
          lateness = $5, check_count = check_count + 1, attempts = attempts + 1
      WHERE id = $1"
}

pub fn end_own(row: Row, job: &Job, run: &RunRecord) {
    let RunRecord { started_at, finished_at, run_time, .. } = *run;
    let is_there = answer_own(row.id, started_at, finished_at, run_time, run.lateness(), word(Outcome::Done));
    if !is_there && !future_job::is_pending(row.id) {
        archive(&[(row, Outcome::Done)], job, run);
    }
}

pub fn end_run(id: i64, job: &Job, run: &RunRecord, end: &End) {
    let RunRecord { started_at, finished_at, run_time, .. } = *run;
    let (lateness, outcome) = (run.lateness(), word(end.outcome));
    let FailureTexts { sqlstate, message, context } = FailureTexts::of(end.failure);
    if is_kept(job, end.outcome) {
        let (done, role) = (end.done, job.role);
        archive_run(id, started_at, finished_at, run_time, lateness, done, outcome, sqlstate, message, role, context);
    }
    remove(&[id]);
}

/// The caller has deleted the checks' rows.
pub fn archive(checks: &[(Row, Outcome)], job: &Job, run: &RunRecord) {
    let mut left: Vec<&(Row, Outcome)> = checks.iter().filter(|(_, outcome)| is_kept(job, *outcome)).collect();
    while let Some((_, outcome)) = left.first() {
        let outcome = *outcome;
        let (same, others): (Vec<_>, Vec<_>) = left.into_iter().partition(|(_, other)| *other == outcome);
        left = others;
        let times = [
            time(run.started_at),
            time(run.finished_at.max(run.started_at)),
            interval(run.run_time),
            interval(run.lateness()),
        ];
        let word = arg(word(outcome));
        if let [(row, _)] = same[..] {
            let mut args = row.scheduled().to_vec();
            args.extend(times);
            args.extend([arg(row.check_count.saturating_add(1)), word, arg(job.role)]);
            archive_one().execute(&args);
            continue;
        }
        let rows = same.into_iter().map(|(row, _)| row.datum);
        let mut args = vec![Some(check_row::array(rows, relations::row_type()))];
        args.extend(times);
        args.extend([word, arg(job.role)]);
        archive_all().execute(&args);
    }
}

fn word(outcome: Outcome) -> Text {
    Text::from(outcome.as_str())
}

fn is_kept(job: &Job, outcome: Outcome) -> bool {
    outcome.kept(job.options.limits.keep_history, 1)
}

pub fn end(ids: &[i64], outcome: Outcome, now: Time, failure: Option<&Failure>) {
    if ids.is_empty() {
        return;
    }
    let FailureTexts { sqlstate, message, .. } = FailureTexts::of(failure);
    archive_without_run(ids, word(outcome), now, sqlstate, message, outcome.is_problem());
    remove(ids);
}

pub fn remove(ids: &[i64]) {
    future_job::remove(ids);
    check_stat::remove(ids);
}
