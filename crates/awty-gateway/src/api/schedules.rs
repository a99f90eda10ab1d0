//! `/v1/schedules`.

use super::Api;
use super::auth::Asker;
use super::list::{Listed, asked, id_of};
use super::problem::Problem;
use super::rules::{Answer, Body, Change, Write, change, object, read, there, write};
use super::show;
use crate::db::schedules as db;
use crate::deliver::sign;
use crate::uri::signing_key;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// `POST`
pub async fn create(State(api): State<Arc<Api>>, asker: Asker, headers: HeaderMap, body: Body) -> Answer {
    write(&api, &asker, &headers, object(&headers, body)?, None, Write::Create).await
}

/// `PUT ?uri=`
pub async fn put(State(api): State<Arc<Api>>, asker: Asker, headers: HeaderMap, query: Listed, body: Body) -> Answer {
    let uri =
        asked(query)?.uri.ok_or_else(|| Problem::new("malformed-uri", "Say which: /v1/schedules?uri=<encoded>"))?;
    write(&api, &asker, &headers, object(&headers, body)?, Some(uri), Write::Put).await
}

/// `PUT /{id}`
pub async fn replace(
    State(api): State<Arc<Api>>,
    asker: Asker,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let row = there(read(&api, &asker, &id).await?)?;
    let uri = row.fields.get("uri").and_then(Value::as_str).map(str::to_owned);
    write(&api, &asker, &headers, object(&headers, body)?, uri, Write::Replace).await
}

/// `GET /{id}`
pub async fn show(State(api): State<Arc<Api>>, asker: Asker, headers: HeaderMap, Path(id): Path<String>) -> Answer {
    Ok(show::answer(&there(read(&api, &asker, &id).await?)?, StatusCode::OK, &headers))
}

/// `DELETE ?uri=`
pub async fn delete_by_uri(State(api): State<Arc<Api>>, asker: Asker, headers: HeaderMap, query: Listed) -> Answer {
    let uri =
        asked(query)?.uri.ok_or_else(|| Problem::new("malformed-uri", "Say which: /v1/schedules?uri=<encoded>"))?;
    let id = id_of(&api, &asker, &uri).await?;
    delete(State(api), asker, headers, Path(id)).await
}

/// `DELETE /{id}`
pub async fn delete(State(api): State<Arc<Api>>, asker: Asker, headers: HeaderMap, Path(id): Path<String>) -> Answer {
    change(&api, &asker, &headers, &id, Change::End).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /{id}/run`
pub async fn run(State(api): State<Arc<Api>>, asker: Asker, headers: HeaderMap, Path(id): Path<String>) -> Answer {
    let row = change(&api, &asker, &headers, &id, Change::Run).await?;
    Ok(show::answer(&there(row)?, StatusCode::ACCEPTED, &headers))
}

/// `POST /{id}/pause`
pub async fn pause(
    State(api): State<Arc<Api>>,
    asker: Asker,
    headers: HeaderMap,
    Path(id): Path<String>,
    body: Body,
) -> Answer {
    let empty = body.as_ref().is_ok_and(Bytes::is_empty);
    let fields = if empty { Map::new() } else { object(&headers, body)? };
    let note = fields.get("note").and_then(Value::as_str).map(str::to_owned);
    let row = change(&api, &asker, &headers, &id, Change::Pause(note)).await?;
    Ok(show::answer(&there(row)?, StatusCode::OK, &HeaderMap::new()))
}

/// `POST /{id}/resume`
pub async fn resume(State(api): State<Arc<Api>>, asker: Asker, headers: HeaderMap, Path(id): Path<String>) -> Answer {
    let row = change(&api, &asker, &headers, &id, Change::Resume).await?;
    Ok(show::answer(&there(row)?, StatusCode::OK, &HeaderMap::new()))
}

/// `GET /{id}/attempts`: also of what was deleted.
pub async fn attempts(State(api): State<Arc<Api>>, asker: Asker, Path(id): Path<String>) -> Answer {
    let request = api.db.begin(asker.role()).await?;
    let known = db::one(&request, &id).await?.is_some();
    let items = db::attempts(&request, &id, 50).await?;
    request.commit().await?;
    if !known {
        there(None)?;
    }
    Ok(Json(json!({"items": items})).into_response())
}

/// `GET /{id}/secret`
pub async fn secret(State(api): State<Arc<Api>>, asker: Asker, Path(id): Path<String>) -> Answer {
    asker.may("write")?;
    let request = api.db.begin(asker.role()).await?;
    let (row, job) = (db::one(&request, &id).await?, db::job(&request, &id).await?);
    request.commit().await?;
    there(row)?;
    let key = signing_key(&api.master_key, &job.unwrap_or_default(), &id);
    Ok(Json(json!({"secret": sign::secret(&key)})).into_response())
}
