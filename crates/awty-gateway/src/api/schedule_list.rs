use super::auth::Asker;
use super::pagination::{self, Page};
use super::problem::Problem;
use super::rules::{Answer, parse_uri, read, there};
use super::show;
use super::state::Api;
use crate::db::schedules::{self as db, Filter};
use crate::db::views;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use std::sync::Arc;

const STATES: [&str; 5] = ["active", "paused", "held", "blocked", "ended"];

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ScheduleQuery {
    /// The schedule of this URI. If a request has this parameter, all other parameters have no effect.
    pub(super) uri: Option<String>,
    /// Only schedules in this state: active, paused, held, blocked or ended. Deleted schedules are listed as ended, and only with this filter.
    state: Option<String>,
    /// Only schedules with this scheme, host and port.
    origin: Option<String>,
    /// Only schedules with this label.
    label: Option<String>,
    /// Only schedules whose URI, description or label contains this text, in upper or lower case.
    q: Option<String>,
    /// true: only schedules whose last call failed. false: only schedules whose last call did not fail.
    failing: Option<bool>,
    /// Number of items, 1 to 500; by default 50.
    limit: Option<i64>,
    /// Cursor of the previous page.
    after: Option<String>,
}

/// Returns a page of schedules, or the schedule of one URI.
#[utoipa::path(get, path = "/v1/schedules", tag = "schedules", params(ScheduleQuery),
    responses((status = 200, body = super::shape::Schedules), (status = "default", body = super::shape::Problem)))]
pub async fn list(
    State(api): State<Arc<Api>>,
    asker: Asker,
    headers: HeaderMap,
    query: pagination::QueryResult<ScheduleQuery>,
) -> Answer {
    let asked = pagination::read(query)?;
    if let Some(uri) = &asked.uri {
        let id = id_of(&api, &asker, uri).await?;
        return Ok(show::answer(&there(read(&api, &asker, &id).await?)?, StatusCode::OK, &headers));
    }
    let ScheduleQuery { state, origin, label, q, failing, limit, after, .. } = asked;
    if state.as_deref().is_some_and(|state| !STATES.contains(&state)) {
        return Err(Problem::parameter("state", format!("is not known; write one of {}", STATES.join(", "))));
    }
    let origin = origin.as_deref().map(super::targets::origin).transpose()?;
    let page = Page::of(limit, after.as_deref(), 1)?;
    let filter = Filter { state, origin, label, q, failing };
    let request = api.begin(&asker).await?;
    let (rows, end) = db::list(&request, page.after(0).unwrap_or_default(), &filter, page.rows()).await?;
    request.commit().await?;
    let rows = rows.into_iter().map(|(row, cursor)| (show::text(&row), vec![cursor])).collect();
    let Filter { state, origin, label, q, failing } = filter;
    let query = [("state", state), ("origin", origin), ("label", label), ("q", q)];
    let failing = ("failing", failing.map(|failing| failing.to_string()));
    Ok(page.answer_texts("/v1/schedules", &[&query[..], &[failing]].concat(), rows, end, &headers))
}

/// A read also finds the schedules of other tenants.
pub(super) async fn id_of(api: &Api, asker: &Asker, uri: &str) -> Result<String, Problem> {
    let endpoint = parse_uri(uri)?;
    let request = api.begin(asker).await?;
    let id = if asker.changes() {
        db::id_of(&request, endpoint.as_str()).await?
    } else {
        views::schedule_of(&request, &endpoint.entity_name(), endpoint.entity_key()).await?.unwrap_or_default()
    };
    request.commit().await?;
    Ok(id)
}
