//! What /metrics asks of the database.
//!
//! Invariant: each statement ends by itself within 5 s, and gives a bounded number of rows.

use super::{Db, Trouble};
use chrono::{DateTime, Utc};
use std::collections::HashMap;
use tokio_postgres::{Error, Row};

/// What the checks of a job are up to.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The job.
    pub job: String,
    /// Checks that are pending, due and held.
    pub pending: i64,
    /// Due.
    pub overdue: i64,
    /// Schedules whose last call failed; without awty_http, pending checks whose last run failed.
    pub failing: i64,
    /// Standing still.
    pub held: i64,
    /// Since when the oldest is due.
    pub oldest: Option<DateTime<Utc>>,
    /// Ends that were counted: done, failed, timed out, otherwise.
    pub ends: [i64; 4],
}

/// A target that something is known of.
#[derive(Clone, Debug)]
pub struct Target {
    /// As awty.target says.
    pub state: String,
    /// Its job and name, and until when its breaker is open.
    pub open: Option<(String, String, DateTime<Utc>)>,
}

/// What nobody waits for any more ends; JIT would only compile for longer than that reads. Names are found in pg_catalog alone.
const BOUNDED: &str =
    "SELECT pg_catalog.set_config('statement_timeout', '5s', true), pg_catalog.set_config('jit', 'off', true),
    pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)";

/// The largest by what is due; a job has a few series, so there is a bound.
const FIGURES: &str =
    "SELECT s.job, s.pending, s.overdue, s.failing, s.held, s.oldest_overdue, s.done, s.failed, s.timed_out, s.other
    FROM awty.job_status AS s
    WHERE s.job = ANY ($1) ORDER BY s.overdue DESC, s.job LIMIT 100";

/// A check whose failure was final is over, but its schedule goes on failing; beyond so many they are not counted.
const FAILING: &str = "SELECT e.job, pg_catalog.count(*)
    FROM (SELECT f.job FROM awty_http.endpoint AS f
          WHERE f.failing_since IS NOT NULL AND f.deleted_at IS NULL AND f.job = ANY ($1) LIMIT 100000) AS e
    GROUP BY e.job";

/// Those that something is known of; more than so many are not counted. No call is made to a name that is not ASCII, and in a database of
/// the encoding SQL_ASCII the server could not send such a name.
const TARGETS: &str = "SELECT t.state, t.job, t.target, CASE WHEN t.state = 'open' THEN t.blocked_until END
    FROM awty.target AS t WHERE t.job = ANY ($1) AND t.target !~ '[^ -~]' LIMIT 10000";

/// What ended in the last seconds may not have committed yet, so it is counted by the next scrape. A long time is made up for in parts.
const MISSED: &str = "SELECT u.until, h.job, h.missed
    FROM (SELECT least(pg_catalog.now() - '10 s'::interval, $2::timestamptz + '10 min'::interval) AS until) AS u
    LEFT JOIN LATERAL (
        SELECT f.job, pg_catalog.count(*) AS missed FROM awty.future_job_history AS f
        WHERE f.job = ANY ($1) AND f.outcome = 'missed' AND f.finished_at > $2 AND f.finished_at <= u.until
        GROUP BY f.job) AS h ON true";

impl Db {
    /// What the checks of the jobs are up to, and their targets. `has_http`: schedules are counted, too.
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

    /// How many checks of which jobs have ended as missed since then, and until when that is known; the first time, only that.
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
            let (mut until, mut missed) = (DateTime::UNIX_EPOCH, Vec::new()); // there is a row
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
