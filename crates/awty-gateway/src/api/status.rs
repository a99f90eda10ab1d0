use super::auth::Asker;
use super::pagination::{self, Page};
use super::problem::Problem;
use super::rules::Answer;
use super::shape;
use super::show;
use super::state::Api;
use crate::db::{calls, schedules, status as db};
use crate::duration::Length;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

const LONGEST: TimeDelta = TimeDelta::days(31);

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SlotQuery {
    /// Start of the time range. Without a start, overdue checks are included.
    from: Option<String>,
    /// End of the time range, at most 31 days ahead; by default an hour from now.
    to: Option<String>,
    /// Number of items, 1 to 500; by default 50.
    limit: Option<i64>,
    /// Cursor of the previous page.
    after: Option<String>,
}

/// Returns the number of due checks for each slot and job.
#[utoipa::path(get, path = "/v1/slots", tag = "status", params(SlotQuery),
    responses((status = 200, body = shape::Slots), (status = "default", body = shape::Problem)))]
pub async fn slots(
    State(api): State<Arc<Api>>,
    asker: Asker,
    headers: HeaderMap,
    query: pagination::QueryResult<SlotQuery>,
) -> Answer {
    let SlotQuery { from, to, limit, after } = pagination::read(query)?;
    let page = Page::of(limit, after.as_deref(), 2)?;
    let now = crate::clock::now();
    let first = super::time::of("from", from)?.unwrap_or(DateTime::<Utc>::UNIX_EPOCH);
    let last = super::time::of("to", to)?.unwrap_or_else(|| first.max(now) + TimeDelta::hours(1));
    if last <= now.max(first) || last > now + LONGEST {
        return Err(Problem::parameter(
            "to",
            "is out of range; write a time after now and after from, at most 31 days ahead",
        ));
    }
    let request = api.begin(&asker).await?;
    let (first, last) = (first.to_rfc3339(), last.to_rfc3339());
    let rows = calls::slots(&request, &first, &last, (page.after(0), page.after(1)), page.rows()).await?;
    request.commit().await?;
    Ok(page.answer("/v1/slots", &[("from", Some(first)), ("to", Some(last))], rows, &headers))
}

/// State of the database, the gateways, the findings, and this gateway's settings.
#[utoipa::path(get, path = "/v1/status", tag = "status",
    responses((status = 200, body = shape::Status), (status = 304), (status = "default", body = shape::Problem)))]
pub async fn status(State(api): State<Arc<Api>>, asker: Asker, headers: HeaderMap) -> Answer {
    let request = api.begin(&asker).await?;
    let slot = Length::millis(schedules::slot(&request).await?);
    let (mut database, gateways, findings) = db::status(&request).await?;
    request.commit().await?;
    if let Some(lag) = database.get_mut("lag") {
        *lag = lag.as_i64().map_or(Value::Null, |lag| Length::millis(lag).to_string().into());
    }
    let own = json!({"name": api.config.name, "version": env!("CARGO_PKG_VERSION")});
    let status = json!({"database": database, "gateway": own, "gateways": gateways, "findings": findings, "slot": slot,
        "min_period": api.config.min_period.unwrap_or(slot), "max_period": api.config.max_period, "timeout": api.config.timeout});
    Ok(show::tagged("0", &status, StatusCode::OK, &headers))
}
