//! Invariant: answers show `•••` instead of a header value that may be a secret.
//!
//! Invariant: answers show a length of time as the same text, whether the client wrote `60s` or `1m`.

use super::fields::HIDDEN;
use super::shape::{FieldList, Kind, RETRIES, SCHEDULE};
use crate::db::schedules::Row;
use crate::duration::{Length, parse};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

const OTHER_LENGTHS: [&str; 1] = ["rounded_from"];
const SECRETS: &[&str] = &["auth", "key", "secret", "token", "cookie"];

pub fn text(row: &Row) -> String {
    let fields = fields(row).to_string();
    // A call without a body has no field `body`, because `"body": null` means the JSON value null.
    match &row.body {
        Some(body) => with(fields, "body", body),
        None => fields,
    }
}

pub fn with(mut object: String, name: &str, json: &str) -> String {
    object.pop();
    if object.len() > 1 {
        object.push(',');
    }
    for part in ["\"", name, "\":", json, "}"] {
        object.push_str(part);
    }
    object
}

fn fields(row: &Row) -> Value {
    let mut fields = row.fields.clone();
    if let Some(object) = fields.as_object_mut() {
        for (name, kind) in SCHEDULE.iter().filter(|(name, _)| *name != "body") {
            let missing = if *kind == Kind::Headers { json!({}) } else { Value::Null };
            object.entry(*name).or_insert(missing);
        }
        lengths(object, SCHEDULE);
        if let Some(Value::Object(retries)) = object.get_mut("retries") {
            lengths(retries, RETRIES);
        }
        if let Some(Value::Object(headers)) = object.get_mut("headers") {
            for (name, value) in headers.iter_mut() {
                if SECRETS.iter().any(|secret| name.to_lowercase().contains(secret)) {
                    *value = HIDDEN.into();
                }
            }
        }
        object.insert("last".into(), row.last.as_ref().map_or(Value::Null, last));
    }
    fields
}

pub fn last(attempt: &Value) -> Value {
    let said = |name: &str| attempt.pointer(&format!("/result/{name}")).cloned().unwrap_or_default();
    json!({"slot": attempt["slot"], "at": attempt["at"], "attempt": attempt["attempt"], "status": said("status"),
        "fault": said("fault"), "duration": seconds(&said("duration")), "lateness": seconds(&said("lateness"))})
}

pub fn call(attempt: &Value) -> Value {
    let (mut all, said) = (last(attempt), |name: &str| attempt.pointer(&format!("/result/{name}")).cloned());
    if let Some(all) = all.as_object_mut() {
        for name in ["ended_at", "ok", "message", "key", "worker"] {
            all.insert(name.into(), attempt[name].clone());
        }
        for name in ["sent", "address", "location", "note", "body"] {
            all.insert(name.into(), said(name).unwrap_or_default());
        }
        let phases = said("phases").and_then(|phases| phases.as_object().cloned()).unwrap_or_default();
        let phases: Map<String, Value> = phases.iter().map(|(name, length)| (name.clone(), seconds(length))).collect();
        all.insert("phases".into(), phases.into());
    }
    all
}

pub fn seconds(number: &Value) -> Value {
    #[allow(clippy::cast_possible_truncation)] // the cast saturates
    let millis = |seconds: f64| Length::millis((seconds * 1_000.0).round() as i64).to_string();
    number.as_f64().map_or(Value::Null, |seconds| millis(seconds).into())
}

fn lengths(object: &mut Map<String, Value>, list: FieldList) {
    let is_length = |kind: &Kind| matches!(kind, Kind::Length | Kind::LengthOrZero);
    let lengths = list.iter().filter(|(_, kind)| is_length(kind)).map(|(name, _)| *name);
    for name in lengths.chain(OTHER_LENGTHS) {
        let length = match object.get(name) {
            Some(Value::Number(millis)) => millis.as_i64().map(Length::millis),
            Some(Value::String(text)) => parse(text).ok(),
            _ => None,
        };
        if let Some(length) = length {
            object.insert(name.into(), length.to_string().into());
        }
    }
}

fn etag(version: &str, body: &str) -> String {
    format!("\"{version}-{}\"", hash(body))
}

pub fn hash(text: &str) -> String {
    Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

pub fn fits(headers: &HeaderMap, version: Option<&str>) -> bool {
    let Some(wanted) = headers.get(header::IF_MATCH) else { return true };
    let (Ok(wanted), Some(version)) = (wanted.to_str(), version) else { return false };
    let of = |tag: &str| tag.trim().trim_matches('"').split('-').next().is_some_and(|found| found == version);
    wanted.split(',').any(|tag| tag.trim() == "*" || of(tag))
}

pub fn matches(headers: &HeaderMap, row: Option<&Row>) -> bool {
    fits(headers, row.map(|row| row.version.to_string()).as_deref())
}

pub fn tagged(version: &str, value: &Value, status: StatusCode, asked: &HeaderMap) -> Response {
    tagged_text(version, value.to_string(), status, asked)
}

pub fn tagged_text(version: &str, body: String, status: StatusCode, asked: &HeaderMap) -> Response {
    let tag = etag(version, &body);
    let known = asked.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    // A proxy that compresses an answer adds `W/` to the answer's ETag.
    let is_it = |one: &str| one.trim().trim_start_matches("W/") == tag;
    let same = status == StatusCode::OK && known.is_some_and(|known| known.split(',').any(is_it));
    let mut response = if same { StatusCode::NOT_MODIFIED.into_response() } else { (status, body).into_response() };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

pub fn at(mut response: Response, place: &str) -> Response {
    if let Ok(place) = HeaderValue::from_str(place) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}

pub fn answer(row: &Row, status: StatusCode, asked: &HeaderMap) -> Response {
    let response = tagged_text(&row.version.to_string(), text(row), status, asked);
    if status == StatusCode::CREATED { at(response, &format!("/v1/schedules/{}", row.id)) } else { response }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        let fields = json!({"every": 5_400_000, "headers": {"X-Api-Key": "s3cret", "X-A": "b"}, "retries": {"first_delay": 10_000}});
        Row {
            id: "s_1".into(),
            version: 7,
            deleted: false,
            own: true,
            new: false,
            fields,
            lengths: json!({}),
            body: None,
            last: None,
        }
    }

    fn asked(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn lengths_have_one_form_and_secrets_none() {
        let shown = fields(&row());
        assert_eq!((&shown["every"], &shown["retries"]), (&json!("1h 30m"), &json!({"first_delay": "10s"})));
        assert_eq!(shown["headers"], json!({"X-Api-Key": "•••", "X-A": "b"}));
    }

    #[test]
    fn each_field_of_a_request_is_shown() {
        let shown = fields(&row());
        let missing: Vec<_> = SCHEDULE.iter().filter(|(name, _)| shown.get(name).is_none()).collect();
        assert_eq!(missing, [&("body", Kind::Json)], "the body is added as text");
        assert_eq!(fields(&Row { fields: json!({}), ..row() })["headers"], json!({}));
    }

    #[test]
    fn a_body_is_shown_as_it_stands() {
        let shown = text(&Row { body: Some("{\"n\": 1e400}".into()), ..row() });
        assert!(shown.ends_with(",\"body\":{\"n\": 1e400}}"), "{shown}");
        assert_eq!(with("{}".into(), "a", "1"), "{\"a\":1}");
        assert!(text(&Row { body: Some("null".into()), ..row() }).ends_with(",\"body\":null}"));
        assert!(!text(&row()).contains("body\""), "no body is not the body null");
    }

    #[test]
    fn if_match_compares_the_version_and_if_none_match_the_whole() {
        let response = answer(&row(), StatusCode::OK, &HeaderMap::new());
        let tag = response.headers()[header::ETAG].to_str().unwrap().to_owned();
        assert_eq!(
            answer(&row(), StatusCode::OK, &asked(header::IF_NONE_MATCH, &tag)).status(),
            StatusCode::NOT_MODIFIED
        );
        let weak = format!("\"6-0\", W/{tag}");
        assert_eq!(
            answer(&row(), StatusCode::OK, &asked(header::IF_NONE_MATCH, &weak)).status(),
            StatusCode::NOT_MODIFIED
        );
        assert!(!matches(&asked(header::IF_MATCH, &format!("W/{tag}")), Some(&row())), "a change compares strongly");
        assert_eq!(answer(&row(), StatusCode::OK, &asked(header::IF_NONE_MATCH, "\"7-0\"")).status(), StatusCode::OK);
        assert!(matches(&asked(header::IF_MATCH, "\"7-0\""), Some(&row())) && matches(&HeaderMap::new(), None));
        assert!(
            !matches(&asked(header::IF_MATCH, "\"6-0\""), Some(&row()))
                && !matches(&asked(header::IF_MATCH, "*"), None)
        );
    }
}
