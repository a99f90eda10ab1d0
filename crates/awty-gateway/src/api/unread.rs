//! Limits the memory for answers that a role's clients have not read yet. An answer counts until the connection has
//! taken all of it.

use super::permits::{Room, Seen};
use super::problem::Problem;
use super::state::{Api, SMALL};
use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::response::{IntoResponse, Response};
use std::time::Duration;
use tokio::time::timeout;

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

impl Api {
    pub async fn unread(&self, seen: &Seen, response: Response) -> Response {
        let size = response.body().size_hint().exact().and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
        let (Some(role), true) = (seen.role(), size > SMALL) else { return response };
        let kib = u32::try_from(size.div_ceil(1024)).unwrap_or(u32::MAX);
        let Ok(Ok(room)) = timeout(PATIENCE, self.permits.answer(role, kib)).await else {
            return Problem::new("rate-limited", "Clients of this role have not read earlier answers yet.")
                .into_response();
        };
        let (parts, body) = response.into_parts();
        let Ok(bytes) = to_bytes(body, usize::MAX).await else {
            return Problem::new("internal", "The answer cannot be read.").into_response();
        };
        Response::from_parts(parts, Body::from(Bytes::from_owner(Unread { bytes, _room: room })))
    }
}

#[cfg(test)]
#[path = "unread_tests.rs"]
mod tests;
