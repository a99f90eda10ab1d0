use super::auth::Asker;
use super::change::{runs, still};
use super::pagination::{self, Page};
use super::problem::Problem;
use super::rules::{Answer, history as place, parse_uri};
use super::shape;
use super::show;
use super::state::Api;
use crate::db::{history as db, schedules, views};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct HistoryQuery {
    /// URI whose calls are listed. Its schedule may be deleted.
    uri: Option<String>,
    /// Number of items, 1 to 500; by default 50.
    limit: Option<i64>,
    /// Cursor of the previous page.
    after: Option<String>,
}

/// Calls that ended with a problem, newest first. `uri` selects the calls of one URI and adds its schedule, deleted or not.
#[utoipa::path(get, path = "/v1/history", tag = "history", params(HistoryQuery),
    responses((status = 200, body = shape::History), (status = "default", body = shape::Problem)))]
pub async fn list(
    State(api): State<Arc<Api>>,
    asker: Asker,
    headers: HeaderMap,
    query: pagination::QueryResult<HistoryQuery>,
) -> Answer {
    let HistoryQuery { uri, limit, after } = pagination::read(query)?;
    let page = Page::of(limit, after.as_deref(), 2)?;
    let endpoint = uri.as_deref().map(parse_uri).transpose()?;
    let request = api.begin(&asker).await?;
    let mut more = Map::new();
    let name = endpoint.as_ref().map(|endpoint| endpoint.entity_name());
    let of = endpoint.as_ref().zip(name.as_deref()).map(|(endpoint, name)| (name, endpoint.entity_key()));
    if let Some((name, key)) = of {
        let id = views::schedule_of(&request, name, key).await?.unwrap_or_default();
        let row = schedules::one(&request, &id).await?;
        more.insert("schedule".into(), row.map_or(Value::Null, |row| about(&row)));
    }
    let rows = db::list(&request, of, page.after(0), page.number_after(1)?, page.rows()).await?;
    request.commit().await?;
    Ok(page.answer_with("/v1/history", &[("uri", uri)], rows, more, &headers))
}

fn about(row: &schedules::Row) -> Value {
    let place = format!("/v1/schedules/{}", row.id);
    let get = |name: &str| row.fields.get(name).cloned().unwrap_or_default();
    json!({"id": row.id, "uri": get("uri"), "state": get("state"), "created_at": get("created_at"), "deleted_at": get("deleted_at"),
        "counts": get("counts"), "last": row.last.as_ref().map_or(Value::Null, show::last),
        "attempts": format!("{place}/attempts"), "stats": format!("{place}/stats")})
}

/// Makes the call again now.
#[utoipa::path(post, path = "/v1/history/{id}/retry", tag = "history", params(("id" = i64, Path)),
    responses((status = 202, body = shape::Retried), (status = "default", body = shape::Problem)))]
pub async fn retry(State(api): State<Arc<Api>>, asker: Asker, Path(id): Path<String>) -> Answer {
    asker.may("write")?;
    let none = || Problem::new("not-found", "There is no such call in the history, or this role may not see it.");
    let id: i64 = id.parse().map_err(|_| none())?;
    let request = api.begin(&asker).await?;
    let call = db::one(&request, id).await?.ok_or_else(none)?;
    runs(&request).await?;
    let text = |name: &str| call.get(name).and_then(Value::as_str).map(str::to_owned);
    db::retry(&request, id).await.map_err(|trouble| match trouble {
        trouble if trouble.is("55000") => still(),
        trouble if trouble.is("42704") => Problem::new("deleted", "The schedule was deleted.")
            .with("history", place(&text("uri").unwrap_or_default())),
        trouble => trouble.into(),
    })?;
    let next = match text("schedule") {
        Some(id) => Some(format!("/v1/schedules/{id}")),
        None => db::key(&request, id).await?.map(|key| super::sends::place(&key)),
    };
    request.commit().await?;
    let answer = json!({"uri": call["uri"], "schedule": call["schedule"], "key": call["key"]});
    let answer = show::tagged("0", &answer, StatusCode::ACCEPTED, &HeaderMap::new());
    Ok(match next {
        Some(place) => show::at(answer, &place),
        None => answer, // a send without a key has no address of its own
    })
}
