//! What the gateway asks before it works: who it is, whether the database is fit, which jobs it may claim.

use super::{Db, Trouble};
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

/// The job of a tenant whose role the gateway is a member of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// How often its leases have to be extended.
    pub heartbeat: Option<Duration>,
}

const STANDING: &str = "SELECT r.rolsuper OR r.rolbypassrls,
    (SELECT e.extversion FROM pg_catalog.pg_extension AS e WHERE e.extname OPERATOR(pg_catalog.=) 'awty'), pg_catalog.pg_is_in_recovery(),
    EXISTS (SELECT FROM pg_catalog.pg_extension AS e WHERE e.extname OPERATOR(pg_catalog.=) 'awty_http'),
    EXTRACT(epoch FROM pg_catalog.current_setting('awty.slot', true)::interval)::float8
    FROM pg_catalog.pg_roles AS r WHERE r.rolname OPERATOR(pg_catalog.=) CURRENT_USER";

/// Only the owner of extension awty_http writes `awty_http.tenant`. The name of a job gives no right.
const JOBS: &str = "SELECT j.job, EXTRACT(epoch FROM j.heartbeat)::float8
    FROM awty_http.tenant AS t
    JOIN awty.job AS j ON j.job OPERATOR(pg_catalog.=) t.job AND j.role::oid OPERATOR(pg_catalog.=) t.role::oid
    WHERE t.dropped_at IS NULL AND j.function_name IS NULL AND pg_catalog.pg_has_role(t.role::oid, 'MEMBER')
    ORDER BY j.job";

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

    /// The jobs to claim: those of tenants. Needs awty_http.
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
}
