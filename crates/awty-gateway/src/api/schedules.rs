use super::auth::Asker;
use super::body::{Body, object};
use super::change::{Change, change};
use super::pagination;
use super::problem::{Fault, Problem};
use super::rules::{Answer, Write, read, there, write};
use super::schedule_list::{ScheduleQuery, id_of};
use super::shape;
use super::show;
use super::state::Api;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use serde_json::Value;
use std::sync::Arc;

/// Creates a schedule. A URI that already has one is a conflict (409).
#[utoipa::path(post, path = "/v1/schedules", tag = "schedules", request_body = shape::ScheduleWanted,
    responses((status = 201, body = shape::Schedule), (status = "default", body = shape::Problem)))]
pub async fn create(State(api): State<Arc<Api>>, asker: Asker, headers: HeaderMap, body: Body) -> Answer {
    write(&api, &asker, &headers, || object(&headers, body), None, Write::Create).await
}

fn uri(query: pagination::QueryResult<ScheduleQuery>) -> Result<String, Problem> {
    pagination::read(query)?.uri.ok_or_else(|| {
        let reason = "is missing; write /v1/schedules?uri=<encoded>".to_owned();
        Problem::fields("malformed-uri", &[Fault { pointer: "/uri".to_owned(), reason }])
    })
}

/// Creates or replaces the schedule that calls this URI.
#[utoipa::path(put, path = "/v1/schedules", tag = "schedules", params(("uri" = String, Query)), request_body = shape::ScheduleWanted,
    responses((status = 200, body = shape::Schedule), (status = 201, body = shape::Schedule), (status = "default", body = shape::Problem)))]
pub async fn put(
    State(api): State<Arc<Api>>,
    asker: Asker,
    headers: HeaderMap,
    query: pagination::QueryResult<ScheduleQuery>,
    body: Body,
) -> Answer {
    let uri = uri(query)?;
    write(&api, &asker, &headers, || object(&headers, body), Some(uri), Write::Put).await
}

/// Replaces a schedule.
#[utoipa::path(put, path = "/v1/schedules/{id}", tag = "schedules", params(("id" = String, Path)), request_body = shape::ScheduleWanted,
    responses((status = 200, body = shape::Schedule), (status = "default", body = shape::Problem)))]
pub async fn replace(
    State(api): State<Arc<Api>>,
    asker: Asker,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let row = there(read(&api, &asker, &id).await?)?;
    if !row.own {
        asker.may("write")?;
        return Err(super::rules::not_own());
    }
    let uri = row.fields.get("uri").and_then(Value::as_str).map(str::to_owned);
    write(&api, &asker, &headers, || object(&headers, body), uri, Write::Replace).await
}

/// Returns one schedule.
#[utoipa::path(get, path = "/v1/schedules/{id}", tag = "schedules", params(("id" = String, Path)),
    responses((status = 200, body = shape::Schedule), (status = 304), (status = "default", body = shape::Problem)))]
pub async fn show(State(api): State<Arc<Api>>, asker: Asker, headers: HeaderMap, Path(id): Path<String>) -> Answer {
    Ok(show::answer(&there(read(&api, &asker, &id).await?)?, StatusCode::OK, &headers))
}

/// Ends the schedule of a URI.
#[utoipa::path(delete, path = "/v1/schedules", tag = "schedules", params(("uri" = String, Query)),
    responses((status = 204), (status = "default", body = shape::Problem)))]
pub async fn delete_by_uri(
    State(api): State<Arc<Api>>,
    asker: Asker,
    headers: HeaderMap,
    query: pagination::QueryResult<ScheduleQuery>,
) -> Answer {
    let id = id_of(&api, &asker, &uri(query)?).await?;
    delete(State(api), asker, headers, Path(id)).await
}

/// Ends a schedule and keeps its history.
#[utoipa::path(delete, path = "/v1/schedules/{id}", tag = "schedules", params(("id" = String, Path)),
    responses((status = 204), (status = "default", body = shape::Problem)))]
pub async fn delete(State(api): State<Arc<Api>>, asker: Asker, headers: HeaderMap, Path(id): Path<String>) -> Answer {
    change(&api, &asker, &headers, &id, Change::End(None)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
