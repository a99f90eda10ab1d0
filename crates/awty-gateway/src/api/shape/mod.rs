//! Shapes of requests and answers.
//!
//! Each list of fields is used four times: in `/v1/openapi.json`, to read requests (`fields`), as arguments of the SQL
//! function, and to write answers (`show`).
#![allow(dead_code)] // only the OpenAPI document reads these types

mod other;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Text,
    Length,
    LengthOrZero,
    Time,
    Json,
    Switch,
    Headers,
    Retries,
    Attempts,
    Statuses,
    Labels,
}

pub type FieldList = &'static [(&'static str, Kind)];

macro_rules! fields {
    ($(#[$doc:meta])* $name:ident, $list:ident: $($(#[$about:meta])* $field:ident: $type:ty = $kind:ident,)*) => {
        $(#[$doc])*
        #[derive(ToSchema)]
        pub struct $name {
            $($(#[$about])* $field: $type,)*
        }

        pub const $list: FieldList = &[$((stringify!($field), Kind::$kind)),*];
    };
}

mod send;

use chrono::{DateTime, Utc};
pub use other::*;
pub use send::*;
use serde_json::{Map, Value};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Returns the names of fields that occur in answers but not in requests. PUT ignores such fields, so that a client can
/// send back the answer of a GET request.
pub fn only_answers<T: PartialSchema>() -> Vec<String> {
    fn own(schema: &RefOr<Schema>) -> Vec<String> {
        match schema {
            RefOr::T(Schema::Object(object)) => object.properties.keys().cloned().collect(),
            RefOr::T(Schema::AllOf(parts)) => parts.items.iter().flat_map(own).collect(),
            _ => Vec::new(), // a reference to the request's fields
        }
    }
    own(&T::schema())
}

/// A length of time, such as `10s` or `1h 30m`. Requests may also write `10 seconds` or `PT10S`.
#[derive(ToSchema)]
#[schema(value_type = String, example = "10s")]
pub struct Length(String);

fields! {
    /// Attempts of a call, and the delays between them.
    Retries, RETRIES:
    max_attempts: Option<i32> = Attempts,
    first_delay: Option<Length> = Length,
    max_delay: Option<Length> = Length,
}

fields! {
    /// A call and its time. The time is exactly one of every, cron, at and after.
    ScheduleWanted, SCHEDULE:
    /// URI of the endpoint. The request body leaves this field out if the address of the request already contains the
    /// URI.
    uri: Option<String> = Text,
    every: Option<Length> = Length,
    cron: Option<String> = Text,
    /// Time zone of cron, such as Europe/Berlin.
    zone: Option<String> = Text,
    at: Option<DateTime<Utc>> = Time,
    after: Option<Length> = Length,
    starts: Option<DateTime<Utc>> = Time,
    ends: Option<DateTime<Utc>> = Time,
    /// Upper bound of the delay of each call. null means the default. With `every`, the default is the period, but at
    /// most 1 min. Other schedules have no delay by default. `0s` switches the delay off.
    jitter: Option<Length> = LengthOrZero,
    catch_up: Option<Length> = LengthOrZero,
    /// POST, GET, HEAD, PUT, PATCH or DELETE.
    method: Option<String> = Text,
    headers: Option<Map<String, Value>> = Headers,
    body: Option<Value> = Json,
    body_text: Option<String> = Text,
    body_base64: Option<String> = Text,
    timeout: Option<Length> = Length,
    connect_timeout: Option<Length> = Length,
    retries: Option<Retries> = Retries,
    max_lateness: Option<Length> = Length,
    /// HTTP statuses that count as success, such as 200-299,404.
    success: Option<String> = Statuses,
    sign: Option<bool> = Switch,
    keep_response: Option<bool> = Switch,
    labels: Option<Vec<String>> = Labels,
    description: Option<String> = Text,
    paused: Option<bool> = Switch,
}

/// Summary of the last call.
#[derive(ToSchema)]
pub struct Last {
    slot: DateTime<Utc>,
    at: DateTime<Utc>,
    attempt: i32,
    status: Option<i32>,
    /// Short name of the fault.
    fault: Option<String>,
    duration: Option<Length>,
    lateness: Option<Length>,
}

/// Number of calls in the last 24 hours, by result.
#[derive(ToSchema)]
pub struct Counts {
    ok: i64,
    failed: i64,
    dropped: i64,
}

/// A schedule and its state.
#[derive(ToSchema)]
pub struct Schedule {
    #[serde(flatten)]
    wanted: ScheduleWanted,
    id: String,
    /// active, paused (by a client), held (by awty or its endpoint), blocked (its target) or ended.
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

/// A page of schedules. A request with `uri` gets only the schedule of this URI.
#[derive(ToSchema)]
pub struct Schedules {
    items: Vec<Schedule>,
}

/// A reason in words.
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
    /// Seconds by phase: queue, name, connect, tls, first_byte, total.
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

/// Results of one bucket.
#[derive(ToSchema)]
pub struct Stat {
    at: DateTime<Utc>,
    /// Number of calls, including dropped calls.
    count: i64,
    ok: i64,
    failed: i64,
    dropped: i64,
    /// Calls that came more than 10 s and more than one period late, as after a stop. They do not count in lateness.
    caught_up: i64,
    implausible: i64,
    /// Number of slots without a call, because the call of an earlier slot was still running.
    left_out: i64,
    lateness: Lengths,
    duration: Lengths,
    /// Largest lateness of the calls that were caught up.
    caught_up_max: Option<Length>,
}

#[derive(ToSchema)]
pub struct Stats {
    bucket: Length,
    items: Vec<Stat>,
}

#[derive(ToSchema)]
pub struct Secret {
    /// The key in the format of Standard Webhooks: whsec_ and base64.
    secret: String,
}
