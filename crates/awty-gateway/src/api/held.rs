//! Bounds the memory that one role takes with large bodies of requests, and with answers that its clients do not read.
//!
//! Invariant: only a request with a good token takes room for a large body. The room of an answer is free once the
//! answer is written.

use super::around::{LONGEST, SMALL, late, room};
use super::auth::Asker;
use super::problem::Problem;
use super::share::{Room, Seen};
use super::state::Api;
use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// An answer waits this long until its role's clients have read others.
const PATIENCE: Duration = Duration::from_secs(1);

struct Unread {
    bytes: Bytes,
    _room: Room,
}

impl AsRef<[u8]> for Unread {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Middleware around all resources.
pub async fn held(State(api): State<Arc<Api>>, mut request: Request, next: Next) -> Response {
    let seen = Seen::default();
    request.extensions_mut().insert(seen.clone());
    let kib = room(request.body());
    if kib == 0 {
        return kept(&api, &seen, next.run(request).await).await;
    }
    let begun = Instant::now();
    let (mut parts, body) = request.into_parts();
    let admitted = async {
        let asker = Asker::from_request_parts(&mut parts, &api).await?;
        let room = api.shares.body(asker.role(), kib).await?;
        parts.extensions.insert(asker);
        Ok::<_, Problem>(room)
    };
    let refused = match timeout(LONGEST, admitted).await {
        Ok(Ok(_room)) => return kept(&api, &seen, next.run(Request::from_parts(parts, body)).await).await,
        Ok(Err(problem)) => problem,
        Err(_) => late(),
    };
    let response = refused.into_response();
    let route = parts.extensions.get::<MatchedPath>().map_or("other", MatchedPath::as_str);
    api.metrics.request(route, parts.method.as_str(), response.status().as_u16(), begun.elapsed());
    response
}

/// The answer counts as its role's until it is written.
async fn kept(api: &Api, seen: &Seen, response: Response) -> Response {
    let size = response.body().size_hint().exact().and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
    let (Some(role), true) = (seen.role(), size > SMALL) else { return response };
    let kib = u32::try_from(size.div_ceil(1024)).unwrap_or(u32::MAX);
    let Ok(Ok(room)) = timeout(PATIENCE, api.shares.answer(role, kib)).await else {
        return Problem::new("rate-limited", "Clients of this role have not read earlier answers yet.").into_response();
    };
    let (parts, body) = response.into_parts();
    // The body is in memory already.
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return Problem::new("internal", "The answer cannot be read.").into_response();
    };
    Response::from_parts(parts, Body::from(Bytes::from_owner(Unread { bytes, _room: room })))
}

#[cfg(test)]
#[path = "held_tests.rs"]
mod tests;
