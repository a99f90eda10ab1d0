//! Invariant: each API request runs in one database transaction, with the rights of the token's role and under row
//! security.
//!
//! Invariant: the only thing that a GET request changes in the database is the time of its token's last use.

mod auth;
pub(crate) mod body;
mod change;
mod fields;
mod history;
mod input;
mod json_text;
mod middleware;
mod naptime;
mod openapi;
mod operate;
mod pagination;
mod permits;
mod places;
mod problem;
mod problems;
mod rates;
mod role;
mod rules;
mod schedule_list;
mod schedules;
mod sends;
mod shape;
mod show;
mod state;
mod status;
mod targets;
mod time;
mod tokens;
mod unchanged;
mod unread;

pub use auth::Asker;
pub use permits::{Room, Seen};
pub use places::{CHANGES, READS};
pub use problem::{Problem, shortened};
pub use state::{Api, ApiConfig};

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use std::sync::{Arc, LazyLock};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

fn resources() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::with_openapi(openapi::frame())
        .routes(routes!(schedule_list::list, schedules::create, schedules::put, schedules::delete_by_uri))
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
        .routes(routes!(document))
        .routes(routes!(problem::page))
        .routes(routes!(naptime::show, naptime::put, naptime::delete))
}

pub fn whole() -> OpenApi {
    resources().into_openapi()
}

/// Returns this OpenAPI document.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "status", security(()), responses((status = 200, body = Object)))]
pub async fn document() -> impl IntoResponse {
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| whole().to_json().unwrap_or_default().into());
    ([(CONTENT_TYPE, "application/json")], TEXT.clone())
}

pub fn router(api: Arc<Api>) -> Router {
    let (router, _) = resources().split_for_parts();
    router
        .fallback(async || Problem::new("not-found", "There is no such resource."))
        .method_not_allowed_fallback(async || {
            Problem::new("method-not-allowed", "The resource does not have this method.")
        })
        .layer(DefaultBodyLimit::disable()) // `middleware::around` limits bodies instead
        .layer(from_fn_with_state(api.clone(), middleware::around))
        .with_state(api)
}

#[cfg(test)]
mod tests;
