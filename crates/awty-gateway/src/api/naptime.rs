//! naptime's own entry points: `/naptime/{uri, encoded}/{period}`, by the same rules.
//!
//! Invariant: another period than the scheduled one is a conflict to PUT and nothing to GET and DELETE.

use super::Api;
use super::auth::Asker;
use super::problem::{Fault, Problem};
use super::rules::{Change, Write, change, spelled_only, there, write};
use super::shape;
use super::show;
use crate::db::schedules::{self as db, Row};
use crate::duration::{self, Length};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};
use std::sync::Arc;

type Answer = Result<Response, Problem>;

/// The schedule of a URI, and whether its period is that one, before or after rounding.
async fn find(api: &Api, asker: &Asker, uri: &str, period: &str) -> Result<(Option<Row>, bool), Problem> {
    let fault = |reason| Problem::fields("invalid-field", &[Fault { pointer: "/every".into(), reason }]);
    let length: Length = duration::parse(period).map_err(fault)?;
    let endpoint = spelled_only(uri)?;
    let request = api.begin(asker).await?;
    let id = db::id_of(&request, endpoint.as_str()).await?;
    let row = db::one(&request, &id).await?;
    request.commit().await?;
    let has = |row: &Row, name: &str| row.fields.get(name).and_then(Value::as_i64) == Some(length.as_millis());
    let same = row.as_ref().is_some_and(|row| has(row, "every") || has(row, "rounded_from"));
    Ok((row, same))
}

/// The schedule with that period.
async fn exact(api: &Api, asker: &Asker, uri: &str, period: &str) -> Result<Row, Problem> {
    let (row, same) = find(api, asker, uri, period).await?;
    let row = there(row)?;
    if same { Ok(row) } else { Err(Problem::new("not-found", "The URI is scheduled with another period.")) }
}

/// The schedule with that period.
#[utoipa::path(get, path = "/naptime/{uri}/{period}", tag = "naptime", params(("uri" = String, Path), ("period" = String, Path)),
    responses((status = 200, body = shape::Schedule), (status = 304), (status = "default", body = shape::Problem)))]
pub async fn show(
    State(api): State<Arc<Api>>,
    asker: Asker,
    headers: HeaderMap,
    Path((uri, period)): Path<(String, String)>,
) -> Answer {
    Ok(show::answer(&exact(&api, &asker, &uri, &period).await?, StatusCode::OK, &headers))
}

/// Schedules the URI; another period is 409.
#[utoipa::path(put, path = "/naptime/{uri}/{period}", tag = "naptime", params(("uri" = String, Path), ("period" = String, Path)),
    responses((status = 200, body = shape::Schedule), (status = 201, body = shape::Schedule), (status = "default", body = shape::Problem)))]
pub async fn put(
    State(api): State<Arc<Api>>,
    asker: Asker,
    headers: HeaderMap,
    Path((uri, period)): Path<(String, String)>,
) -> Answer {
    asker.may("write")?;
    let (row, same) = find(&api, &asker, &uri, &period).await?;
    let row = match row.filter(|row| !row.deleted) {
        Some(row) => (row, same),
        None => {
            let fields = Map::from_iter([("every".to_owned(), Value::from(period.clone()))]);
            match write(&api, &asker, &headers, fields, Some(uri.clone()), Write::Create).await {
                // Another request was faster, with this period or with another.
                Err(problem) if problem.is("uri-already-scheduled") => match find(&api, &asker, &uri, &period).await? {
                    (Some(row), same) if !row.deleted => (row, same),
                    _ => return Err(problem),
                },
                answer => return answer,
            }
        }
    };
    match row {
        (row, true) => Ok(show::answer(&row, StatusCode::OK, &HeaderMap::new())),
        (row, false) => {
            let problem = Problem::new("uri-already-scheduled", "The URI is scheduled with another period.");
            Err(problem.with("existing", format!("/v1/schedules/{}", row.id)))
        }
    }
}

/// Ends the schedule with that period.
#[utoipa::path(delete, path = "/naptime/{uri}/{period}", tag = "naptime", params(("uri" = String, Path), ("period" = String, Path)),
    responses((status = 204), (status = "default", body = shape::Problem)))]
pub async fn delete(
    State(api): State<Arc<Api>>,
    asker: Asker,
    headers: HeaderMap,
    Path((uri, period)): Path<(String, String)>,
) -> Answer {
    asker.may("write")?;
    let id = exact(&api, &asker, &uri, &period).await?.id;
    change(&api, &asker, &headers, &id, Change::End).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
