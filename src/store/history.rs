//! Moves ended checks from `awty.future_job` to the history.

use super::record::{End, FailureTexts, RunRecord};
use super::statement::Arg;
use super::typed::statement;
use super::{arg, interval, time};
use crate::pg::catch::Failure;
use crate::pg::insert::{Column, insert};
use crate::pg::relations;
use crate::pg::text::Text;
use crate::store::check_row::Row;
use crate::store::job::Job;
use crate::store::{check_stat, future_job};
use awty_core::{Outcome, Time};
use chrono::TimeDelta;
use pgrx::pg_sys;

// Runs are copied and deleted by separate statements. If an administrator has added rules (CREATE RULE) to the table,
// PostgreSQL may refuse a DELETE inside WITH.
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

const COLUMNS: [Column; 20] = [
    (c"id", pg_sys::INT8OID),
    (c"job", pg_sys::TEXTOID),
    (c"entity_name", pg_sys::TEXTOID),
    (c"entity_key", pg_sys::TEXTOID),
    (c"args", pg_sys::JSONBOID),
    (c"first_check_at", pg_sys::TIMESTAMPTZOID),
    (c"next_check_at", pg_sys::TIMESTAMPTZOID),
    (c"scheduled_by", pg_sys::REGROLEOID),
    (c"scheduled_at", pg_sys::TIMESTAMPTZOID),
    (c"started_at", pg_sys::TIMESTAMPTZOID),
    (c"finished_at", pg_sys::TIMESTAMPTZOID),
    (c"run_time", pg_sys::INTERVALOID),
    (c"lateness", pg_sys::INTERVALOID),
    (c"check_count", pg_sys::INT4OID),
    (c"attempts", pg_sys::INT4OID),
    (c"outcome", pg_sys::TEXTOID),
    (c"sqlstate", pg_sys::TEXTOID),
    (c"message", pg_sys::TEXTOID),
    (c"role", pg_sys::REGROLEOID),
    (c"context", pg_sys::TEXTOID),
];

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

// Adds the times of a run to the check's history row. The row already exists if the job's function ended its own check
// during the run.
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

/// Inserts the history rows of checks that ended with their first run. The caller has already deleted the checks.
pub fn archive(checks: &[(Row, Outcome)], job: &Job, run: &RunRecord) {
    let times = [
        time(run.started_at),
        time(run.finished_at.max(run.started_at)),
        interval(run.run_time),
        interval(run.lateness()),
    ];
    let role = arg(job.role);
    let rows: Vec<[Arg; 20]> = checks
        .iter()
        .filter(|(_, outcome)| is_kept(job, *outcome))
        .map(|(row, outcome)| {
            let [id, name, entity_name, entity_key, args, first, next, by, at] = row.scheduled();
            let [started, finished, run_time, lateness] = times;
            let (count, outcome) = (arg(row.check_count.saturating_add(1)), arg(word(*outcome)));
            [
                id,
                name,
                entity_name,
                entity_key,
                args,
                first,
                next,
                by,
                at,
                started,
                finished,
                run_time,
                lateness,
                count,
                arg(1),
                outcome,
                None,
                None,
                role,
                None,
            ]
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    let inserted = relations::oid(relations::HISTORY).map_or(0, |table| insert(table, &COLUMNS, &rows));
    for row in &rows[inserted..] {
        let mut args = row[..14].to_vec();
        args.extend([row[15], role]);
        archive_one().execute(&args);
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
