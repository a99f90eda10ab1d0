use super::{Counts, Last, Length};
use chrono::{DateTime, Utc};
use utoipa::ToSchema;

/// A call that ended without success.
#[derive(ToSchema)]
pub struct Past {
    id: i64,
    uri: String,
    /// The schedule of the call.
    schedule: Option<String>,
    /// The key of a send.
    key: Option<String>,
    slot: DateTime<Utc>,
    finished_at: DateTime<Utc>,
    attempts: i32,
    outcome: String,
    message: Option<String>,
}

/// The schedule of a URI, and links to its calls.
#[derive(ToSchema)]
pub struct About {
    id: String,
    uri: String,
    state: String,
    created_at: DateTime<Utc>,
    deleted_at: Option<DateTime<Utc>>,
    counts: Counts,
    last: Option<Last>,
    attempts: String,
    stats: String,
}

#[derive(ToSchema)]
pub struct History {
    /// The schedule that calls the URI in the query. Left out if the query has no URI.
    schedule: Option<About>,
    items: Vec<Past>,
}

#[derive(ToSchema)]
pub struct Retried {
    uri: String,
    schedule: Option<String>,
    key: Option<String>,
}

#[derive(ToSchema)]
pub struct Slot {
    slot: DateTime<Utc>,
    job: String,
    checks: i64,
}

#[derive(ToSchema)]
pub struct Slots {
    items: Vec<Slot>,
}

#[derive(ToSchema)]
pub struct Database {
    name: String,
    enabled: Option<bool>,
    /// True if the database makes no calls before it is adopted.
    held: Option<bool>,
    why: Option<String>,
    /// The command or action that fixes the problem.
    fix: Option<String>,
    last_slot_run: Option<DateTime<Utc>>,
    lag: Option<Length>,
    oldest_overdue: Option<DateTime<Utc>>,
    /// Number of pending checks; above 100,000, an estimate.
    pending: i64,
    held_checks: i64,
    last_error: Option<String>,
    last_error_at: Option<DateTime<Utc>>,
    version: Option<String>,
    library: Option<String>,
}

/// This gateway.
#[derive(ToSchema)]
pub struct Gateway {
    name: String,
    version: String,
}

/// A gateway that has calls in progress.
#[derive(ToSchema)]
pub struct Busy {
    name: String,
    in_flight: i64,
    last_claim_at: DateTime<Utc>,
}

/// A finding of awty.doctor().
#[derive(ToSchema)]
pub struct Finding {
    level: String,
    finding: String,
    detail: Option<String>,
    /// The command or action that fixes the problem.
    fix: Option<String>,
}

#[derive(ToSchema)]
pub struct Status {
    database: Database,
    gateway: Gateway,
    gateways: Vec<Busy>,
    findings: Vec<Finding>,
    slot: Length,
    min_period: Length,
    max_period: Length,
    timeout: Length,
}

#[derive(ToSchema)]
pub struct LimitsWanted {
    /// Maximum number of concurrent calls.
    concurrency: Option<i32>,
    /// Maximum number of calls per second.
    rate: Option<f64>,
    /// Number of calls that may begin at once before `rate` delays further calls.
    burst: Option<i32>,
}

#[derive(ToSchema)]
pub struct Target {
    #[serde(flatten)]
    limits: LimitsWanted,
    /// The origin that has these limits. Left out for the limits of all origins without limits of their own.
    origin: Option<String>,
    in_flight: i64,
    /// State of the target: ready, full, half_open, open or blocked.
    state: String,
    /// Time at which the block ends, or infinity.
    blocked_until: Option<String>,
    why: Option<String>,
}

#[derive(ToSchema)]
pub struct Targets {
    items: Vec<Target>,
}

#[derive(ToSchema)]
pub struct Block {
    /// Time at which the block of the origin ends, or length of the block. By default, the block lasts until further
    /// notice.
    blocked_until: Option<String>,
    note: Option<String>,
}

#[derive(ToSchema)]
pub struct TokenWanted {
    /// Defaults to the role of the token that makes the request.
    role: Option<String>,
    /// read, write or admin.
    scope: String,
    /// Time until the token expires; defaults to 90 days.
    expires: Option<Length>,
}

#[derive(ToSchema)]
pub struct Token {
    id: i64,
    role: String,
    scope: String,
    expires_at: DateTime<Utc>,
    created_by: String,
    created_at: DateTime<Utc>,
    last_used_at: Option<DateTime<Utc>>,
}

#[derive(ToSchema)]
pub struct Tokens {
    items: Vec<Token>,
}

#[derive(ToSchema)]
pub struct NewToken {
    #[serde(flatten)]
    kept: Token,
    /// The token. It is shown only this once.
    token: String,
}

/// A request field with an invalid value.
#[derive(ToSchema)]
pub struct FieldError {
    /// JSON pointer to the field.
    pointer: String,
    reason: String,
    remedy: Option<String>,
}

/// A problem as in RFC 9457.
#[derive(ToSchema)]
pub struct Problem {
    r#type: String,
    title: String,
    status: u16,
    detail: String,
    errors: Option<Vec<FieldError>>,
    /// Path of the schedule or send that already exists.
    existing: Option<String>,
    /// Link to the history of the deleted schedule.
    history: Option<String>,
}
