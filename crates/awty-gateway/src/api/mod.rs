//! The API over HTTP. One file per resource.
//!
//! Invariant: each request is one transaction with the rights of its token's role; GET changes nothing but the token's last use.

mod auth;
mod input;
mod list;
mod naptime;
mod problem;
mod rules;
mod schedules;
mod show;

use crate::db::Db;
use crate::duration::Length;
use crate::net::guard::Guard;
use auth::Limits;
use axum::extract::{DefaultBodyLimit, Path};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use problem::{PROBLEMS, Problem};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tower_http::timeout::TimeoutLayer;

/// Of a request's body.
const LARGEST_BODY: usize = 512 * 1024;
/// A request is complete and answered within this.
const LONGEST_REQUEST: Duration = Duration::from_secs(10);

/// What requests work with.
pub struct Api {
    db: Db,
    limits: Limits,
    guard: Guard,
    master_key: Vec<u8>,
    min_period: Option<Length>,
    max_period: Length,
}

impl Api {
    /// For the whole program.
    pub fn new(db: Db, guard: Guard, master_key: Vec<u8>, min_period: Option<Length>, max_period: Length) -> Arc<Self> {
        Arc::new(Api { db, limits: Limits::default(), guard, master_key, min_period, max_period })
    }
}

/// All resources.
pub fn router(api: Arc<Api>) -> Router {
    let id = get(schedules::show).put(schedules::replace).delete(schedules::delete);
    Router::new()
        .route(
            "/v1/schedules",
            get(list::list).post(schedules::create).put(schedules::put).delete(schedules::delete_by_uri),
        )
        .route("/v1/schedules/{id}", id)
        .route("/v1/schedules/{id}/run", post(schedules::run))
        .route("/v1/schedules/{id}/pause", post(schedules::pause))
        .route("/v1/schedules/{id}/resume", post(schedules::resume))
        .route("/v1/schedules/{id}/attempts", get(schedules::attempts))
        .route("/v1/schedules/{id}/secret", get(schedules::secret))
        .route("/naptime/{uri}/{period}", get(naptime::show).put(naptime::put).delete(naptime::delete))
        .route("/problems/{name}", get(page))
        .fallback(async || Problem::new("not-found", "There is no such resource."))
        .method_not_allowed_fallback(async || {
            Problem::new("method-not-allowed", "The resource does not know this method.")
        })
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .layer(TimeoutLayer::with_status_code(axum::http::StatusCode::GATEWAY_TIMEOUT, LONGEST_REQUEST))
        .with_state(api)
}

/// What a problem's name means.
async fn page(Path(name): Path<String>) -> Response {
    match PROBLEMS.iter().find(|(known, ..)| *known == name) {
        Some((name, status, title)) => Json(json!({"name": name, "status": status, "title": title})).into_response(),
        None => Problem::new("not-found", "There is no such problem.").into_response(),
    }
}
