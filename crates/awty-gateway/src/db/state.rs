//! What the gateway asks before it works: who it is, whether the database is fit, which jobs it may claim.

use super::{Db, Trouble};
use chrono::{DateTime, Utc};
use std::time::Duration;

/// The database's side of readiness.
#[derive(Clone, Debug)]
pub struct Standing {
    /// A superuser, or above row security.
    pub too_mighty: bool,
    /// Of the extension; none: it is not there.
    pub version: Option<String>,
    /// A standby.
    pub standby: bool,
    /// The extension awty_http is there.
    pub has_http: bool,
    /// The width of a slot; none: awty is not loaded.
    pub slot: Option<Duration>,
}

/// A job that may be claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// How often its leases have to be extended.
    pub heartbeat: Option<Duration>,
}

/// Bounded figures of the jobs, for /metrics.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The job.
    pub job: String,
    /// Checks that are pending, due, failing and held.
    pub pending: i64,
    /// Due.
    pub overdue: i64,
    /// Failed at least once in a row.
    pub failing: i64,
    /// Standing still.
    pub held: i64,
    /// Since when the oldest is due.
    pub oldest: Option<DateTime<Utc>>,
    /// Ends that were counted: done, failed, timed out, otherwise.
    pub ends: [i64; 4],
}

const STANDING: &str = "SELECT r.rolsuper OR r.rolbypassrls,
    (SELECT e.extversion FROM pg_catalog.pg_extension AS e WHERE e.extname = 'awty'), pg_catalog.pg_is_in_recovery(),
    EXISTS (SELECT FROM pg_catalog.pg_extension AS e WHERE e.extname = 'awty_http'),
    EXTRACT(epoch FROM pg_catalog.current_setting('awty.slot', true)::interval)::float8
    FROM pg_catalog.pg_roles AS r WHERE r.rolname = CURRENT_USER";

/// By membership, or by awty.allow(…, 'claim').
const JOBS: &str = "SELECT j.name, EXTRACT(epoch FROM j.heartbeat)::float8 FROM awty.job AS j
    WHERE j.function_name IS NULL AND (j.name = 'http' OR j.name ^@ 'http.')
      AND (pg_catalog.pg_has_role(j.role::oid, 'MEMBER')
        OR EXISTS (SELECT FROM pg_catalog.unnest(j.claimers) AS c WHERE pg_catalog.pg_has_role(c::oid, 'MEMBER')))
    ORDER BY j.name";

/// What nobody waits for any more ends.
const BOUNDED: &str = "SELECT pg_catalog.set_config('statement_timeout', '5s', true)";

/// The largest by what is due; a job has three series, so there is a bound.
const FIGURES: &str =
    "SELECT s.job, s.pending, s.overdue, s.failing, s.held, s.oldest_overdue, s.done, s.failed, s.timed_out, s.other
    FROM awty.job_status AS s
    WHERE s.job = ANY ($1) ORDER BY s.overdue DESC, s.job LIMIT 100";

/// Those that something is known of; more than so many are not counted.
const TARGETS: &str = "SELECT s.state, pg_catalog.count(*) FROM (
        SELECT t.state FROM awty.target AS t WHERE t.job = ANY ($1) AND t.target IS NOT NULL LIMIT 10000) AS s
    GROUP BY s.state ORDER BY s.state";

impl Db {
    /// Who we are, and what is there.
    pub async fn standing(&self) -> Result<Standing, Trouble> {
        self.on(async |client| {
            let row = client.query_one(STANDING, &[]).await?;
            let (too_mighty, version) = (row.try_get(0)?, row.try_get(1)?);
            let slot = row.try_get::<_, Option<f64>>(4)?.and_then(|slot| Duration::try_from_secs_f64(slot).ok());
            Ok(Standing { too_mighty, version, standby: row.try_get(2)?, has_http: row.try_get(3)?, slot })
        })
        .await
    }

    /// The jobs to claim.
    pub async fn jobs(&self) -> Result<Vec<Job>, Trouble> {
        self.on(async |client| {
            let rows = client.query(JOBS, &[]).await?;
            let job = |row: &tokio_postgres::Row| {
                let beat: Option<f64> = row.try_get(1)?;
                Ok(Job { name: row.try_get(0)?, heartbeat: beat.map(Duration::from_secs_f64) })
            };
            rows.iter().map(job).collect()
        })
        .await
    }

    /// What their checks are up to, and how many targets are in which state.
    pub async fn figures(&self, jobs: &[String]) -> Result<(Vec<Figures>, Vec<(String, i64)>), Trouble> {
        self.on(async |client| {
            let transaction = client.transaction().await?;
            transaction.query_one(BOUNDED, &[]).await?;
            let rows = transaction.query(FIGURES, &[&jobs]).await?;
            let figures = |row: &tokio_postgres::Row| {
                Ok(Figures {
                    job: row.try_get(0)?,
                    pending: row.try_get(1)?,
                    overdue: row.try_get(2)?,
                    failing: row.try_get(3)?,
                    held: row.try_get(4)?,
                    oldest: row.try_get(5)?,
                    ends: [row.try_get(6)?, row.try_get(7)?, row.try_get(8)?, row.try_get(9)?],
                })
            };
            let figures = rows.iter().map(figures).collect::<Result<_, tokio_postgres::Error>>()?;
            let rows = transaction.query(TARGETS, &[&jobs]).await?;
            let states = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
            let states = states.collect::<Result<_, tokio_postgres::Error>>()?;
            transaction.commit().await?;
            Ok((figures, states))
        })
        .await
    }
}
