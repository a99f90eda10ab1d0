use super::calls::{Item, bounded, item};
use super::{Request, Trouble};
use serde_json::Value;

#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    pub concurrency: Option<i32>,
    pub rate: Option<f64>,
    pub burst: Option<i32>,
}

macro_rules! target {
    () => {
        "SELECT pg_catalog.jsonb_build_object('origin', t.target, 'concurrency', t.concurrency, 'rate', t.rate::float8, 'burst', t.burst,
            'in_flight', t.in_flight, 'state', t.state, 'blocked_until', t.blocked_until, 'why', t.why), ARRAY[coalesce(t.target, '')] "
    };
}

pub const LIST: &str = bounded!(
    target!(),
    "FROM awty_http_internal.targets($1, $2::bigint::integer) AS t ORDER BY coalesce(t.target, '') COLLATE \"C\""
);
const ONE: &str = concat!(
    target!(),
    "FROM awty_http_internal.target($1) AS t
    WHERE EXISTS (SELECT FROM awty.target AS k WHERE k.job = t.job AND k.target = $1)
       OR EXISTS (SELECT FROM awty_http.endpoint AS e WHERE e.job = t.job AND e.entity_name = $1)"
);
const LIMIT: &str =
    "SELECT awty.alter_target(awty_http_internal.job_to_schedule(), $1, $2::integer, $3::float8::numeric, $4::integer,
    reset => pg_catalog.array_remove(ARRAY[CASE WHEN $2::integer IS NULL THEN 'concurrency' END,
        CASE WHEN $3::float8 IS NULL THEN 'rate' END, CASE WHEN $4::integer IS NULL THEN 'burst' END], NULL))";
const BLOCK: &str =
    "SELECT awty.alter_target(awty_http_internal.job_to_schedule(), $1, blocked_until => CASE WHEN $3::text IS NOT NULL
    THEN pg_catalog.clock_timestamp() + $3::interval ELSE $2::text::timestamptz END, note => $4)";

/// This lock keeps concurrent requests from changing the limits after a condition such as `If-Match` was checked.
const LOCK: &str = "SELECT awty_http_internal.lock_limits()";

/// The first item has no name, because its limits apply to all targets together.
pub async fn list(request: &Request, after: Option<&str>, limit: i64) -> Result<Vec<Item>, Trouble> {
    request.rows(LIST, &[&after, &limit]).await?.iter().map(item).collect()
}

pub async fn one(request: &Request, origin: &str) -> Result<Option<Value>, Trouble> {
    Ok(request.maybe(ONE, &[&origin]).await?.map(|row| row.try_get(0)).transpose()?)
}

pub async fn lock(request: &Request) -> Result<(), Trouble> {
    request.maybe(LOCK, &[]).await.map(drop)
}

pub async fn limit(request: &Request, origin: &str, limits: Limits) -> Result<(), Trouble> {
    let Limits { concurrency, rate, burst } = limits;
    request.maybe(LIMIT, &[&origin, &concurrency, &rate, &burst]).await.map(drop)
}

/// `-infinity` unblocks the target.
pub async fn block(
    request: &Request,
    origin: &str,
    until: Option<&str>,
    length: Option<&str>,
    note: Option<&str>,
) -> Result<(), Trouble> {
    request.maybe(BLOCK, &[&origin, &until, &length, &note]).await.map(drop)
}
