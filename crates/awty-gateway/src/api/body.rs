//! Invariant: each value of a JSON body is kept exactly as the client wrote it.

use super::fields::Fields;
use super::problem::{Fault, Problem};
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, header};
use serde_json::{Map, Value};

pub(super) type Body = Result<Bytes, BytesRejection>;

/// A key must not begin with this text, because serde_json would read an object with such a key as a number or raw
/// JSON.
const PRIVATE: &str = "$serde_json::private::";

pub(super) fn too_large() -> Problem {
    Problem::new("too-large", "A body may have at most 512 KiB.")
}

pub(super) fn object(headers: &HeaderMap, body: Body) -> Result<Map<String, Value>, Problem> {
    let body = body.map_err(|_| too_large())?;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("application/json");
    if !kind.trim_start().to_ascii_lowercase().starts_with("application/json") {
        return Err(Problem::new("unsupported-media-type", "Send the body as application/json."));
    }
    if has_private_key(&body) {
        let reason = format!("has a key that begins with {PRIVATE}, which cannot be kept; write another key");
        return Err(Problem::fields("invalid-field", &[Fault { pointer: String::new(), reason }]));
    }
    match serde_json::from_slice(&body) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Problem::new("malformed-json", "The body is not a JSON object.")),
        Err(error) => Err(Problem::new("malformed-json", error.to_string())),
    }
}

pub(super) fn fields(headers: &HeaderMap, body: Body) -> Result<Fields, Problem> {
    let empty = body.as_ref().is_ok_and(Bytes::is_empty);
    Ok(Fields::of(if empty { Map::new() } else { object(headers, body)? }))
}

fn has_private_key(json: &[u8]) -> bool {
    let mut rest = json;
    while let Some(start) = rest.iter().position(|byte| *byte == b'"') {
        let (text, after) = rest[start..].split_at(length_of_text(&rest[start..]));
        let is_key = after.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
        if is_key && serde_json::from_slice::<String>(text).is_ok_and(|key| key.starts_with(PRIVATE)) {
            return true;
        }
        rest = after;
    }
    false
}

fn length_of_text(json: &[u8]) -> usize {
    let mut is_escaped = false;
    let end = json.iter().skip(1).position(|byte| {
        let ends = !is_escaped && *byte == b'"';
        is_escaped = !is_escaped && *byte == b'\\';
        ends
    });
    end.map_or(json.len(), |end| end + 2)
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
