//! What all ways to read and write a schedule have in common.

use super::Api;
use super::auth::Asker;
use super::input::{Periods, Refusal, wanted};
use super::problem::{Fault, Problem};
use super::show;
use crate::db::Request;
use crate::db::changes::{self, Wanted};
use crate::db::schedules::{self as db, Row};
use crate::duration::Length;
use crate::uri::Endpoint;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde_json::{Map, Value};

/// What a request comes to.
pub(super) type Answer = Result<Response, Problem>;

fn fault(reason: String) -> [Fault; 1] {
    [Fault { pointer: "/uri".into(), reason }]
}

/// One spelling of a URI.
pub(super) fn spelled_only(text: &str) -> Result<Endpoint, Problem> {
    Endpoint::parse(text).map_err(|why| Problem::fields("malformed-uri", &fault(why)))
}

/// One spelling of a URI, whose literal address may be called.
pub(super) fn spelled(api: &Api, text: &str) -> Result<Endpoint, Problem> {
    let endpoint = spelled_only(text)?;
    let address = match endpoint.url().host() {
        Some(url::Host::Ipv4(address)) => Some(address.into()),
        Some(url::Host::Ipv6(address)) => Some(address.into()),
        _ => None,
    };
    // A name is judged when it is called: a dead resolver refuses nobody.
    if let (Some(address), Some(port)) = (address, endpoint.url().port_or_known_default()) {
        let judged = api.guard.get().judge(&endpoint.entity_name(), address, port);
        judged.map_err(|refusal| Problem::fields("address-not-allowed", &fault(refusal.to_string())))?;
    }
    Ok(endpoint)
}

/// The row of an id: 404 if it never was, 410 if it was deleted.
pub(super) fn there(row: Option<Row>) -> Result<Row, Problem> {
    match row {
        Some(row) if row.deleted => {
            let uri = row.fields.get("uri").and_then(Value::as_str).unwrap_or_default();
            Err(Problem::new("deleted", "The schedule was deleted.").with("history", history(uri)))
        }
        Some(row) => Ok(row),
        None => Err(Problem::new("not-found", "There is no such schedule, or it is not this role's to see.")),
    }
}

/// Where the history of a URI is.
pub(super) fn history(uri: &str) -> String {
    let uri: String = url::form_urlencoded::byte_serialize(uri.as_bytes()).collect();
    format!("/v1/history?uri={uri}")
}

/// The refusal of what belongs to another job.
pub(super) fn not_own() -> Problem {
    Problem::new("not-permitted", "The schedule belongs to a job whose schedules this role may not change.")
}

fn changed() -> Problem {
    Problem::new("precondition-failed", "It has changed since.")
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

/// A schedule that nobody else changes until the request is over, and whether this role may change it.
async fn judged(request: &Request, id: &str) -> Result<(Option<Row>, bool), Problem> {
    let mine = changes::lock(request, id).await?;
    let row = db::one(request, id).await?;
    if mine || row.as_ref().is_none_or(|row| row.deleted) {
        return Ok((row, mine));
    }
    // It may have come since.
    let mine = changes::lock(request, id).await?;
    Ok((db::one(request, id).await?, mine))
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
    let request = api.begin(asker).await?;
    let slot = db::slot(&request).await?;
    let periods = Periods {
        min: api.terms.min_period.unwrap_or(Length::millis(slot)),
        max: api.terms.max_period,
        is_slot: api.terms.min_period.is_none(),
    };
    let wanted: Wanted = wanted(fields, uri, periods).map_err(|refusal| match refusal {
        Refusal::Fields(faults) => Problem::fields("invalid-field", &faults),
        Refusal::Uri(fault) => Problem::fields("malformed-uri", &[fault]),
        Refusal::Period(fault) => Problem::fields("period-out-of-range", &[fault]),
    })?;
    spelled(api, &wanted.uri)?;
    let create_only = how == Write::Create || headers.get(header::IF_NONE_MATCH).is_some_and(|value| value == "*");
    let id = db::id_of(&request, &wanted.uri).await?;
    let (before, mine) = judged(&request, &id).await?;
    let before = before.filter(|row| !row.deleted);
    let there_already = || match how {
        Write::Create => Problem::new("uri-already-scheduled", "The URI is scheduled already.")
            .with("existing", format!("/v1/schedules/{id}")),
        _ => Problem::new("precondition-failed", "It is there already."),
    };
    match &before {
        Some(_) if create_only => return Err(there_already()),
        Some(_) if !mine => return Err(not_own()),
        None if how == Write::Replace => return Err(changed()),
        row if !show::matches(headers, row.as_ref()) => return Err(changed()),
        _ => {}
    }
    let made = changes::schedule(&request, &wanted, !create_only).await;
    made.map_err(|trouble| if trouble.is("42710") { there_already() } else { trouble.into() })?;
    let row = there(db::one(&request, &id).await?)?;
    if create_only && !row.new {
        return Err(there_already()); // another request was faster
    }
    request.commit().await?;
    let status = if row.new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(show::answer(&row, status, &HeaderMap::new()))
}

/// One schedule, in a transaction of its own.
pub(super) async fn read(api: &Api, asker: &Asker, id: &str) -> Result<Option<Row>, Problem> {
    let request = api.begin(asker).await?;
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
    let request = api.begin(asker).await?;
    let (row, mine) = judged(&request, id).await?;
    let row = there(row)?;
    if !mine || matches!(change, Change::End) && !row.own {
        return Err(not_own());
    }
    if !show::matches(headers, Some(&row)) {
        return Err(changed());
    }
    match change {
        Change::End => changes::unschedule(&request, id).await?,
        Change::Run => {
            runs(&request).await?;
            match row.fields.get("state").and_then(Value::as_str) {
                Some("paused" | "held") => return Err(still()),
                Some("ended") => return Err(Problem::new("precondition-failed", "It has ended; PUT it again.")),
                _ => changes::run(&request, id).await?,
            }
        }
        Change::Pause(note) => changes::pause(&request, id, note.as_deref()).await?,
        Change::Resume => changes::resume(&request, id).await?,
    }
    let row = db::one(&request, id).await?;
    request.commit().await?;
    Ok(row)
}

/// What stands still cannot be called.
pub(super) fn still() -> Problem {
    Problem::new("precondition-failed", "It stands still; resume it first.")
}

/// Refuses to promise a call now while the whole database is held.
pub(super) async fn runs(request: &Request) -> Result<(), Problem> {
    if changes::held(request).await? {
        return Err(Problem::new("held-until-adopted", "The database is held; in it: SELECT awty.adopt();"));
    }
    Ok(())
}
