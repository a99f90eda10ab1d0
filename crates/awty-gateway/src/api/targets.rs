//! Invariant: a role sees and changes only the limits and blocks of its own jobs.

use super::auth::Asker;
use super::body::{self, Body, object};
use super::fields::{Fields, interval};
use super::operate::PageQuery;
use super::pagination;
use super::problem::{Fault, Problem};
use super::rules::Answer;
use super::shape;
use super::show;
use super::state::Api;
use crate::db::targets::{self as db, Limits};
use crate::duration;
use awty_core::uri::Uri;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::Value;
use std::sync::Arc;

/// Known targets in the order of their names. Limits and a block for all targets are in an item without an origin.
#[utoipa::path(get, path = "/v1/targets", tag = "targets", params(PageQuery),
    responses((status = 200, body = shape::Targets), (status = "default", body = shape::Problem)))]
pub async fn list(
    State(api): State<Arc<Api>>,
    asker: Asker,
    headers: HeaderMap,
    query: pagination::QueryResult<PageQuery>,
) -> Answer {
    let page = pagination::read(query)?.page(1)?;
    let request = api.begin(&asker).await?;
    let rows = db::list(&request, page.after(0), page.rows()).await?;
    request.commit().await?;
    Ok(page.answer("/v1/targets", &[], rows, &headers))
}

pub(super) fn origin(text: &str) -> Result<String, Problem> {
    let refused = |reason| Problem::fields("malformed-uri", &[Fault { pointer: "/origin".into(), reason }]);
    let endpoint = Uri::parse(text).map_err(|why| refused(why.to_string()))?;
    if endpoint.entity_key() != "/" {
        return Err(refused("has a path; write scheme, host and port only, such as https://api.example.com".into()));
    }
    Ok(endpoint.entity_name())
}

fn version(target: &Value) -> String {
    show::hash(&["concurrency", "rate", "burst"].map(|name| target[name].to_string()).join(" "))
}

fn answer(target: &Value, headers: &HeaderMap) -> Response {
    show::tagged(&version(target), target, StatusCode::OK, headers)
}

fn there(target: Option<Value>) -> Result<Value, Problem> {
    target.ok_or_else(|| Problem::new("not-found", "Nothing is known of that origin, or this role may not see it."))
}

/// Returns one target.
#[utoipa::path(get, path = "/v1/targets/{origin}", tag = "targets", params(("origin" = String, Path, description = "Encoded, such as https%3A%2F%2Fapi.example.com")),
    responses((status = 200, body = shape::Target), (status = 304), (status = "default", body = shape::Problem)))]
pub async fn show(State(api): State<Arc<Api>>, asker: Asker, headers: HeaderMap, Path(name): Path<String>) -> Answer {
    let request = api.begin(&asker).await?;
    let target = there(db::one(&request, &origin(&name)?).await?)?;
    request.commit().await?;
    Ok(answer(&target, &headers))
}

fn limits(mut fields: Fields) -> Result<Limits, Problem> {
    shape::only_answers::<shape::Target>().iter().for_each(|name| drop(fields.left.remove(name)));
    let whole = |number: Option<i64>| number.and_then(|number| i32::try_from(number).ok());
    let limits = Limits {
        concurrency: whole(fields.whole("concurrency", 1..=1_000_000)),
        burst: whole(fields.whole("burst", 1..=1_000_000)),
        rate: fields.take("rate").map(|rate| {
            serde_json::from_str(rate.get()).ok().filter(|rate| (0.001..=1e6).contains(rate)).unwrap_or(f64::NAN)
        }),
    };
    if limits.rate.is_some_and(f64::is_nan) {
        fields.fault("rate", "is out of range; write 0.001 to 1000000 calls a second");
    }
    fields.done()?;
    Ok(limits)
}

/// Sets the limits of a target. A limit that is left out is removed.
#[utoipa::path(put, path = "/v1/targets/{origin}", tag = "targets", params(("origin" = String, Path)), request_body = shape::LimitsWanted,
    responses((status = 200, body = shape::Target), (status = "default", body = shape::Problem)))]
pub async fn put(
    State(api): State<Arc<Api>>,
    asker: Asker,
    headers: HeaderMap,
    Path(name): Path<String>,
    body: Body,
) -> Answer {
    asker.may("admin")?;
    let origin = origin(&name)?;
    let request = api.begin(&asker).await?;
    let limits = limits(Fields::of(object(&headers, body)?))?;
    db::lock(&request).await?;
    let before = db::one(&request, &origin).await?;
    if !show::fits(&headers, before.as_ref().map(version).as_deref()) {
        return Err(Problem::new("precondition-failed", "It has changed since its ETag was read."));
    }
    db::limit(&request, &origin, limits).await?;
    // The database returns a target only if the target has limits or schedules.
    let target = db::one(&request, &origin).await?;
    request.commit().await?;
    Ok(answer(&there(target.or(before))?, &HeaderMap::new()))
}

/// Blocks a target until a time, or for a length; by default until further notice.
#[utoipa::path(post, path = "/v1/targets/{origin}/block", tag = "targets", params(("origin" = String, Path)),
    request_body(content = Option<shape::Block>, description = "Until when, and why"),
    responses((status = 200, body = shape::Target), (status = "default", body = shape::Problem)))]
pub async fn block(
    State(api): State<Arc<Api>>,
    asker: Asker,
    headers: HeaderMap,
    Path(name): Path<String>,
    body: Body,
) -> Answer {
    asker.may("admin")?;
    let origin = origin(&name)?;
    let request = api.begin(&asker).await?;
    let mut fields = body::fields(&headers, body)?;
    let note = fields.text("note");
    let text = fields.text("blocked_until");
    let (mut until, mut length) = (Some("infinity".to_owned()), None);
    if let Some(text) = text.filter(|text| text != "infinity") {
        match chrono::DateTime::parse_from_rfc3339(&text) {
            Ok(time) => until = Some(time.to_rfc3339()),
            Err(_) => match duration::parse(&text) {
                Ok(found) => (until, length) = (None, Some(interval(found))),
                Err(_) => fields
                    .fault("blocked_until", "is neither a time nor a length; write 2027-01-15T08:00:00Z or 10 min"),
            },
        }
    }
    fields.done()?;
    db::block(&request, &origin, until.as_deref(), length.as_deref(), note.as_deref()).await?;
    let target = there(db::one(&request, &origin).await?)?;
    request.commit().await?;
    Ok(answer(&target, &HeaderMap::new()))
}

/// Unblocks a target and closes its breaker.
#[utoipa::path(post, path = "/v1/targets/{origin}/unblock", tag = "targets", params(("origin" = String, Path)),
    responses((status = 200, body = shape::Target), (status = "default", body = shape::Problem)))]
pub async fn unblock(State(api): State<Arc<Api>>, asker: Asker, Path(name): Path<String>) -> Answer {
    asker.may("admin")?;
    let request = api.begin(&asker).await?;
    let known = there(db::one(&request, &origin(&name)?).await?)?;
    db::block(&request, &origin(&name)?, Some("-infinity"), None, None).await?;
    let target = db::one(&request, &origin(&name)?).await?.unwrap_or(known);
    request.commit().await?;
    Ok(answer(&target, &HeaderMap::new()))
}
