//! Serves the API of naptime, a different service that schedules HTTP calls.
//!
//! Invariant: if the URI's schedule has a different period, PUT answers 409, and GET and DELETE answer 404.

use super::auth::Asker;
use super::change::{Change, change};
use super::fields::Object;
use super::problem::{Fault, Problem};
use super::rules::{Answer, Write, another_period, has_period, read, there, write};
use super::schedule_list::id_of;
use super::shape;
use super::show;
use super::state::Api;
use crate::duration::{self, Length};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use serde_json::value::to_raw_value;
use std::sync::Arc;

fn length(period: &str) -> Result<Length, Problem> {
    let fault = |reason| Problem::fields("invalid-field", &[Fault { pointer: "/every".into(), reason }]);
    duration::parse(period).map_err(fault)
}

/// Returns the schedule with this period.
#[utoipa::path(get, path = "/naptime/{uri}/{period}", tag = "naptime", params(("uri" = String, Path), ("period" = String, Path)),
    responses((status = 200, body = shape::Schedule), (status = 304), (status = "default", body = shape::Problem)))]
pub async fn show(
    State(api): State<Arc<Api>>,
    asker: Asker,
    headers: HeaderMap,
    Path((uri, period)): Path<(String, String)>,
) -> Answer {
    let period = length(&period)?;
    let id = id_of(&api, &asker, &uri).await?;
    let row = there(read(&api, &asker, &id).await?)?;
    if has_period(&row, period) { Ok(show::answer(&row, StatusCode::OK, &headers)) } else { Err(another_period()) }
}

/// Schedules the URI. Another period is a conflict (409).
#[utoipa::path(put, path = "/naptime/{uri}/{period}", tag = "naptime", params(("uri" = String, Path), ("period" = String, Path)),
    responses((status = 200, body = shape::Schedule), (status = 201, body = shape::Schedule), (status = "default", body = shape::Problem)))]
pub async fn put(
    State(api): State<Arc<Api>>,
    asker: Asker,
    headers: HeaderMap,
    Path((uri, period)): Path<(String, String)>,
) -> Answer {
    asker.may("write")?;
    let how = Write::Period(length(&period)?);
    let fields = || Ok(Object::from_iter(to_raw_value(&period).map(|every| ("every".to_owned(), every))));
    match write(&api, &asker, &headers, fields, Some(uri.clone()), how).await {
        // Tries again. The second attempt finds the schedule that another request has just created.
        Err(problem) if problem.is("uri-already-scheduled") => {
            write(&api, &asker, &headers, fields, Some(uri), how).await
        }
        answer => answer,
    }
}

/// Ends the schedule with this period.
#[utoipa::path(delete, path = "/naptime/{uri}/{period}", tag = "naptime", params(("uri" = String, Path), ("period" = String, Path)),
    responses((status = 204), (status = "default", body = shape::Problem)))]
pub async fn delete(
    State(api): State<Arc<Api>>,
    asker: Asker,
    headers: HeaderMap,
    Path((uri, period)): Path<(String, String)>,
) -> Answer {
    asker.may("write")?;
    let period = length(&period)?;
    let id = id_of(&api, &asker, &uri).await?;
    change(&api, &asker, &headers, &id, Change::End(Some(period))).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
