//! Wraps every request: time limit, metrics, retries that the database asks for, and problem bodies for bare refusals.
//!
//! Invariant: every refusal has a problem as its body. The bodies of all requests in memory together are bounded.

use super::problem::{Again, Problem};
use super::state::{Api, LARGEST_BODY};
use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Time limit of a request, from its head to its answer.
pub(super) const LONGEST: Duration = Duration::from_secs(10);
/// Attempts of a request that lost against another transaction.
const TRIES: usize = 3;

/// A body of at most this size needs no room, so that large bodies do not hold up small ones.
pub(super) const SMALL: usize = 16 * 1024;

/// Middleware around all resources.
pub async fn around(State(api): State<Arc<Api>>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let method = request.method().clone();
    let answer = tokio::time::timeout(LONGEST, tried(&api, request, next)).await;
    let response = refused(answer.unwrap_or_else(|_| late().into_response()));
    let route = route.as_deref().unwrap_or("other");
    api.metrics.request(route, method.as_str(), response.status().as_u16(), begun.elapsed());
    response
}

/// The problem of a request that took longer than [`LONGEST`].
pub(super) fn late() -> Problem {
    Problem::new("timed-out", "The request took longer than 10 s.")
}

/// KiB of room that a body needs, by its declared length.
pub(super) fn room(body: &Body) -> u32 {
    let said = body.size_hint().upper().and_then(|length| usize::try_from(length).ok());
    let largest = said.map_or(LARGEST_BODY, |length| length.min(LARGEST_BODY));
    if largest > SMALL { u32::try_from(largest.div_ceil(1024)).unwrap_or(u32::MAX) } else { 0 }
}

async fn tried(api: &Api, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let room = room(&body);
    let _room = api.bodies.acquire_many(room).await; // the semaphore is never closed
    let Ok(bytes) = to_bytes(body, LARGEST_BODY).await else {
        return Problem::new("too-large", "A body has at most 512 KiB.").into_response();
    };
    let mut tries = 1;
    loop {
        let response = next.clone().run(Request::from_parts(parts.clone(), Body::from(bytes.clone()))).await;
        if tries == TRIES || response.extensions().get::<Again>().is_none() {
            return response;
        }
        tries += 1;
    }
}

/// Turns a refusal without a problem body into a problem.
fn refused(response: Response) -> Response {
    let is_problem =
        response.headers().get(header::CONTENT_TYPE) == Some(&HeaderValue::from_static("application/problem+json"));
    match response.status() {
        _ if is_problem => response,
        StatusCode::BAD_REQUEST => Problem::new("not-found", "The address is no text in UTF-8.").into_response(),
        status if status.is_client_error() || status.is_server_error() => {
            tracing::error!(%status, "a refusal without a name");
            Problem::new("internal", "The refusal has no name.").into_response()
        }
        _ => response,
    }
}

#[cfg(test)]
#[path = "around_tests.rs"]
mod tests;
