//! Schedules as the API shows and writes them. Each function works in the transaction of a request.

use super::{Request, Trouble};
use serde_json::Value;
use tokio_postgres::types::{FromSqlOwned, ToSql};

/// A schedule as the database tells it: lengths in milliseconds.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its id, which is also the place in a list.
    pub id: String,
    /// One more with each change.
    pub version: i64,
    /// It is not to be called any more.
    pub deleted: bool,
    /// All fields.
    pub fields: Value,
}

/// Which schedules a list has.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// In this state.
    pub state: Option<String>,
    /// Of this target.
    pub origin: Option<String>,
    /// With this label.
    pub label: Option<String>,
    /// With this text in the URI.
    pub q: Option<String>,
    /// Failing, or not.
    pub failing: Option<bool>,
}

/// The arguments of awty_http.schedule as text; none is its default.
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

/// A length in milliseconds.
macro_rules! ms {
    ($column:literal) => {
        concat!("(EXTRACT(epoch FROM ", $column, ") * 1000)::bigint")
    };
}

/// A schedule and its pending check.
macro_rules! schedules {
    () => {
        concat!(
            "SELECT s.* FROM (SELECT e.id, e.version, e.deleted_at IS NOT NULL AS deleted, e.uri, e.labels, e.entity_name, e.failing_since,
            CASE WHEN e.deleted_at IS NOT NULL THEN 'ended' WHEN e.paused THEN 'paused' WHEN f.held THEN 'held'
                 WHEN f.id IS NULL THEN 'ended' ELSE 'active' END AS state,
            pg_catalog.jsonb_build_object('id', e.id, 'uri', e.uri, 'every', ", ms!("e.every"), ", 'cron', e.cron, 'zone', e.zone,
                'at', e.at, 'after', ", ms!("e.after"), ", 'starts', e.starts, 'ends', e.ends, 'jitter', ", ms!("e.jitter"),
            ", 'catch_up', ", ms!("e.catch_up"), ", 'method', e.method, 'headers', e.headers, 'body', e.body, 'body_text', e.body_text,
                'body_base64', e.body_base64, 'timeout', ", ms!("e.timeout"), ", 'connect_timeout', ", ms!("e.connect_timeout"), ")
            || pg_catalog.jsonb_build_object('max_lateness', ", ms!("e.max_lateness"), ",
                'retries', pg_catalog.jsonb_build_object('max_attempts', e.max_attempts, 'first_delay', ", ms!("e.first_delay"), ",
                    'max_delay', ", ms!("e.max_delay"), "),
                'success', e.success, 'sign', e.sign, 'keep_response', e.keep_response, 'labels', e.labels,
                'description', e.description, 'paused', e.paused, 'why', coalesce(e.paused_note, e.verdict_note),
                'next_slot', CASE WHEN NOT f.held THEN f.next_check_at END,
                'in_flight', EXISTS (SELECT FROM awty.lease AS l WHERE l.id = f.id),
                'failing_since', e.failing_since, 'rounded_from', ", ms!("e.rounded_from"), ",
                'created_by', e.created_by::text, 'created_at', e.created_at) AS fields
            FROM awty_http.endpoint AS e LEFT JOIN awty.future_job AS f
                ON f.entity_name = e.entity_name AND f.entity_key = e.entity_key AND f.job = e.job) AS s "
        )
    };
}

const ONE: &str = concat!(schedules!(), "WHERE s.id = $1");
const LIST: &str = concat!(
    schedules!(),
    "WHERE NOT s.deleted AND s.id > $1 AND ($2::text IS NULL OR s.state = $2) AND ($3::text IS NULL OR s.entity_name = $3)
    AND ($4::text IS NULL OR s.labels @> ARRAY[$4]) AND ($5::text IS NULL OR pg_catalog.strpos(s.uri, $5) > 0)
    AND ($6::boolean IS NULL OR (s.failing_since IS NOT NULL) = $6) ORDER BY s.id LIMIT $7"
);
/// The same job as awty_http chooses for the current user: only ids that are its own or shown to it come out.
const OF_URI: &str = "SELECT awty_http_internal.id(awty_http_internal.job(), $1)";
const SLOT: &str = concat!("SELECT ", ms!("pg_catalog.current_setting('awty.slot')::interval"));
const SCHEDULE: &str = "SELECT awty_http.schedule(uri => $1, every => $2::text::interval, cron => $3, zone => $4,
    at => $5::text::timestamptz, after => $6::text::interval, starts => $7::text::timestamptz, ends => $8::text::timestamptz,
    jitter => $9::text::interval, catch_up => $10::text::interval, method => $11, headers => $12, body => $13, body_text => $14,
    body_base64 => $15, timeout => $16::text::interval, connect_timeout => $17::text::interval, retries => $18,
    max_lateness => $19::text::interval, success => $20, sign => $21, keep_response => $22, labels => $23, description => $24,
    paused => $25)";
const JOB: &str = "SELECT e.job FROM awty_http.endpoint AS e WHERE e.id = $1";
const UNSCHEDULE: &str = "SELECT awty_http.unschedule(e.uri) FROM awty_http.endpoint AS e WHERE e.id = $1";
const RUN: &str =
    "SELECT awty.check_now(e.entity_name, e.entity_key, e.job) FROM awty_http.endpoint AS e WHERE e.id = $1";
const PAUSE: &str = "SELECT awty_http_internal.pause($1, $2)";
const RESUME: &str = "SELECT awty_http_internal.resume($1)";
const ATTEMPTS: &str = "SELECT pg_catalog.jsonb_build_object('slot', a.first_check_at, 'at', a.leased_at, 'attempt', a.attempt, 'ok', a.ok,
    'key', a.key, 'worker', a.worker, 'message', a.message, 'result', a.result)
    FROM awty_http.endpoint AS e JOIN awty.attempt AS a
        ON a.entity_name = e.entity_name AND a.entity_key = e.entity_key AND a.job = e.job
    WHERE e.id = $1 ORDER BY a.ended_at DESC LIMIT $2";

fn row(row: &tokio_postgres::Row) -> Result<Row, Trouble> {
    let state: String = row.try_get("state")?;
    let mut fields: Value = row.try_get("fields")?;
    if let Some(fields) = fields.as_object_mut() {
        fields.insert("state".into(), state.into());
    }
    Ok(Row { id: row.try_get("id")?, version: row.try_get("version")?, deleted: row.try_get("deleted")?, fields })
}

/// One value, if there is a row.
async fn value<T: FromSqlOwned>(request: &Request, sql: &str, id: &str) -> Result<Option<T>, Trouble> {
    Ok(request.maybe(sql, &[&id]).await?.map(|row| row.try_get(0)).transpose()?)
}

/// The id of a URI for the role of this request.
pub async fn id_of(request: &Request, uri: &str) -> Result<String, Trouble> {
    Ok(value(request, OF_URI, uri).await?.unwrap_or_default())
}

/// One schedule, also when it is deleted.
pub async fn one(request: &Request, id: &str) -> Result<Option<Row>, Trouble> {
    request.maybe(ONE, &[&id]).await?.map(|found| row(&found)).transpose()
}

/// Schedules after an id.
pub async fn list(request: &Request, after: &str, filter: &Filter, limit: i64) -> Result<Vec<Row>, Trouble> {
    let Filter { state, origin, label, q, failing } = filter;
    request.rows(LIST, &[&after, state, origin, label, q, failing, &limit]).await?.iter().map(row).collect()
}

/// Milliseconds of a slot.
pub async fn slot(request: &Request) -> Result<i64, Trouble> {
    let row = request.maybe(SLOT, &[]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or(60_000))
}

/// Makes or replaces a schedule.
pub async fn schedule(request: &Request, w: &Wanted) -> Result<(), Trouble> {
    let first = [&w.every, &w.cron, &w.zone, &w.at, &w.after, &w.starts, &w.ends, &w.jitter, &w.catch_up, &w.method];
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![&w.uri];
    values.extend(first.map(|text| text as &(dyn ToSql + Sync)));
    let then: [&(dyn ToSql + Sync); 14] = [
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
    ];
    values.extend(then);
    request.maybe(SCHEDULE, &values).await.map(drop)
}

/// Ends a schedule.
pub async fn unschedule(request: &Request, id: &str) -> Result<(), Trouble> {
    request.maybe(UNSCHEDULE, &[&id]).await.map(drop)
}

/// Calls it now.
pub async fn run(request: &Request, id: &str) -> Result<(), Trouble> {
    request.maybe(RUN, &[&id]).await.map(drop)
}

/// Lets it stand still.
pub async fn pause(request: &Request, id: &str, note: Option<&str>) -> Result<(), Trouble> {
    request.maybe(PAUSE, &[&id, &note]).await.map(drop)
}

/// Lets it go on.
pub async fn resume(request: &Request, id: &str) -> Result<(), Trouble> {
    request.maybe(RESUME, &[&id]).await.map(drop)
}

/// The last calls, newest first.
pub async fn attempts(request: &Request, id: &str, limit: i64) -> Result<Vec<Value>, Trouble> {
    request.rows(ATTEMPTS, &[&id, &limit]).await?.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// The job of a schedule, of which its signing key is derived.
pub async fn job(request: &Request, id: &str) -> Result<Option<String>, Trouble> {
    value(request, JOB, id).await
}
