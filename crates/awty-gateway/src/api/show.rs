//! A schedule as the API shows it. Pure.
//!
//! Invariant: header values that may be secrets are shown as `•••`; lengths have their one form.

use crate::db::schedules::Row;
use crate::duration::Length;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

const LENGTHS: &[&str] = &[
    "every",
    "after",
    "jitter",
    "catch_up",
    "timeout",
    "connect_timeout",
    "max_lateness",
    "rounded_from",
    "first_delay",
    "max_delay",
];
const SECRETS: &[&str] = &["auth", "key", "secret", "token", "cookie"];

/// The fields of a schedule.
pub fn fields(row: &Row) -> Value {
    let mut fields = row.fields.clone();
    if let Some(object) = fields.as_object_mut() {
        lengths(object);
        if let Some(Value::Object(retries)) = object.get_mut("retries") {
            lengths(retries);
        }
        if let Some(Value::Object(headers)) = object.get_mut("headers") {
            for (name, value) in headers.iter_mut() {
                if SECRETS.iter().any(|secret| name.to_lowercase().contains(secret)) {
                    *value = "•••".into();
                }
            }
        }
    }
    fields
}

fn lengths(object: &mut Map<String, Value>) {
    for name in LENGTHS {
        if let Some(millis) = object.get(*name).and_then(Value::as_i64) {
            object.insert((*name).into(), Length::millis(millis).to_string().into());
        }
    }
}

/// Strong: the version, and a hash of the answer.
fn etag(row: &Row, body: &str) -> String {
    let digest = Sha256::digest(body);
    let hash: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{}-{hash}\"", row.version)
}

/// Does `If-Match` name this version? What is not asked is so.
pub fn matches(headers: &HeaderMap, row: Option<&Row>) -> bool {
    let Some(wanted) = headers.get(header::IF_MATCH).and_then(|value| value.to_str().ok()) else { return true };
    let Some(row) = row else { return false };
    let version =
        |tag: &str| tag.trim().trim_matches('"').split('-').next().and_then(|version| version.parse::<i64>().ok());
    wanted.split(',').any(|tag| tag.trim() == "*" || version(tag) == Some(row.version))
}

/// A schedule as an answer; 304 if the client has it.
pub fn answer(row: &Row, status: StatusCode, asked: &HeaderMap) -> Response {
    let body = fields(row).to_string();
    let tag = etag(row, &body);
    let known = asked.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let same = status == StatusCode::OK && known.is_some_and(|known| known.split(',').any(|one| one.trim() == tag));
    let mut response = if same { StatusCode::NOT_MODIFIED.into_response() } else { (status, body).into_response() };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    if status == StatusCode::CREATED
        && let Ok(place) = HeaderValue::from_str(&format!("/v1/schedules/{}", row.id))
    {
        headers.insert(header::LOCATION, place);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row() -> Row {
        let fields = json!({"every": 5_400_000, "headers": {"X-Api-Key": "s3cret", "X-A": "b"}, "retries": {"first_delay": 10_000}});
        Row { id: "s_1".into(), version: 7, deleted: false, fields }
    }

    fn asked(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn lengths_have_one_form_and_secrets_none() {
        let expected =
            json!({"every": "1h 30m", "headers": {"X-Api-Key": "•••", "X-A": "b"}, "retries": {"first_delay": "10s"}});
        assert_eq!(fields(&row()), expected);
    }

    #[test]
    fn if_match_compares_the_version_and_if_none_match_the_whole() {
        let response = answer(&row(), StatusCode::OK, &HeaderMap::new());
        let tag = response.headers()[header::ETAG].to_str().unwrap().to_owned();
        assert_eq!(
            answer(&row(), StatusCode::OK, &asked(header::IF_NONE_MATCH, &tag)).status(),
            StatusCode::NOT_MODIFIED
        );
        assert_eq!(answer(&row(), StatusCode::OK, &asked(header::IF_NONE_MATCH, "\"7-0\"")).status(), StatusCode::OK);
        assert!(matches(&asked(header::IF_MATCH, "\"7-0\""), Some(&row())) && matches(&HeaderMap::new(), None));
        assert!(
            !matches(&asked(header::IF_MATCH, "\"6-0\""), Some(&row()))
                && !matches(&asked(header::IF_MATCH, "*"), None)
        );
    }
}
