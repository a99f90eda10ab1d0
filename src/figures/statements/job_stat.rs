use crate::pg::clock;
use crate::pg::text::Text;
use crate::store::statement::{Arg, Rows};
use crate::store::typed::{Row, number, row, statement};
use crate::store::{arg, from_timestamptz, interval, time};
use awty_core::Time;
use awty_core::figures::Figures;
use chrono::TimeDelta;
use pgrx::datum::{Interval, TimestampWithTimeZone};
use std::collections::HashSet;

/// If a job has more pending checks than this, their number is estimated.
pub const COUNTED: i64 = 100_000;

statement! {
    pub fn all() -> Vec<StoredFigures> = query,
    c"SELECT s.job, s.runs, s.done, s.failed, s.timed_out, s.retries, s.other, s.late_10ms, s.late_100ms, s.late_1s, s.late_10s,
          s.late_1min, s.later, s.run_time, s.max_run_time, s.last_run_at, s.last_end_at, s.last_outcome, s.last_success_at,
          s.last_failure_at, s.stats_since, s.met, s.late
      FROM awty_internal.job_stat AS s
      WHERE s.job = '' OR EXISTS (SELECT FROM awty.job AS j WHERE j.job = s.job AND j.registered_at <= s.stats_since)"
}

statement!(
    upsert,
    [
        TEXTOID, INT8OID, INT8OID, INT8OID, INT8OID, INT8OID, INT8OID, INT8OID, INT8OID, INT8OID, INT8OID, INT8OID, INT8OID,
        INTERVALOID, INTERVALOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID,
        INT8OID, INT8OID
    ],
    c"INSERT INTO awty_internal.job_stat AS s (job, runs, done, failed, timed_out, retries, other, late_10ms, late_100ms, late_1s,
          late_10s, late_1min, later, run_time, max_run_time, last_run_at, last_end_at, last_outcome, last_success_at,
          last_failure_at, stats_since, met, late)
      SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
          greatest($21, (SELECT j.registered_at FROM awty.job AS j WHERE j.job = $1)), $22, $23
      WHERE $1 = '' OR EXISTS (SELECT FROM awty.job AS j WHERE j.job = $1)
      ON CONFLICT (job) DO UPDATE SET runs = excluded.runs, done = excluded.done, failed = excluded.failed,
          timed_out = excluded.timed_out, retries = excluded.retries, other = excluded.other, late_10ms = excluded.late_10ms,
          late_100ms = excluded.late_100ms, late_1s = excluded.late_1s, late_10s = excluded.late_10s,
          late_1min = excluded.late_1min, later = excluded.later, run_time = excluded.run_time,
          max_run_time = excluded.max_run_time, last_run_at = excluded.last_run_at, last_end_at = excluded.last_end_at,
          last_outcome = excluded.last_outcome, last_success_at = excluded.last_success_at,
          last_failure_at = excluded.last_failure_at, stats_since = excluded.stats_since,
          met = excluded.met, late = excluded.late"
);

statement! {
    pub fn gone() -> Vec<Text> = query,
    c"SELECT s.job FROM awty_internal.job_stat AS s
      WHERE s.job <> '' AND NOT EXISTS (SELECT FROM awty.job AS j WHERE j.job = s.job AND j.registered_at <= s.stats_since)"
}

statement! {
    fn names() -> Vec<Text> = query,
    c"SELECT s.job FROM awty_internal.job_stat AS s"
}

statement! {
    fn delete(job: &Text) = query,
    c"DELETE FROM awty_internal.job_stat AS s WHERE s.job = $1"
}

statement! {
    fn count_pending(job: &Text, now: Time, limit: i64) -> Option<Pending> = query,
    c"SELECT
          (SELECT pg_catalog.count(*) FROM (
              SELECT 1 FROM awty.future_job AS f WHERE f.job = $1 AND NOT f.held LIMIT $3) AS pending),
          (SELECT pg_catalog.count(*) FROM (
              SELECT 1 FROM awty.future_job AS f WHERE f.job = $1 AND NOT f.held AND f.next_check_at <= $2 LIMIT $3) AS overdue),
          (SELECT f.next_check_at FROM awty.future_job AS f
           WHERE f.job = $1 AND NOT f.held AND f.next_check_at <= $2 ORDER BY f.next_check_at LIMIT 1),
          (SELECT f.next_check_at FROM awty.future_job AS f
           WHERE f.job = $1 AND NOT f.held AND f.next_check_at > $2 ORDER BY f.next_check_at LIMIT 1),
          (SELECT pg_catalog.count(*) FROM (
              SELECT 1 FROM awty.future_job AS f WHERE f.job = $1 AND f.attempt > 0 LIMIT $3) AS failing),
          (SELECT pg_catalog.count(*) FROM (
              SELECT f.id FROM awty.future_job AS f WHERE f.job = $1 AND f.held LIMIT $3) AS held
           WHERE NOT EXISTS (SELECT FROM awty_internal.hold AS o WHERE o.check_id = held.id AND o.silent))"
}

statement! {
    /// Estimates the number from about 100 pages of the table, because the counts of other jobs may take long.
    pub fn estimate(job: &Text) -> i64 = query(number),
    c"SELECT (c.reltuples * s.share)::pg_catalog.int8 FROM pg_catalog.pg_class AS c CROSS JOIN (
          SELECT pg_catalog.avg((f.job = $1 AND NOT f.held)::pg_catalog.int4) AS share
          FROM awty.future_job AS f TABLESAMPLE pg_catalog.system((
              SELECT least(100, 10000.0 / greatest(t.relpages, 1)) FROM pg_catalog.pg_class AS t
              WHERE t.oid = 'awty.future_job'::pg_catalog.regclass)) REPEATABLE (0)) AS s
      WHERE c.oid = 'awty.future_job'::pg_catalog.regclass"
}

pub struct StoredFigures {
    pub job: Text,
    pub figures: Figures,
    pub since: Time,
}

#[derive(Default)]
pub struct Pending {
    pub pending: i64,
    pub overdue: i64,
    pub oldest_overdue: Option<TimestampWithTimeZone>,
    pub next_slot: Option<TimestampWithTimeZone>,
    pub failing: i64,
    pub held: i64,
}

row!(Pending { pending, overdue, oldest_overdue, next_slot, failing, held });

impl Row for StoredFigures {
    fn read(rows: &Rows, row: usize) -> Option<Self> {
        let number = |column| rows.get::<i64>(row, column).unwrap_or(0).max(0).unsigned_abs();
        let delta = |column| rows.get::<Interval>(row, column).as_ref().and_then(clock::delta).unwrap_or_default();
        let at = |column| rows.get::<TimestampWithTimeZone>(row, column).map(from_timestamptz);
        let outcome = rows.get::<Text>(row, 18).and_then(|word| word.to_string().parse().ok());
        let figures = Figures {
            runs: number(2),
            done: number(3),
            failed: number(4),
            timed_out: number(5),
            retries: number(6),
            other: number(7),
            met: number(22),
            late_rows: number(23),
            late: std::array::from_fn(|place| number(8 + place as i32)),
            run_time: delta(14),
            max_run_time: delta(15),
            last_run_at: at(16),
            last_end: at(17).zip(outcome),
            last_success_at: at(19),
            last_failure_at: at(20),
        };
        Some(StoredFigures { job: rows.get(row, 1)?, figures, since: at(21)? })
    }
}

pub fn store(stored: &StoredFigures) -> bool {
    let StoredFigures { job, figures, since } = stored;
    let number = |number: u64| arg(i64::try_from(number).unwrap_or(i64::MAX));
    let at = |at: Option<Time>| at.and_then(time);
    let delta = |delta: TimeDelta| interval(delta);
    let mut args: Vec<Arg> = vec![Some(job.datum())];
    args.extend(
        [figures.runs, figures.done, figures.failed, figures.timed_out, figures.retries, figures.other].map(number),
    );
    args.extend(figures.late.map(number));
    args.extend([delta(figures.run_time), delta(figures.max_run_time), at(figures.last_run_at)]);
    args.push(at(figures.last_end.map(|(at, _)| at)));
    args.push(figures.last_end.map(|(_, outcome)| Text::from(outcome.as_str()).datum()));
    args.extend([at(figures.last_success_at), at(figures.last_failure_at), time(*since)]);
    args.extend([figures.met, figures.late_rows].map(number));
    upsert().execute(&args) == 1
}

pub fn keep_only(jobs: &HashSet<Vec<u8>>) {
    names().iter().filter(|name| !jobs.contains(name.as_bytes())).for_each(delete);
}

pub fn pending(job: &Text, now: Time) -> Pending {
    count_pending(job, now, COUNTED + 1).unwrap_or_default()
}
