//! `/v1/schedules`.

use super::Api;
use super::auth::Asker;
use super::input::{Periods, Refusal, wanted};
use super::problem::{Fault, Problem};
use super::show;
use crate::db::schedules::{self as db, Filter, Row, Wanted};
use crate::deliver::sign;
use crate::duration::Length;
use crate::uri::{Endpoint, signing_key};
use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

type Answer = Result<Response, Problem>;
type Body = Result<Bytes, BytesRejection>;

/// What a list is asked for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    uri: Option<String>,
    state: Option<String>,
    origin: Option<String>,
    label: Option<String>,
    q: Option<String>,
    failing: Option<bool>,
    limit: Option<i64>,
    after: Option<String>,
}

type Listed = Result<Query<Asked>, axum::extract::rejection::QueryRejection>;

fn asked(query: Listed) -> Result<Asked, Problem> {
    query.map(|Query(asked)| asked).map_err(|error| Problem::new("invalid-field", error.body_text()))
}

/// The JSON object of a body.
pub(super) fn object(headers: &HeaderMap, body: Body) -> Result<Map<String, Value>, Problem> {
    let body = body.map_err(|_| Problem::new("too-large", "A body has at most 512 KiB."))?;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("application/json");
    if !kind.trim_start().to_ascii_lowercase().starts_with("application/json") {
        return Err(Problem::new("unsupported-media-type", "Send the body as application/json."));
    }
    match serde_json::from_slice(&body) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Problem::new("malformed-json", "The body is no JSON object.")),
        Err(error) => Err(Problem::new("malformed-json", error.to_string())),
    }
}

/// One spelling of a URI, whose literal address may be called.
pub(super) fn spelled(api: &Api, text: &str) -> Result<Endpoint, Problem> {
    let fault = |reason| [Fault { pointer: "/uri".into(), reason }];
    let endpoint = Endpoint::parse(text).map_err(|why| Problem::fields("malformed-uri", &fault(why)))?;
    let address = match endpoint.url().host() {
        Some(url::Host::Ipv4(address)) => Some(address.into()),
        Some(url::Host::Ipv6(address)) => Some(address.into()),
        _ => None,
    };
    // A name is judged when it is called: a dead resolver refuses nobody.
    if let (Some(address), Some(port)) = (address, endpoint.url().port_or_known_default()) {
        let judged = api.guard.judge(&endpoint.entity_name(), address, port);
        judged.map_err(|refusal| Problem::fields("address-not-allowed", &fault(refusal.to_string())))?;
    }
    Ok(endpoint)
}

/// The row of an id: 404 if it never was, 410 if it was deleted.
pub(super) fn there(row: Option<Row>) -> Result<Row, Problem> {
    match row {
        Some(row) if row.deleted => {
            let attempts = format!("/v1/schedules/{}/attempts", row.id);
            Err(Problem::new("deleted", "The schedule was deleted.").with("history", attempts))
        }
        Some(row) => Ok(row),
        None => Err(Problem::new("not-found", "There is no such schedule, or it is not this role's to see.")),
    }
}

/// Which conditions a write has.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Write {
    /// There must be none.
    Create,
    /// Whether there is one or not.
    Put,
    /// There must be one.
    Replace,
}

/// Makes or replaces a schedule.
pub(super) async fn write(
    api: &Api,
    asker: &Asker,
    headers: &HeaderMap,
    fields: Map<String, Value>,
    uri: Option<String>,
    how: Write,
) -> Answer {
    asker.may("write")?;
    let request = api.db.begin(asker.role()).await?;
    let slot = db::slot(&request).await?;
    let periods = Periods { min: api.min_period.unwrap_or(Length::millis(slot)), max: api.max_period };
    let wanted: Wanted = wanted(fields, uri, periods).map_err(|refusal| match refusal {
        Refusal::Fields(faults) => Problem::fields("invalid-field", &faults),
        Refusal::Uri(fault) => Problem::fields("malformed-uri", &[fault]),
        Refusal::Period(fault) => Problem::fields("period-out-of-range", &[fault]),
    })?;
    spelled(api, &wanted.uri)?;
    let create_only = how == Write::Create || headers.get(header::IF_NONE_MATCH).is_some_and(|value| value == "*");
    let id = db::id_of(&request, &wanted.uri).await?;
    let before = db::one(&request, &id).await?.filter(|row| !row.deleted);
    if before.is_some() && how == Write::Create {
        let problem = Problem::new("uri-already-scheduled", "The URI is scheduled already.");
        return Err(problem.with("existing", format!("/v1/schedules/{id}")));
    }
    if before.is_some() && create_only {
        return Err(Problem::new("precondition-failed", "It is there already."));
    }
    if !show::matches(headers, before.as_ref()) {
        return Err(Problem::new("precondition-failed", "It has changed since."));
    }
    db::schedule(&request, &wanted).await?;
    let row = there(db::one(&request, &id).await?)?;
    request.commit().await?;
    let status = if before.is_some() { StatusCode::OK } else { StatusCode::CREATED };
    Ok(show::answer(&row, status, &HeaderMap::new()))
}

/// `GET`
pub async fn list(State(api): State<Arc<Api>>, asker: Asker, headers: HeaderMap, query: Listed) -> Answer {
    let asked = asked(query)?;
    if let Some(uri) = &asked.uri {
        let id = id_of(&api, &asker, uri).await?;
        return show(State(api), asker, headers, Path(id)).await;
    }
    let limit = asked.limit.unwrap_or(50);
    if !(1..=500).contains(&limit) {
        return Err(Problem::new("invalid-field", "limit lies between 1 and 500"));
    }
    let after = asked
        .after
        .as_deref()
        .map(|cursor| URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|id| String::from_utf8(id).ok()));
    let Some(after) = after.unwrap_or(Some(String::new())) else {
        return Err(Problem::new("invalid-field", "after is the cursor of a page before; leave it out to begin"));
    };
    let Asked { state, origin, label, q, failing, .. } = asked;
    let filter = Filter { state, origin, label, q, failing };
    let request = api.db.begin(asker.role()).await?;
    let mut rows = db::list(&request, &after, &filter, limit + 1).await?;
    request.commit().await?;
    let more = i64::try_from(rows.len()).unwrap_or(i64::MAX) > limit;
    rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let items: Vec<Value> = rows.iter().map(show::fields).collect();
    let mut response = Json(json!({"items": items})).into_response();
    if let Some(last) = rows.last().filter(|_| more) {
        let cursor = URL_SAFE_NO_PAD.encode(&last.id);
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        let texts = [("state", &filter.state), ("origin", &filter.origin), ("label", &filter.label), ("q", &filter.q)];
        for (name, text) in texts {
            query.extend_pairs(text.iter().map(|text| (name, text)));
        }
        query.extend_pairs(filter.failing.iter().map(|failing| ("failing", failing.to_string())));
        let query = query.append_pair("limit", &limit.to_string()).append_pair("after", &cursor).finish();
        if let Ok(link) = HeaderValue::from_str(&format!("</v1/schedules?{query}>; rel=\"next\"")) {
            response.headers_mut().insert(header::LINK, link);
        }
    }
    Ok(response)
}

async fn id_of(api: &Api, asker: &Asker, uri: &str) -> Result<String, Problem> {
    let endpoint = Endpoint::parse(uri)
        .map_err(|reason| Problem::fields("malformed-uri", &[Fault { pointer: "/uri".into(), reason }]))?;
    let request = api.db.begin(asker.role()).await?;
    let id = db::id_of(&request, endpoint.as_str()).await?;
    request.commit().await?;
    Ok(id)
}

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

/// One schedule, in a transaction of its own.
async fn read(api: &Api, asker: &Asker, id: &str) -> Result<Option<Row>, Problem> {
    let request = api.db.begin(asker.role()).await?;
    let row = db::one(&request, id).await?;
    request.commit().await?;
    Ok(row)
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

/// What is done to a schedule that is there.
pub(super) enum Change {
    /// It ends.
    End,
    /// It is called now.
    Run,
    /// It stands still, with a note.
    Pause(Option<String>),
    /// It goes on.
    Resume,
}

/// Changes a schedule that is there, and reads it again.
pub(super) async fn change(
    api: &Api,
    asker: &Asker,
    headers: &HeaderMap,
    id: &str,
    change: Change,
) -> Result<Option<Row>, Problem> {
    asker.may("write")?;
    let request = api.db.begin(asker.role()).await?;
    let row = there(db::one(&request, id).await?)?;
    if !show::matches(headers, Some(&row)) {
        return Err(Problem::new("precondition-failed", "It has changed since."));
    }
    match change {
        Change::End => db::unschedule(&request, id).await?,
        Change::Run => db::run(&request, id).await?,
        Change::Pause(note) => db::pause(&request, id, note.as_deref()).await?,
        Change::Resume => db::resume(&request, id).await?,
    }
    let row = db::one(&request, id).await?;
    request.commit().await?;
    Ok(row)
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
