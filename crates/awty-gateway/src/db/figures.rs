//! Invariant: each statement ends within 5 s and returns a bounded number of rows.

use super::{Db, Trouble};
use chrono::{DateTime, Utc};
use std::collections::HashMap;
use tokio_postgres::{Error, Row};

#[derive(Clone, Debug)]
pub struct Figures {
    pub job: String,
    pub pending: i64,
    pub overdue: i64,
    /// Number of failing schedules. Without the extension awty_http, number of pending checks whose last run failed.
    pub failing: i64,
    pub held: i64,
    pub oldest: Option<DateTime<Utc>>,
    pub ends: [i64; 4],
}

#[derive(Clone, Debug)]
pub struct Target {
    pub state: String,
    /// Job, target and end time of the target's open circuit breaker.
    pub open: Option<(String, String, DateTime<Utc>)>,
}

/// JIT is off, because compiling a statement takes longer than running the statement.
const BOUNDED: &str =
    "SELECT pg_catalog.set_config('statement_timeout', '5s', true), pg_catalog.set_config('jit', 'off', true),
    pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)";

/// Reads at most 100 jobs, because each job has several time series.
const FIGURES: &str =
    "SELECT s.job, s.pending, s.overdue, s.failing, s.held, s.oldest_overdue, s.done, s.failed, s.timed_out, s.other
    FROM awty.job_status AS s
    WHERE s.job = ANY ($1) ORDER BY s.overdue DESC, s.job LIMIT 100";

/// Counts schedules whose last call failed, even if no check is pending because all attempts have failed.
const FAILING: &str = "SELECT j.job, e.failing FROM pg_catalog.unnest($1::text[]) AS j (job)
    CROSS JOIN LATERAL (SELECT pg_catalog.count(*) AS failing FROM (
        SELECT FROM awty_http.endpoint AS f
        WHERE f.job = j.job AND f.failing_since IS NOT NULL AND f.deleted_at IS NULL LIMIT 10000) AS f) AS e";

/// Leaves out targets whose name is not ASCII, because a server with encoding SQL_ASCII may be unable to send their
/// names.
const TARGETS: &str = "SELECT t.state, t.job, t.target, t.until FROM pg_catalog.unnest($1::text[]) AS j (job)
    CROSS JOIN LATERAL (
        SELECT a.state, a.job, a.target, CASE WHEN a.state = 'open' THEN a.blocked_until END AS until FROM awty.target AS a
        WHERE a.job = j.job AND a.target !~ '[^ -~]' LIMIT greatest(10000 / greatest(pg_catalog.cardinality($1), 1), 1)) AS t";

/// Counts checks that ended as `missed` at least 10 s ago, because later ends may not be committed yet. Reads at most
/// 50,000 problems of each job, because the next scrape would count the same problems again after a timeout.
const MISSED: &str = "SELECT u.until, h.job, h.missed
    FROM (SELECT least(pg_catalog.now() - '10 s'::interval, $2::timestamptz + '10 min'::interval) AS until) AS u
    LEFT JOIN LATERAL (
        SELECT j.job, pg_catalog.count(*) FILTER (WHERE p.outcome = 'missed') AS missed FROM pg_catalog.unnest($1::text[]) AS j (job)
        CROSS JOIN LATERAL (
            SELECT f.outcome FROM awty.future_job_history AS f
            WHERE f.job = j.job AND f.outcome <> ALL ('{done,met,cancelled,replaced}') AND f.finished_at > $2 AND f.finished_at <= u.until
            LIMIT 50000) AS p
        GROUP BY j.job) AS h ON true";

impl Db {
    pub async fn figures(&self, jobs: &[String], has_http: bool) -> Result<(Vec<Figures>, Vec<Target>), Trouble> {
        self.on(async |client| {
            let transaction = client.transaction().await?;
            transaction.query_one(BOUNDED, &[]).await?;
            let rows = transaction.query(FIGURES, &[&jobs]).await?;
            let mut figures = rows.iter().map(figures).collect::<Result<Vec<_>, Error>>()?;
            if has_http {
                let rows = transaction.query(FAILING, &[&jobs]).await?;
                let failing = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
                let failing = failing.collect::<Result<HashMap<String, i64>, Error>>()?;
                figures.iter_mut().for_each(|one| one.failing = failing.get(&one.job).copied().unwrap_or(0));
            }
            let rows = transaction.query(TARGETS, &[&jobs]).await?;
            let targets = rows.iter().map(target).collect::<Result<_, Error>>()?;
            transaction.commit().await?;
            Ok((figures, targets))
        })
        .await
    }

    /// Counts each job's missed checks after `since`. Also returns the time up to which it counted. The next call
    /// passes this time as `since`. Without `since`, returns no counts.
    pub async fn missed(
        &self,
        jobs: &[String],
        since: Option<DateTime<Utc>>,
    ) -> Result<(DateTime<Utc>, Vec<(String, i64)>), Trouble> {
        self.on(async |client| {
            let transaction = client.transaction().await?;
            transaction.query_one(BOUNDED, &[]).await?;
            let rows = transaction.query(MISSED, &[&jobs, &since]).await?;
            transaction.commit().await?;
            let (mut until, mut missed) = (DateTime::UNIX_EPOCH, Vec::new());
            for row in &rows {
                until = row.try_get(0)?;
                if let Some(job) = row.try_get(1)? {
                    missed.push((job, row.try_get(2)?));
                }
            }
            Ok((until, missed))
        })
        .await
    }
}

fn figures(row: &Row) -> Result<Figures, Error> {
    Ok(Figures {
        job: row.try_get(0)?,
        pending: row.try_get(1)?,
        overdue: row.try_get(2)?,
        failing: row.try_get(3)?,
        held: row.try_get(4)?,
        oldest: row.try_get(5)?,
        ends: [row.try_get(6)?, row.try_get(7)?, row.try_get(8)?, row.try_get(9)?],
    })
}

fn target(row: &Row) -> Result<Target, Error> {
    let until: Option<DateTime<Utc>> = row.try_get(3)?;
    let open = until.map(|until| Ok::<_, Error>((row.try_get(1)?, row.try_get(2)?, until))).transpose()?;
    Ok(Target { state: row.try_get(0)?, open })
}
