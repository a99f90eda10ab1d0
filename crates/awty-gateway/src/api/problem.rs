//! After an internal error, the client gets only a number. The log has the database's message under the same number.

use super::problems::{Known, find};
use crate::db::Trouble;
use crate::sqlstate::{Kind, kind};
use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

#[derive(Debug, Clone)]
pub struct Problem {
    status: u16,
    name: &'static str,
    detail: String,
    again: bool,
    more: Map<String, Value>,
}

#[derive(Clone, Copy)]
pub struct Again;

/// Most faults that an answer names. A body with tens of thousands of wrong fields would otherwise cost hundreds of
/// MB.
pub const MAX_FAULTS: usize = 20;
/// Characters that are kept of the start and of the end of a long text. Names in a body can have 512 KiB.
const LONGEST: usize = 200;

/// Leaves out the middle of a long text. The end may say what to write instead.
pub fn shortened(text: String) -> String {
    if text.chars().nth(2 * LONGEST).is_none() {
        return text;
    }
    let start: String = text.chars().take(LONGEST).collect();
    let end: Vec<char> = text.chars().rev().take(LONGEST).collect();
    format!("{start}…{}", end.into_iter().rev().collect::<String>())
}

#[derive(Debug, Clone)]
pub struct Fault {
    pub pointer: String,
    pub reason: String,
}

impl Fault {
    fn json(&self) -> Value {
        let (reason, remedy) = match (self.reason.split_once("; "), self.reason.split_once("? ")) {
            (Some((reason, remedy)), _) => (reason.to_owned(), Some(remedy)),
            (None, Some((question, remedy))) => (format!("{question}?"), Some(remedy)),
            (None, None) => (self.reason.clone(), None),
        };
        let remedy = remedy.map(|remedy| shortened(remedy.to_owned()));
        json!({"pointer": shortened(self.pointer.clone()), "reason": shortened(reason), "remedy": remedy})
    }
}

impl Problem {
    pub fn new(name: &'static str, detail: impl Into<String>) -> Self {
        let status = find(name).map_or(500, |known| known.status);
        Problem { status, name, detail: shortened(detail.into()), again: false, more: Map::new() }
    }

    pub fn is(&self, name: &str) -> bool {
        self.name == name
    }

    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.into(), value.into());
        self
    }

    pub fn parameter(name: &str, reason: impl Into<String>) -> Self {
        Problem::fields("invalid-field", &[Fault { pointer: format!("/{name}"), reason: reason.into() }])
    }

    pub fn fields(name: &'static str, faults: &[Fault]) -> Self {
        let all: Vec<Value> = faults.iter().map(Fault::json).collect();
        let first = faults.first().map(|fault| format!("{} {}", fault.pointer.trim_start_matches('/'), fault.reason));
        let first = first.map(|detail| detail.trim_start().to_owned()); // the pointer is empty if the whole body is faulty
        Problem::new(name, first.unwrap_or_default()).with("errors", all)
    }
}

fn pointer(message: &str) -> String {
    for (words, field) in [("cron expression ", "/cron"), ("time zone ", "/zone")] {
        if message.starts_with(words) {
            return field.to_owned();
        }
    }
    let message = message.strip_prefix("argument ").unwrap_or(message);
    let field = message.strip_prefix('"').and_then(|rest| rest.split('"').next());
    match field.filter(|field| !field.contains(['/', '~'])) {
        Some(field @ ("max_attempts" | "first_delay" | "max_delay")) => format!("/retries/{field}"),
        Some(field) => format!("/{field}"),
        None => String::new(),
    }
}

impl From<Trouble> for Problem {
    fn from(trouble: Trouble) -> Self {
        let (sqlstate, message, hint) = match trouble {
            Trouble::Away(why) => {
                tracing::warn!(why, "a request could not reach the database");
                return Problem::new("database-away", "The database does not answer; try again.");
            }
            Trouble::Refused { sqlstate, message, hint } => (sqlstate, message, hint),
        };
        let name = match kind(&sqlstate) {
            Kind::NotPermitted => "not-permitted",
            Kind::NotFound => "not-found",
            Kind::Conflict if sqlstate == "55006" => "already-running",
            Kind::Conflict => "uri-already-scheduled",
            Kind::TooLarge => "too-large",
            Kind::Invalid => {
                let fault = json!({"pointer": pointer(&message), "reason": message, "remedy": hint});
                return Problem::new("invalid-field", message).with("errors", json!([fault]));
            }
            Kind::Standby => "read-only-standby",
            Kind::Away if message.contains("does not serve") => "version-mismatch",
            Kind::Away => "database-away",
            Kind::Again => return Problem { again: true, ..Problem::new("database-away", message) },
            // A statement ended at the time limit of the last free place. The next attempt may get another place.
            Kind::TimedOut if sqlstate == "57014" => {
                return Problem { again: true, ..Problem::new("timed-out", message) };
            }
            Kind::TimedOut => "timed-out",
            Kind::Internal if sqlstate == "3F000" => {
                let detail = "The extension awty_http is not installed; run CREATE EXTENSION awty_http CASCADE;";
                return Problem::new("version-mismatch", detail);
            }
            Kind::Internal => {
                let number = format!("{:016x}", rand::random::<u64>());
                // A field of the name `message` would be written without quotation marks, so that a role could write lines of its own.
                tracing::error!(number, sqlstate, error = message, "a request failed");
                return Problem::new("internal", format!("Look for {number} in the gateway's log."));
            }
        };
        Problem::new(name, hint.map_or(message.clone(), |hint| format!("{message} ({hint})")))
    }
}

impl Problem {
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub fn body(&self) -> Value {
        let title = find(self.name).map_or("", |known| known.title);
        let mut body = json!({"type": format!("/problems/{}", self.name), "title": title, "status": self.status, "detail": self.detail});
        if let Some(body) = body.as_object_mut() {
            body.extend(self.more.clone());
        }
        body
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, body) = (self.status(), self.body());
        let mut response = (status, body.to_string()).into_response();
        if self.again {
            response.extensions_mut().insert(Again);
        }
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

/// Explains a kind of problem in words, as an HTML page.
#[utoipa::path(get, path = "/problems/{name}", tag = "problems", security(()),
    params(("name" = String, Path, description = "The end of a problem's type")),
    responses((status = 200, description = "A page in words", content_type = "text/html", body = String), (status = 404, body = super::shape::Problem)))]
pub async fn page(Path(name): Path<String>) -> Response {
    let Some(Known { name, status, title, remedy }) = find(&name) else {
        return Problem::new("not-found", "There is no such problem.").into_response();
    };
    let html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<h1>{title}</h1>\n<p>The answer had the status {status} and the type <code>/problems/{name}</code>.</p>\n<p>{remedy}</p>\n</html>\n"
    );
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, html).into_response()
}

pub(super) fn stopping() -> Problem {
    Problem::new("internal", "The gateway is stopping.")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a panic fails the test

    use super::{LONGEST, Problem, Trouble, pointer, shortened};
    use std::io::Read;

    #[test]
    fn only_the_middle_of_a_long_text_is_left_out() {
        let text: String = ('一'..).take(2 * LONGEST).collect();
        assert_eq!(shortened(text.clone()), text, "its characters have three bytes each");
        let long = shortened(format!("{text}!"));
        assert!(long.chars().count() == 2 * LONGEST + 1 && long.starts_with('一') && long.ends_with('!'), "{long}");
    }

    #[test]
    fn a_message_of_a_role_is_one_line_of_the_log() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let log = tracing_subscriber::fmt().with_ansi(false).with_writer(std::sync::Arc::new(writer)).finish();
        tracing::subscriber::with_default(log, || {
            let message = "a\n2027-01-15T08:00:00Z ERROR forged\r\nb".to_owned();
            Problem::from(Trouble::Refused { sqlstate: "P0001".into(), message, hint: None })
        });
        let mut lines = String::new();
        reader.read_to_string(&mut lines).unwrap();
        assert!(lines.contains(r"a\n2027-01-15T08:00:00Z ERROR forged\r\nb"), "{lines}");
        assert_eq!((lines.matches('\n').count(), lines.matches('\r').count()), (1, 0), "{lines}");
    }

    #[test]
    fn what_the_database_refuses_points_to_its_field() {
        for (message, field) in [
            ("\"every\" must be finite", "/every"),
            ("\"first_delay\" and \"max_delay\" must be between 1 s and 1 day", "/retries/first_delay"),
            ("argument \"ends\" is out of range", "/ends"),
            ("cron expression \"0 25 * * *\" cannot be read: hour 25 is not between 0 and 23", "/cron"),
            ("time zone \"Mars\" not recognized", "/zone"),
            ("a body can be given only once", ""),
            ("\"a/b\" is no field", ""),
        ] {
            assert_eq!(pointer(message), field, "{message}");
        }
    }
}
