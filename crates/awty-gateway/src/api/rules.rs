//! What all ways to read and write a schedule have in common.

use super::Api;
use super::auth::Asker;
use super::input::{Periods, Refusal, wanted};
use super::problem::{Fault, Problem};
use super::show;
use crate::db::schedules::{self as db, Row, Wanted};
use crate::duration::Length;
use crate::uri::Endpoint;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde_json::{Map, Value};

/// What a request comes to.
pub(super) type Answer = Result<Response, Problem>;
/// A body, or why there is none.
pub(super) type Body = Result<Bytes, BytesRejection>;

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

/// One schedule, in a transaction of its own.
pub(super) async fn read(api: &Api, asker: &Asker, id: &str) -> Result<Option<Row>, Problem> {
    let request = api.db.begin(asker.role()).await?;
    let row = db::one(&request, id).await?;
    request.commit().await?;
    Ok(row)
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
    let still = ["paused", "held"].iter().any(|state| row.fields.get("state").is_some_and(|found| found == state));
    if still && matches!(change, Change::Run) {
        return Err(Problem::new("precondition-failed", "It stands still; resume it first."));
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
