//! Shapes of requests and answers for `/v1/openapi.json`. Tests compare them with real answers.
//!
//! Does not: read or write anything. The database and `show` build the answers.
#![allow(dead_code, missing_docs)] // only the document reads these; a field has a comment if its name does not say enough

mod around;

pub use around::*;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A length of time, such as `10s` or `1h 30m`; what is written may also be `10 seconds` or `PT10S`.
#[derive(ToSchema)]
#[schema(value_type = String, example = "10s")]
pub struct Length(String);

/// How often it is tried.
#[derive(ToSchema)]
pub struct Retries {
    max_attempts: Option<i32>,
    first_delay: Option<Length>,
    max_delay: Option<Length>,
}

/// What is called, how, and by exactly one of every, cron, at and after: when.
#[derive(ToSchema)]
pub struct ScheduleWanted {
    /// Not where the address says it.
    uri: Option<String>,
    every: Option<Length>,
    cron: Option<String>,
    /// Of cron, such as Europe/Berlin.
    zone: Option<String>,
    at: Option<DateTime<Utc>>,
    after: Option<Length>,
    starts: Option<DateTime<Utc>>,
    ends: Option<DateTime<Utc>>,
    jitter: Option<Length>,
    catch_up: Option<Length>,
    /// POST, GET, HEAD, PUT, PATCH or DELETE.
    method: Option<String>,
    headers: Option<Map<String, Value>>,
    body: Option<Value>,
    body_text: Option<String>,
    body_base64: Option<String>,
    timeout: Option<Length>,
    connect_timeout: Option<Length>,
    retries: Option<Retries>,
    max_lateness: Option<Length>,
    /// Statuses, such as 200-299,404.
    success: Option<String>,
    sign: Option<bool>,
    keep_response: Option<bool>,
    labels: Option<Vec<String>>,
    description: Option<String>,
    paused: Option<bool>,
}

/// A call in short.
#[derive(ToSchema)]
pub struct Last {
    slot: DateTime<Utc>,
    at: DateTime<Utc>,
    attempt: i32,
    status: Option<i32>,
    /// The short name of what went wrong.
    fault: Option<String>,
    duration: Option<Length>,
    lateness: Option<Length>,
}

/// Calls of the last 24 hours, whole ones, and of the one that has begun.
#[derive(ToSchema)]
pub struct Counts {
    ok: i64,
    failed: i64,
    dropped: i64,
}

/// A schedule and how it stands.
#[derive(ToSchema)]
pub struct Schedule {
    #[serde(flatten)]
    wanted: ScheduleWanted,
    id: String,
    /// active, paused by a person, held by awty or its endpoint, blocked target, ended.
    state: String,
    why: Option<String>,
    next_slot: Option<DateTime<Utc>>,
    in_flight: bool,
    last: Option<Last>,
    failing_since: Option<DateTime<Utc>>,
    counts: Counts,
    rounded_from: Option<Length>,
    created_by: String,
    created_at: DateTime<Utc>,
    deleted_at: Option<DateTime<Utc>>,
}

/// A page of schedules, or one where a URI is asked.
#[derive(ToSchema)]
pub struct Schedules {
    items: Vec<Schedule>,
}

/// Why, in words.
#[derive(ToSchema)]
pub struct Note {
    note: Option<String>,
}

/// A call.
#[derive(ToSchema)]
pub struct Attempt {
    #[serde(flatten)]
    last: Last,
    ended_at: DateTime<Utc>,
    ok: bool,
    message: Option<String>,
    key: String,
    worker: String,
    sent: Option<bool>,
    address: Option<String>,
    location: Option<String>,
    note: Option<String>,
    body: Option<String>,
    /// queue, name, connect, tls, first_byte, total.
    phases: Map<String, Value>,
}

#[derive(ToSchema)]
pub struct Attempts {
    items: Vec<Attempt>,
}

#[derive(ToSchema)]
pub struct Times {
    items: Vec<DateTime<Utc>>,
}

#[derive(ToSchema)]
pub struct Lengths {
    p50: Option<Length>,
    p95: Option<Length>,
    max: Option<Length>,
}

/// One bucket.
#[derive(ToSchema)]
pub struct Stat {
    at: DateTime<Utc>,
    count: i64,
    ok: i64,
    dropped: i64,
    caught_up: i64,
    implausible: i64,
    lateness: Lengths,
    duration: Lengths,
}

#[derive(ToSchema)]
pub struct Stats {
    bucket: Length,
    items: Vec<Stat>,
}

#[derive(ToSchema)]
pub struct Secret {
    /// whsec_ and base64, as Standard Webhooks has it.
    secret: String,
}

/// One call.
#[derive(ToSchema)]
pub struct SendWanted {
    uri: String,
    body: Option<Value>,
    at: Option<DateTime<Utc>>,
    after: Option<Length>,
    headers: Option<Map<String, Value>>,
    method: Option<String>,
}

/// What became of it.
#[derive(ToSchema)]
pub struct Send {
    key: String,
    uri: String,
    /// pending, in_flight, held, done, cancelled, or the outcome of awty.
    state: String,
    next_slot: Option<DateTime<Utc>>,
    due_at: DateTime<Utc>,
    sent_by: String,
    sent_at: DateTime<Utc>,
    last: Option<Last>,
}
