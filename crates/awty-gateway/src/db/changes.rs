//! Changes of schedules by requests.

use super::schedules::value;
use super::{Request, Trouble};
use serde_json::Value;
use tokio_postgres::types::ToSql;

/// The arguments of awty_http.schedule as text. None stands for the default.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)] // the names of the API's fields
pub struct Wanted {
    pub uri: String,
    pub every: Option<String>,
    pub cron: Option<String>,
    pub zone: Option<String>,
    pub at: Option<String>,
    pub after: Option<String>,
    pub starts: Option<String>,
    pub ends: Option<String>,
    pub jitter: Option<String>,
    pub catch_up: Option<String>,
    pub method: Option<String>,
    pub headers: Option<Value>,
    pub body: Option<Value>,
    pub body_text: Option<String>,
    pub body_base64: Option<String>,
    pub timeout: Option<String>,
    pub connect_timeout: Option<String>,
    pub retries: Option<Value>,
    pub max_lateness: Option<String>,
    pub success: Option<String>,
    pub sign: Option<bool>,
    pub keep_response: Option<bool>,
    pub labels: Option<Vec<String>>,
    pub description: Option<String>,
    pub paused: Option<bool>,
}

const SCHEDULE: &str = "SELECT awty_http.schedule(uri => $1, every => $2::text::interval, cron => $3, zone => $4,
    at => $5::text::timestamptz, after => $6::text::interval, starts => $7::text::timestamptz, ends => $8::text::timestamptz,
    jitter => $9::text::interval, catch_up => $10::text::interval, method => $11, headers => $12, body => $13, body_text => $14,
    body_base64 => $15, timeout => $16::text::interval, connect_timeout => $17::text::interval, retries => $18,
    max_lateness => $19::text::interval, success => $20, sign => $21, keep_response => $22, labels => $23, description => $24,
    paused => $25, \"replace\" => $26)";
const LOCK: &str = "SELECT awty_http_internal.lock($1)";
const UNSCHEDULE: &str = "SELECT awty_http.unschedule(e.uri) FROM awty_http.endpoint AS e WHERE e.id = $1";
const RUN: &str =
    "SELECT awty.check_now(e.entity_name, e.entity_key, e.job) FROM awty_http.endpoint AS e WHERE e.id = $1";
const PAUSE: &str = "SELECT awty_http_internal.pause($1, $2)";
const RESUME: &str = "SELECT awty_http_internal.resume($1)";
const HELD: &str = "SELECT s.database_held FROM awty.status AS s";

/// Creates or replaces a schedule.
pub async fn schedule(request: &Request, w: &Wanted, replace: bool) -> Result<(), Trouble> {
    let first = [&w.every, &w.cron, &w.zone, &w.at, &w.after, &w.starts, &w.ends, &w.jitter, &w.catch_up, &w.method];
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![&w.uri];
    values.extend(first.map(|text| text as &(dyn ToSql + Sync)));
    let then: [&(dyn ToSql + Sync); 15] = [
        &w.headers,
        &w.body,
        &w.body_text,
        &w.body_base64,
        &w.timeout,
        &w.connect_timeout,
        &w.retries,
        &w.max_lateness,
        &w.success,
        &w.sign,
        &w.keep_response,
        &w.labels,
        &w.description,
        &w.paused,
        &replace,
    ];
    values.extend(then);
    request.maybe(SCHEDULE, &values).await.map(drop)
}

/// Locks a schedule until the end of the request. Returns whether it exists and this role may change it.
pub async fn lock(request: &Request, id: &str) -> Result<bool, Trouble> {
    Ok(value::<Option<i64>>(request, LOCK, id).await?.flatten().is_some())
}

/// Ends a schedule.
pub async fn unschedule(request: &Request, id: &str) -> Result<(), Trouble> {
    request.maybe(UNSCHEDULE, &[&id]).await.map(drop)
}

/// Calls a schedule now.
pub async fn run(request: &Request, id: &str) -> Result<(), Trouble> {
    request.maybe(RUN, &[&id]).await.map(drop)
}

/// Pauses a schedule.
pub async fn pause(request: &Request, id: &str, note: Option<&str>) -> Result<(), Trouble> {
    request.maybe(PAUSE, &[&id, &note]).await.map(drop)
}

/// Resumes a schedule.
pub async fn resume(request: &Request, id: &str) -> Result<(), Trouble> {
    request.maybe(RESUME, &[&id]).await.map(drop)
}

/// Whether the whole database is held until awty.adopt().
pub async fn held(request: &Request) -> Result<bool, Trouble> {
    let row = request.maybe(HELD, &[]).await?;
    Ok(row.map(|row| row.try_get::<_, Option<bool>>(0)).transpose()?.flatten().unwrap_or(false))
}
