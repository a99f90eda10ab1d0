//! A send is a single HTTP call with a key.
//!
//! Invariant: each key is used for only one send.

use super::auth::Asker;
use super::body::{Body, object};
use super::fields::Fields;
use super::problem::Problem;
use super::rules::{Answer, check_address, check_secrets, history, parse_uri};
use super::shape;
use super::show;
use super::state::Api;
use super::unchanged::restore;
use crate::db::sends::{self as db, Row};
use crate::db::{Argument, Arguments};
use awty_core::uri::Uri;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use serde_json::Value;
use std::sync::Arc;

fn random() -> String {
    format!("{:032x}", rand::random::<u128>())
}

fn key(headers: &HeaderMap) -> Result<String, Problem> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(random()) };
    let text = value.to_str().unwrap_or_default().trim();
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let key = inner.map_or(text.to_owned(), |inner| inner.replace("\\\"", "\"").replace("\\\\", "\\"));
    if (1..=255).contains(&key.len()) {
        return Ok(key);
    }
    Err(Problem::parameter("Idempotency-Key", "cannot be read; write 1 to 255 visible characters of ASCII"))
}

fn send(mut fields: Fields) -> Result<(Uri, Arguments), Problem> {
    let text = fields.text("uri").unwrap_or_default();
    let mut arguments = fields.arguments(shape::SEND);
    if text.is_empty() && fields.faults.is_empty() {
        fields.fault("uri", "is missing; write for example https://api.example.com/paid");
    }
    fields.done()?;
    let uri = parse_uri(&text)?;
    arguments.push(("uri", Argument::Text(uri.to_string())));
    Ok((uri, arguments))
}

/// Calls a URI once.
#[utoipa::path(post, path = "/v1/sends", tag = "sends", request_body = shape::SendWanted,
    params(("Idempotency-Key" = Option<String>, Header, description = "With the same key it is sent once; by default a random one")),
    responses((status = 200, description = "Sent before", body = shape::Send), (status = 201, body = shape::Send), (status = "default", body = shape::Problem)))]
pub async fn create(State(api): State<Arc<Api>>, asker: Asker, headers: HeaderMap, body: Body) -> Answer {
    asker.may("write")?;
    let key = key(&headers)?;
    let request = api.begin(&asker).await?;
    let (uri, mut arguments) = send(Fields::of(object(&headers, body)?))?;
    check_address(&api, &uri)?;
    restore(&mut arguments, None).map_err(|faults| Problem::fields("invalid-field", &faults))?;
    arguments.push(("key", Argument::Text(key.clone())));
    check_secrets(&api, &request, &uri, &arguments).await?;
    db::send(&request, &arguments).await.map_err(|trouble| {
        if trouble.is("42710") {
            return Problem::new("key-reused", "The key was used for another call; use a new one.");
        }
        trouble.into()
    })?;
    let row = there(db::one(&request, &key).await?)?;
    if row.cancelled {
        let detail = "The call with this key was cancelled and is not made; use a new key to make it.";
        return Err(Problem::new("key-reused", detail).with("existing", place(&key)));
    }
    request.commit().await?;
    let status = if row.new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(show::at(show::tagged("0", &fields(&row), status, &HeaderMap::new()), &place(&key)))
}

pub(super) fn place(key: &str) -> String {
    let key: String = url::form_urlencoded::byte_serialize(key.as_bytes()).collect();
    format!("/v1/sends/{}", key.replace('+', "%20"))
}

fn fields(row: &Row) -> Value {
    let mut fields = row.fields.clone();
    if let Some(fields) = fields.as_object_mut() {
        fields.insert("last".into(), row.last.as_ref().map_or(Value::Null, show::last));
    }
    fields
}

fn there(row: Option<Row>) -> Result<Row, Problem> {
    row.ok_or_else(|| Problem::new("not-found", "Nothing was sent with that key, or its record was removed."))
}

/// Returns the state of a send, which is a single call with a key.
#[utoipa::path(get, path = "/v1/sends/{key}", tag = "sends", params(("key" = String, Path)),
    responses((status = 200, body = shape::Send), (status = 304), (status = "default", body = shape::Problem)))]
pub async fn show(State(api): State<Arc<Api>>, asker: Asker, headers: HeaderMap, Path(key): Path<String>) -> Answer {
    let request = api.begin(&asker).await?;
    let row = there(db::one(&request, &key).await?)?;
    request.commit().await?;
    Ok(show::tagged("0", &fields(&row), StatusCode::OK, &headers))
}

/// Cancels a send that was not made yet. Its key stays used.
#[utoipa::path(delete, path = "/v1/sends/{key}", tag = "sends", params(("key" = String, Path)),
    responses((status = 204), (status = 410, description = "The call has ended", body = shape::Problem), (status = "default", body = shape::Problem)))]
pub async fn delete(State(api): State<Arc<Api>>, asker: Asker, Path(key): Path<String>) -> Answer {
    asker.may("write")?;
    let request = api.begin(&asker).await?;
    let row = there(db::one(&request, &key).await?)?;
    if row.over || !db::cancel(&request, &key).await? {
        let uri = row.fields.get("uri").and_then(Value::as_str).unwrap_or_default();
        return Err(Problem::new("deleted", "The call has ended or was cancelled.").with("history", history(uri)));
    }
    request.commit().await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn a_key_is_read_with_or_without_quotes() {
        let of = |text: &'static str| {
            let value = HeaderValue::from_static(text);
            key(&HeaderMap::from_iter([(axum::http::HeaderName::from_static("idempotency-key"), value)]))
        };
        assert_eq!(of("order-7").unwrap(), "order-7");
        assert_eq!(of("\"order-7\"").unwrap(), "order-7");
        assert_eq!(of("\"a \\\"b\\\" \\\\\"").unwrap(), "a \"b\" \\");
        assert!(of("").is_err() && of("\"\"").is_err());
        assert_eq!(place("a b/ü"), "/v1/sends/a%20b%2F%C3%BC");
        assert_ne!(key(&HeaderMap::new()).unwrap(), key(&HeaderMap::new()).unwrap());
    }
}
