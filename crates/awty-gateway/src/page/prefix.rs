//! Adds the path prefix of `X-Forwarded-Prefix` to the links of an answer, because a proxy may serve the page below a
//! path of another site.

use super::fail::Fail;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};

const LONGEST: usize = 200;

/// Returns the prefix without a final slash. Ignores a value that is not a path.
pub fn of(headers: &HeaderMap) -> Option<String> {
    let prefix = headers.get("x-forwarded-prefix")?.to_str().ok()?.trim_end_matches('/');
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/-._~".contains(letter);
    let is_path = prefix.starts_with('/') && prefix.chars().all(is_plain) && !prefix.contains("//");
    (is_path && prefix.len() <= LONGEST).then(|| prefix.to_owned())
}

/// Finds links by `="/`, which occurs only in attributes, because the templates escape quotation marks of texts.
pub async fn add(prefix: Option<String>, response: Response) -> Response {
    let Some(prefix) = prefix else { return response };
    let (mut parts, body) = response.into_parts();
    let place = parts.headers.get(header::LOCATION).and_then(|place| place.to_str().ok());
    let place = place.filter(|place| place.starts_with('/')).map(|place| format!("{prefix}{place}"));
    if let Some(place) = place.and_then(|place| HeaderValue::from_str(&place).ok()) {
        parts.headers.insert(header::LOCATION, place);
    }
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("text/html")) {
        return Response::from_parts(parts, body);
    }
    let page = to_bytes(body, usize::MAX).await.ok().and_then(|bytes| String::from_utf8(bytes.into()).ok());
    let Some(mut page) = page else {
        return Fail::Refused(500, "The view cannot be read.".into()).into_response();
    };
    for name in ["href", "action"] {
        page = page.replace(&format!(" {name}=\"/"), &format!(" {name}=\"{prefix}/"));
    }
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_is_a_prefix() {
        let prefix = |text: &'static str| {
            of(&HeaderMap::from_iter([("x-forwarded-prefix".parse().unwrap(), HeaderValue::from_static(text))]))
        };
        assert_eq!(prefix("/ops/awty/").as_deref(), Some("/ops/awty"));
        for text in ["", "/", "ops", "//evil.example", "/a//b", "/a\"b", "/a b", "/a?b"] {
            assert_eq!(prefix(text), None, "{text}");
        }
    }
}
