//! Invariant: statements find operators and functions only in schemas that other roles cannot write to.

use super::{Db, Trouble};
use crate::deliver::request::Delivery;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::Json;

/// A call must end this long before its lease expires, so that the gateway has time to store the answer.
const BOOKING: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct Lease {
    pub lease: i64,
    pub delivery: Delivery,
    /// The arguments are JSON text, because jsonb allows numbers and nesting that [`serde_json::Value`] does not allow.
    pub args: Option<Box<RawValue>>,
    pub endpoint: Option<Endpoint>,
    /// The tenant's role, or an empty text if the job no longer belongs to a tenant.
    pub role: String,
    leased_at: DateTime<Utc>,
    deadline: DateTime<Utc>,
    seen: Instant,
}

#[derive(Clone, Debug)]
pub struct Endpoint {
    pub id: String,
    pub failing: bool,
    pub deleted: bool,
}

impl Lease {
    /// Returns the database server's time, because this machine's clock may be wrong.
    pub fn now(&self) -> DateTime<Utc> {
        self.leased_at + TimeDelta::from_std(self.seen.elapsed()).unwrap_or(TimeDelta::MAX)
    }

    pub fn age(&self) -> Duration {
        self.seen.elapsed()
    }

    pub fn left(&self) -> Duration {
        let left = (self.deadline - self.now()).to_std().unwrap_or_default();
        left - BOOKING.min(left / 10)
    }
}

/// Flushes each claim to disk. If a crash undid a claim, the gateway would repeat the calls with new idempotency keys.
///
/// `$4` limits the wait for a lock. A claim of several jobs does not wait for other claims. A job with the option `notify`
/// may wait for PostgreSQL's lock for NOTIFY, which any role can hold.
const CLAIM: &str =
    "SELECT l.lease, l.job, l.entity_name, l.entity_key, l.args, l.attempt, l.check_count, l.first_check_at,
    l.next_check_at, l.key, l.leased_at, l.deadline
    FROM pg_catalog.set_config('synchronous_commit', CASE WHEN pg_catalog.current_setting('awty.synchronous_commit', true)::bool
        THEN 'on' ELSE 'local' END, true) AS s (setting), pg_catalog.set_config('lock_timeout', $4, true) AS t (setting),
    LATERAL awty.claim($1, $2, CASE WHEN s.setting IS NOT NULL AND t.setting IS NOT NULL THEN $3::int END) AS l";
const NEXT: &str = "SELECT EXTRACT(epoch FROM awty.next_claim_in($1))::float8";
const HEARTBEAT: &str = "SELECT awty.heartbeat($1)
    FROM pg_catalog.set_config('synchronous_commit', 'off', true) AS s (setting)";
const REQUEUE: &str = "SELECT awty.requeue($1)";
const CLAIMED: &str =
    "SELECT c.lease, c.tenant, c.role, c.id, c.failing, c.deleted, c.args FROM awty_http_internal.claimed($1) AS c";

fn lease(row: &Row, seen: Instant) -> Result<Lease, tokio_postgres::Error> {
    let delivery = Delivery {
        job: row.try_get(1)?,
        tenant: 0,
        entity_name: row.try_get(2)?,
        entity_key: row.try_get(3)?,
        attempt: u32::try_from(row.try_get::<_, i32>(5)?).unwrap_or(1),
        check_count: row.try_get(6)?,
        first_check_at: row.try_get(7)?,
        next_check_at: row.try_get(8)?,
        key: row.try_get(9)?,
    };
    Ok(Lease {
        lease: row.try_get(0)?,
        delivery,
        args: row.try_get::<_, Option<Json<_>>>(4)?.map(|args| args.0),
        endpoint: None,
        role: String::new(),
        leased_at: row.try_get(10)?,
        deadline: row.try_get(11)?,
        seen,
    })
}

impl Db {
    /// Waits at most `patience` for a lock, which must be shorter than the time after which the gateway gives up the
    /// connection, because no worker would know the leases of a later claim.
    pub async fn claim(
        &self,
        jobs: &[String],
        worker: &str,
        max: i32,
        patience: Duration,
    ) -> Result<Vec<Lease>, Trouble> {
        self.on(async |client| {
            let claim = client.prepare_cached(CLAIM).await?;
            let rows = client.query(&claim, &[&jobs, &worker, &max, &format!("{}ms", patience.as_millis())]).await?;
            let seen = Instant::now();
            rows.iter().map(|row| lease(row, seen)).collect()
        })
        .await
    }

    pub async fn next_claim_in(&self, jobs: &[String]) -> Result<Duration, Trouble> {
        self.on(async |client| {
            let next = client.prepare_cached(NEXT).await?;
            let seconds: f64 = client.query_one(&next, &[&jobs]).await?.try_get(0)?;
            Ok(Duration::try_from_secs_f64(seconds).unwrap_or_default())
        })
        .await
    }

    pub async fn heartbeat(&self, leases: &[i64]) -> Result<Vec<i64>, Trouble> {
        self.on(async |client| {
            let beat = client.prepare_cached(HEARTBEAT).await?;
            client.query_one(&beat, &[&leases]).await?.try_get(0)
        })
        .await
    }

    pub async fn requeue(&self, leases: &[i64]) -> Result<i64, Trouble> {
        self.on(async |client| client.query_one(REQUEUE, &[&leases]).await?.try_get(0)).await
    }

    /// This query is a separate statement after the claim, so that its snapshot contains the claim.
    pub async fn add_definitions(&self, leases: &mut [Lease]) -> Result<(), Trouble> {
        let numbers: Vec<i64> = leases.iter().map(|lease| lease.lease).collect();
        let rows = self
            .on(async |client| {
                let claimed = client.prepare_cached(CLAIMED).await?;
                client.query(&claimed, &[&numbers]).await
            })
            .await?;
        let found = rows.iter().map(|row| Ok::<_, tokio_postgres::Error>((row.try_get(0)?, row)));
        let found = found.collect::<Result<HashMap<i64, &Row>, _>>()?;
        for lease in leases {
            let Some(row) = found.get(&lease.lease) else { continue };
            (lease.delivery.tenant, lease.role) = (row.try_get(1)?, row.try_get(2)?);
            let Some(args) = row.try_get::<_, Option<Json<_>>>(6)? else { continue };
            lease.args = Some(args.0);
            lease.endpoint = match row.try_get::<_, Option<String>>(3)? {
                Some(id) => Some(Endpoint { id, failing: row.try_get(4)?, deleted: row.try_get(5)? }),
                None => None,
            };
        }
        Ok(())
    }
}
