//! Problems as in RFC 9457.
//!
//! Invariant: what went wrong inside is a number in the log, never a text of the database's in the answer.

use crate::db::Trouble;
use crate::sqlstate::{Kind, kind};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

/// An answer that is none.
#[derive(Debug, Clone)]
pub struct Problem {
    status: u16,
    name: &'static str,
    detail: String,
    more: Map<String, Value>,
}

/// One field that does not fit.
#[derive(Debug, Clone)]
pub struct Fault {
    /// JSON pointer.
    pub pointer: String,
    /// What is wrong, and what to write instead.
    pub reason: String,
}

/// Names, their statuses and titles; each is a page.
pub const PROBLEMS: &[(&str, u16, &str)] = &[
    ("malformed-json", 400, "The body is no JSON object"),
    ("invalid-field", 422, "Fields do not fit"),
    ("malformed-uri", 422, "The URI cannot be called"),
    ("address-not-allowed", 422, "The address is not allowed"),
    ("uri-already-scheduled", 409, "The URI is scheduled already"),
    ("already-running", 409, "It runs already"),
    ("period-out-of-range", 422, "The period is too short or too long"),
    ("too-large", 413, "The request is too large"),
    ("unsupported-media-type", 415, "The body has to be application/json"),
    ("method-not-allowed", 405, "The resource does not know this method"),
    ("not-found", 404, "There is nothing here"),
    ("deleted", 410, "It was deleted"),
    ("precondition-failed", 412, "It has changed since"),
    ("token-missing", 401, "A token is needed"),
    ("token-expired", 401, "The token has expired"),
    ("not-permitted", 403, "The token does not permit this"),
    ("rate-limited", 429, "Too many requests"),
    ("database-away", 503, "The database does not answer"),
    ("read-only-standby", 503, "The database is a standby"),
    ("timed-out", 504, "The database took too long"),
    ("internal", 500, "Something went wrong inside"),
];

impl Problem {
    /// A problem of that name.
    pub fn new(name: &'static str, detail: impl Into<String>) -> Self {
        let status = PROBLEMS.iter().find(|(known, ..)| *known == name).map_or(500, |(_, status, _)| *status);
        Problem { status, name, detail: detail.into(), more: Map::new() }
    }

    /// With a member of its own.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.into(), value.into());
        self
    }

    /// Fields that do not fit.
    pub fn fields(name: &'static str, faults: &[Fault]) -> Self {
        let all: Vec<Value> =
            faults.iter().map(|fault| json!({"pointer": fault.pointer, "reason": fault.reason})).collect();
        let first = faults.first().map(|fault| format!("{} {}", fault.pointer.trim_start_matches('/'), fault.reason));
        Problem::new(name, first.unwrap_or_default()).with("errors", all)
    }
}

impl From<Trouble> for Problem {
    fn from(trouble: Trouble) -> Self {
        let (sqlstate, message) = match trouble {
            Trouble::Away(why) => {
                tracing::warn!(why, "a request found no database");
                return Problem::new("database-away", "The database does not answer; try again.");
            }
            Trouble::Refused { sqlstate, message } => (sqlstate, message),
        };
        let name = match kind(&sqlstate) {
            Kind::NotPermitted => "not-permitted",
            Kind::NotFound => "not-found",
            Kind::Conflict if sqlstate == "55006" => "already-running",
            Kind::Conflict => "uri-already-scheduled",
            Kind::TooLarge => "too-large",
            Kind::Invalid => "invalid-field",
            Kind::Standby => "read-only-standby",
            Kind::Away | Kind::Again => "database-away",
            Kind::TimedOut => "timed-out",
            Kind::Internal => {
                let number = format!("{:016x}", rand::random::<u64>());
                tracing::error!(number, sqlstate, message, "a request failed");
                return Problem::new("internal", format!("Look for {number} in the gateway's log."));
            }
        };
        Problem::new(name, message)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let title = PROBLEMS.iter().find(|(known, ..)| *known == self.name).map_or("", |(.., title)| *title);
        let mut body = json!({"type": format!("/problems/{}", self.name), "title": title, "status": self.status, "detail": self.detail});
        if let Some(body) = body.as_object_mut() {
            body.extend(self.more);
        }
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, body.to_string()).into_response();
        let mut set = |name, value| drop(response.headers_mut().insert(name, HeaderValue::from_static(value)));
        set(header::CONTENT_TYPE, "application/problem+json");
        match self.status {
            401 => set(header::WWW_AUTHENTICATE, "Bearer"),
            429 | 503 => set(header::RETRY_AFTER, "1"),
            _ => {}
        }
        response
    }
}
