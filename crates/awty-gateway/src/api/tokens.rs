//! Invariant: a role manages tokens only of roles that it is a member of.

use super::auth::Asker;
use super::body::{Body, object};
use super::fields::{Fields, interval};
use super::operate::PageQuery;
use super::pagination;
use super::problem::Problem;
use super::rules::Answer;
use super::shape;
use super::show;
use super::state::Api;
use crate::db::tokens as db;
use crate::duration::Length;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use std::sync::Arc;

const GOOD: Length = Length::seconds(90 * 86_400);

/// Tokens without their secret texts; requires scope admin.
#[utoipa::path(get, path = "/v1/tokens", tag = "tokens", params(PageQuery),
    responses((status = 200, body = shape::Tokens), (status = "default", body = shape::Problem)))]
pub async fn list(
    State(api): State<Arc<Api>>,
    asker: Asker,
    headers: HeaderMap,
    query: pagination::QueryResult<PageQuery>,
) -> Answer {
    asker.may("admin")?;
    let page = pagination::read(query)?.page(1)?;
    let request = api.begin(&asker).await?;
    let rows = db::list(&request, page.number_after(0)?, page.rows()).await?;
    request.commit().await?;
    Ok(page.answer("/v1/tokens", &[], rows, &headers))
}

/// Creates a token, which is shown only this once (scope admin).
#[utoipa::path(post, path = "/v1/tokens", tag = "tokens", request_body = shape::TokenWanted,
    responses((status = 201, body = shape::NewToken), (status = "default", body = shape::Problem)))]
pub async fn create(State(api): State<Arc<Api>>, asker: Asker, headers: HeaderMap, body: Body) -> Answer {
    asker.may("admin")?;
    let request = api.begin(&asker).await?;
    let mut fields = Fields::of(object(&headers, body)?);
    let (role, scope) = (fields.text("role"), fields.text("scope").unwrap_or_default());
    if !["read", "write", "admin"].contains(&scope.as_str()) {
        fields.fault("scope", "is not known; write read, write or admin");
    }
    let expires = fields.length("expires").unwrap_or(GOOD);
    fields.done()?;
    let (token, mut kept) = db::create(&request, role.as_deref(), &scope, &interval(expires)).await?;
    request.commit().await?;
    let place = format!("/v1/tokens/{}", kept["id"]);
    if let Some(kept) = kept.as_object_mut() {
        kept.insert("token".into(), token.into());
    }
    let mut response = show::at(show::tagged("0", &kept, StatusCode::CREATED, &HeaderMap::new()), &place);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

fn missing() -> Problem {
    Problem::new("not-found", "There is no such token, or this role may not see it.")
}

fn number(id: &str) -> Result<i64, Problem> {
    id.parse().map_err(|_| missing())
}

/// Returns a token without its secret (scope admin).
#[utoipa::path(get, path = "/v1/tokens/{id}", tag = "tokens", params(("id" = i64, Path)),
    responses((status = 200, body = shape::Token), (status = 304), (status = "default", body = shape::Problem)))]
pub async fn show(State(api): State<Arc<Api>>, asker: Asker, headers: HeaderMap, Path(id): Path<String>) -> Answer {
    asker.may("admin")?;
    let request = api.begin(&asker).await?;
    let token = db::one(&request, number(&id)?).await?.ok_or_else(missing)?;
    request.commit().await?;
    Ok(show::tagged("0", &token, StatusCode::OK, &headers))
}

/// Deletes a token (scope admin).
#[utoipa::path(delete, path = "/v1/tokens/{id}", tag = "tokens", params(("id" = i64, Path)),
    responses((status = 204), (status = "default", body = shape::Problem)))]
pub async fn delete(State(api): State<Arc<Api>>, asker: Asker, Path(id): Path<String>) -> Answer {
    asker.may("admin")?;
    let request = api.begin(&asker).await?;
    db::delete(&request, number(&id)?).await?;
    request.commit().await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
