use super::{Db, Trouble};
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Standing {
    pub role: String,
    /// True for a superuser and for a role with BYPASSRLS.
    pub too_mighty: bool,
    pub is_off: bool,
    pub version: Option<String>,
    pub standby: bool,
    pub has_http: bool,
    /// `None` if the server has not loaded awty's library.
    pub slot: Option<Duration>,
}

/// A job whose role has the gateway's role as a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub name: String,
    pub heartbeat: Option<Duration>,
}

const STANDING: &str = "SELECT r.rolsuper OR r.rolbypassrls,
    (SELECT e.extversion FROM pg_catalog.pg_extension AS e WHERE e.extname OPERATOR(pg_catalog.=) 'awty'), pg_catalog.pg_is_in_recovery(),
    EXISTS (SELECT FROM pg_catalog.pg_extension AS e WHERE e.extname OPERATOR(pg_catalog.=) 'awty_http'),
    EXTRACT(epoch FROM pg_catalog.current_setting('awty.slot', true)::interval)::float8,
    pg_catalog.quote_ident(r.rolname), pg_catalog.current_setting('awty.enabled', true) OPERATOR(pg_catalog.=) 'off'
    FROM pg_catalog.pg_roles AS r WHERE r.rolname OPERATOR(pg_catalog.=) CURRENT_USER";

/// Reads tenants from `awty_http.tenant` and not from the names of jobs, because only the owner of awty_http can write
/// this table.
const JOBS: &str = "SELECT j.job, EXTRACT(epoch FROM j.heartbeat)::float8
    FROM awty_http.tenant AS t
    JOIN awty.job AS j ON j.job OPERATOR(pg_catalog.=) t.job AND j.role::oid OPERATOR(pg_catalog.=) t.role::oid
    WHERE t.dropped_at IS NULL AND j.function_name IS NULL AND pg_catalog.pg_has_role(t.role::oid, 'MEMBER')
    ORDER BY j.job";

impl Db {
    pub async fn standing(&self) -> Result<Standing, Trouble> {
        self.on(async |client| {
            let row = client.query_one(STANDING, &[]).await?;
            let (too_mighty, version) = (row.try_get(0)?, row.try_get(1)?);
            let slot = row.try_get::<_, Option<f64>>(4)?.and_then(|slot| Duration::try_from_secs_f64(slot).ok());
            let is_off = row.try_get::<_, Option<bool>>(6)?.unwrap_or(false);
            let (standby, has_http, role) = (row.try_get(2)?, row.try_get(3)?, row.try_get(5)?);
            Ok(Standing { role, too_mighty, is_off, version, standby, has_http, slot })
        })
        .await
    }

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
