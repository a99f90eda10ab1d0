//! The HTTP API, one file per resource.
//!
//! Invariant: each request is one transaction with the rights of its token's role. GET changes only the token's time of last use.

mod around;
mod auth;
mod body;
mod change;
mod fields;
mod history;
mod input;
mod list;
mod naptime;
mod number;
pub mod openapi;
mod operate;
mod page;
mod problem;
mod problems;
mod rules;
mod schedules;
mod sends;
mod shape;
mod share;
mod show;
mod status;
mod targets;
mod time;
mod tokens;

pub use share::{CHANGES, READS};

use crate::db::Db;
use crate::duration::Length;
use crate::metrics::Metrics;
use crate::net::guard::Shared;
use auth::Limits;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use problem::Problem;
use share::Shares;
use std::sync::Arc;
use tokio::sync::Semaphore;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

const LARGEST_BODY: usize = 512 * 1024;

/// Configuration of the API.
pub struct Terms {
    /// Name of this gateway.
    pub name: String,
    /// Key from which the signing keys are derived.
    pub master_key: Vec<u8>,
    /// Shortest period; by default one slot.
    pub min_period: Option<Length>,
    /// Longest period.
    pub max_period: Length,
    /// Timeout of calls whose schedule has none.
    pub timeout: Length,
}

/// State shared by all requests.
pub struct Api {
    db: Db,
    limits: Limits,
    shares: Shares,
    bodies: Semaphore,
    guard: Shared,
    metrics: Arc<Metrics>,
    terms: Terms,
}

impl Api {
    /// Creates the state of the whole program.
    pub fn new(db: Db, guard: impl Into<Shared>, metrics: Arc<Metrics>, terms: Terms) -> Arc<Self> {
        let (limits, shares, bodies) = (Limits::default(), Shares::default(), Semaphore::new(around::ROOM));
        Arc::new(Api { db, limits, shares, bodies, guard: guard.into(), metrics, terms })
    }
}

/// All resources with their OpenAPI document.
fn resources() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::with_openapi(openapi::around())
        .routes(routes!(list::list, schedules::create, schedules::put, schedules::delete_by_uri))
        .routes(routes!(schedules::show, schedules::replace, schedules::delete))
        .routes(routes!(operate::run))
        .routes(routes!(operate::pause))
        .routes(routes!(operate::resume))
        .routes(routes!(operate::attempts))
        .routes(routes!(operate::stats))
        .routes(routes!(operate::next))
        .routes(routes!(operate::secret))
        .routes(routes!(sends::create))
        .routes(routes!(sends::show, sends::delete))
        .routes(routes!(history::list))
        .routes(routes!(history::retry))
        .routes(routes!(status::slots))
        .routes(routes!(status::status))
        .routes(routes!(targets::list))
        .routes(routes!(targets::show, targets::put))
        .routes(routes!(targets::block))
        .routes(routes!(targets::unblock))
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(tokens::show, tokens::delete))
        .routes(routes!(openapi::document))
        .routes(routes!(problems::page))
        .routes(routes!(naptime::show, naptime::put, naptime::delete))
}

/// Router of all resources.
pub fn router(api: Arc<Api>) -> Router {
    let (router, _) = resources().split_for_parts();
    router
        .fallback(async || Problem::new("not-found", "There is no such resource."))
        .method_not_allowed_fallback(async || {
            Problem::new("method-not-allowed", "The resource does not know this method.")
        })
        .layer(DefaultBodyLimit::disable()) // `around` has the limit
        .layer(from_fn_with_state(api.clone(), around::around))
        .with_state(api)
}
