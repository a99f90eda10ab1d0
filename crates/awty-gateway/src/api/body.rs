//! Invariant: each frame of a body is copied before the next is read, because a frame keeps the whole buffer that the
//! connection has read it into, even for one byte.
//!
//! Invariant: the values of a JSON body stay text until a field is read, because parsed values can take more than a
//! hundred times the memory of their text.

use super::fields::{Fields, Object};
use super::problem::Problem;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError};

pub(super) type Body = Result<Bytes, BytesRejection>;

pub(super) fn too_large() -> Problem {
    Problem::new("too-large", "A body may have at most 512 KiB.")
}

/// Reads a whole body. Returns the status of the refusal if the body is larger than its limit, or breaks off.
pub(crate) async fn whole(mut body: axum::body::Body) -> Result<Bytes, StatusCode> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| match error.into_inner().is::<LengthLimitError>() {
            true => StatusCode::PAYLOAD_TOO_LARGE,
            false => StatusCode::BAD_REQUEST,
        })?;
        bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| &data[..]));
    }
    bytes.shrink_to_fit();
    Ok(bytes.into())
}

pub(super) fn object(headers: &HeaderMap, body: Body) -> Result<Object, Problem> {
    let body = body.map_err(|_| too_large())?;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("application/json");
    if !kind.trim_start().to_ascii_lowercase().starts_with("application/json") {
        return Err(Problem::new("unsupported-media-type", "Send the body as application/json."));
    }
    serde_json::from_slice(&body).map_err(|error| {
        let why = if error.is_data() { "The body is not a JSON object.".into() } else { error.to_string() };
        Problem::new("malformed-json", why)
    })
}

pub(super) fn fields(headers: &HeaderMap, body: Body) -> Result<Fields, Problem> {
    let empty = body.as_ref().is_ok_and(Bytes::is_empty);
    Ok(Fields::of(if empty { Object::new() } else { object(headers, body)? }))
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
