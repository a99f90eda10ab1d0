//! Refuses forms from other sites, and limits how long the page may take to answer a request.
//!
//! Invariant: answers that clients have not read count against the memory limit of their role. Browsers do not store
//! the page's answers, do not show them in a frame, and run no script.

use super::fail::Fail;
use super::state::{Page, Visitor};
use super::zone;
use super::{prefix, rights};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use url::Url;

const LONGEST: Duration = Duration::from_secs(10);

const HEADERS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // With the policy `no-referrer`, browsers would send forms with the header `Origin: null`, which `is_same_site`
    // refuses.
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

pub async fn around(State(page): State<Arc<Page>>, mut request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned()).unwrap_or_default();
    let visitor = Visitor::default();
    request.extensions_mut().insert(visitor.clone());
    let (method, prefix) = (request.method().clone(), prefix::of(request.headers()));
    let mut response = if !method.is_safe() && !is_same_site(request.headers()) {
        Fail::Refused(403, "This form was sent by another site, so nothing was changed.".into()).into_response()
    } else {
        let late = |_| Fail::Refused(504, "The view took longer than 10 s.".into()).into_response();
        let headers = request.headers().clone();
        let request = rights::within(zone::within(&headers, next.run(request)));
        timeout(LONGEST, request).await.unwrap_or_else(late)
    };
    response = prefix::add(prefix, response).await;
    response = page.api.unread(&visitor.role, response).await;
    guarded(&mut response);
    page.metrics.request(&route, method.as_str(), response.status().as_u16(), begun.elapsed());
    response
}

fn guarded(response: &mut Response) {
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// Answers an unknown address with a page if the client is a browser.
pub async fn unknown(request: Request, next: Next) -> Response {
    let accepted = request.headers().get(header::ACCEPT).and_then(|accepted| accepted.to_str().ok());
    let is_browser = accepted.is_some_and(|accepted| accepted.contains("text/html"));
    if !is_browser || request.extensions().get::<MatchedPath>().is_some() {
        return next.run(request).await;
    }
    let refusal = Fail::Refused(404, "The page has no such address.".into()).into_response();
    let mut response = prefix::add(prefix::of(request.headers()), refusal).await;
    guarded(&mut response);
    response
}

/// If `Sec-Fetch-Site` is missing, compares `Origin` with the request's host. Browsers do not send `Sec-Fetch-Site`
/// over plain HTTP, except to localhost.
fn is_same_site(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text("sec-fetch-site") {
        return site == "same-origin";
    }
    let origin = text("origin").and_then(|origin| Url::parse(origin).ok());
    let host = text("host").and_then(|host| Url::parse(&format!("http://{host}")).ok());
    // A Host header without a port means the default port of `Origin`'s scheme, because this listener does not know
    // whether clients use TLS.
    origin.zip(host).is_some_and(|(origin, host)| {
        origin.host().is_some() && origin.host() == host.host() && origin.port() == host.port()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(headers: &[(&'static str, &'static str)]) -> bool {
        let all = headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        is_same_site(&all.collect())
    }

    #[test]
    fn only_a_form_of_the_page_itself_is_accepted() {
        assert!(same(&[("sec-fetch-site", "same-origin")]));
        for site in ["cross-site", "same-site", "none", ""] {
            assert!(
                !same(&[("sec-fetch-site", site), ("origin", "https://a.example"), ("host", "a.example")]),
                "{site}"
            );
        }
        assert!(same(&[("origin", "https://a.example"), ("host", "a.example")]));
        assert!(same(&[("origin", "http://127.0.0.1:8470"), ("host", "127.0.0.1:8470")]));
        for origin in ["https://b.example", "null", "https://a.example:8443", "a.example", "https://a.example.evil"] {
            assert!(!same(&[("origin", origin), ("host", "a.example")]), "{origin}");
        }
        assert!(!same(&[("host", "a.example")]) && !same(&[]), "no header says where the form is from");
    }
}
