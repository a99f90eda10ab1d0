use super::auth::Asker;
use super::body::Body;
use super::change::{Change, change};
use super::pagination::{self, Page};
use super::problem::Problem;
use super::rules::{Answer, not_own, there};
use super::shape;
use super::show;
use super::state::Api;
use crate::db::Request;
use crate::db::{calls, schedules as db};
use crate::deliver::sign::{self, signing_key};
use crate::duration;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Calls the schedule now. Its plan continues afterwards.
#[utoipa::path(post, path = "/v1/schedules/{id}/run", tag = "schedules", params(("id" = String, Path)),
    responses((status = 202, body = shape::Schedule), (status = "default", body = shape::Problem)))]
pub async fn run(State(api): State<Arc<Api>>, asker: Asker, headers: HeaderMap, Path(id): Path<String>) -> Answer {
    let row = change(&api, &asker, &headers, &id, Change::Run).await?;
    Ok(show::answer(&there(row)?, StatusCode::ACCEPTED, &headers))
}

/// Pauses the schedule, with a note that gives the reason.
#[utoipa::path(post, path = "/v1/schedules/{id}/pause", tag = "schedules", params(("id" = String, Path)),
    request_body(content = Option<shape::Note>, description = "Why, in words"),
    responses((status = 200, body = shape::Schedule), (status = "default", body = shape::Problem)))]
pub async fn pause(
    State(api): State<Arc<Api>>,
    asker: Asker,
    headers: HeaderMap,
    Path(id): Path<String>,
    body: Body,
) -> Answer {
    let row = change(&api, &asker, &headers, &id, Change::Pause(body)).await?;
    Ok(show::answer(&there(row)?, StatusCode::OK, &HeaderMap::new()))
}

/// Resumes the schedule.
#[utoipa::path(post, path = "/v1/schedules/{id}/resume", tag = "schedules", params(("id" = String, Path)),
    responses((status = 200, body = shape::Schedule), (status = "default", body = shape::Problem)))]
pub async fn resume(State(api): State<Arc<Api>>, asker: Asker, headers: HeaderMap, Path(id): Path<String>) -> Answer {
    let row = change(&api, &asker, &headers, &id, Change::Resume).await?;
    Ok(show::answer(&there(row)?, StatusCode::OK, &HeaderMap::new()))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// Number of items, 1 to 500; by default 50.
    limit: Option<i64>,
    /// Cursor of the previous page.
    after: Option<String>,
}

impl PageQuery {
    pub(super) fn page(&self, parts: usize) -> Result<Page, Problem> {
        Page::of(self.limit, self.after.as_deref(), parts)
    }
}

async fn known(api: &Api, asker: &Asker, id: &str) -> Result<Request, Problem> {
    let request = api.begin(asker).await?;
    if !db::is_known(&request, id).await? {
        there(None)?;
    }
    Ok(request)
}

/// Returns the calls of a schedule, newest first. The schedule may be deleted.
#[utoipa::path(get, path = "/v1/schedules/{id}/attempts", tag = "schedules", params(("id" = String, Path), PageQuery),
    responses((status = 200, body = shape::Attempts), (status = "default", body = shape::Problem)))]
pub async fn attempts(
    State(api): State<Arc<Api>>,
    asker: Asker,
    headers: HeaderMap,
    Path(id): Path<String>,
    query: pagination::QueryResult<PageQuery>,
) -> Answer {
    let page = pagination::read(query)?.page(2)?;
    let request = known(&api, &asker, &id).await?;
    let rows = calls::attempts(&request, &id, page.after(0), page.number_after(1)?, page.rows()).await?;
    request.commit().await?;
    let shown = |row: &Value| if row.is_null() { Value::Null } else { show::call(row) };
    let rows = rows.into_iter().map(|(row, key)| (shown(&row), key)).collect();
    Ok(page.answer(&format!("/v1/schedules/{id}/attempts"), &[], rows, &headers))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Count {
    /// Number of calls, 1 to 100; by default 10.
    count: Option<i32>,
}

/// Returns the times of the next calls; none while the schedule is paused.
#[utoipa::path(get, path = "/v1/schedules/{id}/next", tag = "schedules", params(("id" = String, Path), Count),
    responses((status = 200, body = shape::Times), (status = "default", body = shape::Problem)))]
pub async fn next(
    State(api): State<Arc<Api>>,
    asker: Asker,
    headers: HeaderMap,
    Path(id): Path<String>,
    query: pagination::QueryResult<Count>,
) -> Answer {
    let count = pagination::read(query)?.count.unwrap_or(10);
    if !(1..=100).contains(&count) {
        return Err(Problem::parameter("count", "is out of range; write 1 to 100"));
    }
    let request = api.begin(&asker).await?;
    there(db::one(&request, &id).await?)?;
    let items = calls::next(&request, &id, count).await?;
    request.commit().await?;
    Ok(show::tagged("0", &json!({"items": items}), StatusCode::OK, &headers))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Span {
    /// Length of a bucket: 1s, 10s, 1m, 10m, 1h, 6h or 1d; by default 1m.
    bucket: Option<String>,
    /// Start of the time range; by default 60 buckets before the end.
    from: Option<String>,
    /// End of the time range; by default now.
    to: Option<String>,
}

/// Returns the results of the calls by bucket, without empty buckets. The schedule may be deleted.
#[utoipa::path(get, path = "/v1/schedules/{id}/stats", tag = "schedules", params(("id" = String, Path), Span),
    responses((status = 200, body = shape::Stats), (status = "default", body = shape::Problem)))]
pub async fn stats(
    State(api): State<Arc<Api>>,
    asker: Asker,
    headers: HeaderMap,
    Path(id): Path<String>,
    query: pagination::QueryResult<Span>,
) -> Answer {
    let Span { bucket, from, to } = pagination::read(query)?;
    let bucket = bucket.as_deref().unwrap_or("1m");
    let width = duration::parse(bucket).map_err(|why| Problem::parameter("bucket", why))?;
    let to = super::time::of("to", to)?.unwrap_or_else(crate::clock::now);
    let before = || to.checked_sub_signed(width.delta().checked_mul(60)?);
    let from = super::time::of("from", from)?.or_else(before);
    let from = from.ok_or_else(|| Problem::parameter("from", "is too far away"))?;
    let request = known(&api, &asker, &id).await?;
    let (from, to) = (from.to_rfc3339(), to.to_rfc3339());
    let rows = calls::stats(&request, &id, &super::fields::interval(width), &from, &to).await?;
    request.commit().await?;
    let items: Vec<Value> = rows.iter().map(point).collect();
    Ok(show::tagged("0", &json!({"bucket": width.to_string(), "items": items}), StatusCode::OK, &headers))
}

fn point(row: &Value) -> Value {
    let lengths = |what: &str| {
        let of = |name: &str| show::seconds(&row[format!("{what}_{name}")]);
        json!({"p50": of("p50"), "p95": of("p95"), "max": of("max")})
    };
    let count = |name: &str| row[name].as_i64().unwrap_or(0);
    json!({"at": row["bucket"], "count": row["count"], "ok": row["ok"], "failed": count("count") - count("ok") - count("dropped"),
        "dropped": row["dropped"], "caught_up": row["caught_up"], "implausible": row["implausible"], "left_out": row["left_out"], "lateness": lengths("lateness"), "duration": lengths("duration"),
        "caught_up_max": show::seconds(&row["caught_up_max"])})
}

/// Returns the key that signs the calls of this schedule. Only roles that may schedule can read it.
#[utoipa::path(get, path = "/v1/schedules/{id}/secret", tag = "schedules", params(("id" = String, Path)),
    responses((status = 200, body = shape::Secret), (status = "default", body = shape::Problem)))]
pub async fn secret(State(api): State<Arc<Api>>, asker: Asker, Path(id): Path<String>) -> Answer {
    asker.may("write")?;
    let request = api.begin(&asker).await?;
    let (row, tenant) = (db::one(&request, &id).await?, db::tenant(&request, &id).await?);
    request.commit().await?;
    there(row)?;
    let key = signing_key(&api.config.master_key, tenant.ok_or_else(not_own)?, &id);
    let private = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok((private, Json(json!({"secret": sign::secret(&key)}))).into_response())
}
