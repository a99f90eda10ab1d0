//! Repeats a request whose transaction failed because of a concurrent transaction.
//!
//! Limits the memory for request bodies. A large body needs a valid token.

use super::auth::Asker;
use super::permits::{Room, Seen};
use super::problem::{Again, Problem};
use super::role::LARGEST_BODY;
use super::state::{Api, SMALL};
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::Limited;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const LONGEST: Duration = Duration::from_secs(10);
const TRIES: usize = 3;
const ARRIVES: Duration = Duration::from_secs(2);
/// Memory that a refused form takes, in multiples of its text: the page shows the form again, with `&quot;` for each
/// quotation mark.
const DRAWN: u32 = 8;

pub async fn around(State(api): State<Arc<Api>>, mut request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let seen = Seen::default();
    request.extensions_mut().insert(seen.clone());
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let method = request.method().clone();
    let answer = async {
        let response = tried(&api, request, next).await.unwrap_or_else(Problem::into_response);
        api.unread(&seen, response).await
    };
    let late = || Problem::new("timed-out", "The request took longer than 10 s.").into_response();
    let response = refused(tokio::time::timeout(LONGEST, answer).await.unwrap_or_else(|_| late()));
    let route = route.as_deref().unwrap_or("other");
    api.metrics.request(route, method.as_str(), response.status().as_u16(), begun.elapsed());
    response
}

/// Returns how many KiB to reserve for a body of the declared length. A small body needs no reservation.
fn room(said: Option<u64>, largest: usize) -> u32 {
    let said = said.and_then(|length| usize::try_from(length).ok());
    let largest = said.map_or(largest, |length| length.min(largest));
    if largest > SMALL { u32::try_from(largest.div_ceil(1024)).unwrap_or(u32::MAX) } else { 0 }
}

impl Api {
    pub async fn form(&self, role: Option<&str>, said: Option<u64>, largest: usize) -> Result<Option<Room>, Problem> {
        match (role, room(said, largest)) {
            (_, 0) => Ok(None),
            (Some(role), kib) => Ok(Some(self.permits.form(role, kib.saturating_mul(DRAWN)).await?)),
            (None, _) => Err(super::body::too_large()),
        }
    }
}

/// Reads a body. If large bodies may have to wait for memory, refuses one that does not arrive in time.
async fn arrived(api: &Api, body: Body, is_large: bool) -> Result<Bytes, Problem> {
    let mut reading = pin!(super::body::whole(Body::new(Limited::new(body, LARGEST_BODY))));
    loop {
        match tokio::time::timeout(ARRIVES, &mut reading).await {
            Ok(bytes) => return bytes.map_err(|_| super::body::too_large()),
            Err(_) if is_large && api.bodies.available_permits() < LARGEST_BODY / 1024 => {
                let detail = "The body did not arrive within 2 s, and other bodies wait for memory.";
                return Err(Problem::new("timed-out", detail));
            }
            Err(_) => {}
        }
    }
}

async fn tried(api: &Arc<Api>, request: Request, next: Next) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let kib = room(body.size_hint().upper(), LARGEST_BODY);
    let mut _of_role = None;
    if kib > 0 {
        let asker = Asker::from_request_parts(&mut parts, api).await?;
        _of_role = Some(api.permits.body(asker.role(), kib).await?);
        parts.extensions.insert(asker);
    }
    let _of_all = api.bodies.acquire_many(kib).await; // cannot fail, because the semaphore is never closed
    let bytes = arrived(api, body, kib > 0).await?;
    let mut tries = 1;
    loop {
        let response = next.clone().run(Request::from_parts(parts.clone(), Body::from(bytes.clone()))).await;
        if tries == TRIES || response.extensions().get::<Again>().is_none() {
            return Ok(response);
        }
        tries += 1;
    }
}

fn refused(response: Response) -> Response {
    let is_problem =
        response.headers().get(header::CONTENT_TYPE) == Some(&HeaderValue::from_static("application/problem+json"));
    match response.status() {
        _ if is_problem => response,
        StatusCode::BAD_REQUEST => Problem::new("not-found", "The address is not valid UTF-8.").into_response(),
        status if status.is_client_error() || status.is_server_error() => {
            tracing::error!(%status, "a refusal has no problem type");
            Problem::new("internal", "The refusal has no problem type.").into_response()
        }
        _ => response,
    }
}

#[cfg(test)]
#[path = "middleware_tests.rs"]
mod tests;
