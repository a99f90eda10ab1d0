use super::auth::Asker;
use super::fields::Object;
use super::input::{Periods, Refusal, schedule};
use super::problem::{Fault, Problem};
use super::shape;
use super::show;
use super::state::Api;
use super::unchanged::restore;
use crate::db::changes;
use crate::db::schedules::{self as db, Row};
use crate::db::{Argument, Arguments, Request};
use crate::deliver::request::{REFERENCE, user_headers};
use crate::duration::Length;
use crate::net::guard;
use awty_core::uri::Uri;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) type Answer = Result<Response, Problem>;

fn fault(reason: impl ToString) -> [Fault; 1] {
    [Fault { pointer: "/uri".into(), reason: reason.to_string() }]
}

pub(super) fn parse_uri(text: &str) -> Result<Uri, Problem> {
    Uri::parse(text).map_err(|why| Problem::fields("malformed-uri", &fault(why)))
}

pub(super) fn check_address(api: &Api, endpoint: &Uri) -> Result<(), Problem> {
    let refused = |refusal: guard::Refusal| {
        api.metrics.blocked();
        tracing::info!(target = endpoint.entity_name(), %refusal, "an address was refused to a request");
        Problem::fields("address-not-allowed", &fault(refusal))
    };
    let Some(port) = endpoint.url().port_or_known_default() else { return Ok(()) };
    guard::check_port(port).map_err(&refused)?;
    let address = match endpoint.url().host() {
        Some(url::Host::Ipv4(address)) => Some(address.into()),
        Some(url::Host::Ipv6(address)) => Some(address.into()),
        _ => None,
    };
    // Host names are not resolved here, because good requests would fail while a name server is broken.
    if let Some(address) = address {
        api.guard.get().judge(&endpoint.entity_name(), address, port).map_err(&refused)?;
    }
    Ok(())
}

pub(super) async fn check_secrets(
    api: &Api,
    request: &Request,
    endpoint: &Uri,
    arguments: &Arguments,
) -> Result<(), Problem> {
    let headers = arguments.iter().find_map(|(name, argument)| match argument {
        Argument::Json(headers) if *name == "headers" => BTreeMap::<String, String>::deserialize(headers).ok(),
        _ => None,
    });
    let Some(headers) = headers.filter(|headers| headers.values().any(|value| value.contains(REFERENCE))) else {
        return Ok(());
    };
    let role = db::tenant_role(request).await?.unwrap_or_default();
    let secret = |name: &str| api.config.secrets.of(&role, &endpoint.entity_name(), name);
    user_headers(&headers, &secret).map(drop).map_err(|unmade| {
        let reason = format!("cannot be sent: {}", unmade.why);
        Problem::fields("invalid-field", &[Fault { pointer: "/headers".into(), reason }])
    })
}

pub(super) fn there(row: Option<Row>) -> Result<Row, Problem> {
    match row {
        Some(row) if row.deleted => {
            let uri = row.fields.get("uri").and_then(Value::as_str).unwrap_or_default();
            Err(Problem::new("deleted", "The schedule was deleted.").with("history", history(uri)))
        }
        Some(row) => Ok(row),
        None => Err(Problem::new("not-found", "There is no such schedule, or this role may not see it.")),
    }
}

pub(super) fn history(uri: &str) -> String {
    let uri: String = url::form_urlencoded::byte_serialize(uri.as_bytes()).collect();
    format!("/v1/history?uri={uri}")
}

pub(super) fn not_own() -> Problem {
    Problem::new("not-permitted", "The schedule belongs to a job whose schedules this role may not change.")
}

pub(super) fn another_period() -> Problem {
    Problem::new("not-found", "The URI is scheduled with another period.")
}

pub(super) fn changed() -> Problem {
    Problem::new("precondition-failed", "It has changed since its ETag was read.")
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Write {
    Create,
    Put,
    Replace,
    Period(Length),
}

/// Returns whether `period` equals the schedule's period. If awty rounded up the period that the client asked for, the
/// client's period also counts as equal.
pub(super) fn has_period(row: &Row, period: Length) -> bool {
    let is_it = |name: &str| row.fields.get(name).and_then(Value::as_i64) == Some(period.as_millis());
    is_it("every") || is_it("rounded_from")
}

fn has_ended(row: &Row) -> bool {
    row.fields.get("state").and_then(Value::as_str) == Some("ended")
}

pub(super) async fn judged(request: &Request, id: &str) -> Result<(Option<Row>, bool), Problem> {
    let mine = changes::lock(request, id).await?;
    let row = db::one(request, id).await?;
    if mine || row.as_ref().is_none_or(|row| row.deleted) {
        return Ok((row, mine));
    }
    // A concurrent request may have created the schedule after the first call of `lock`.
    let mine = changes::lock(request, id).await?;
    Ok((db::one(request, id).await?, mine))
}

pub(super) async fn write(
    api: &Api,
    asker: &Asker,
    headers: &HeaderMap,
    fields: impl FnOnce() -> Result<Object, Problem>,
    uri: Option<String>,
    how: Write,
) -> Answer {
    asker.may("write")?;
    let request = api.begin(asker).await?;
    let mut fields = fields()?;
    if how != Write::Create {
        shape::only_answers::<shape::Schedule>().iter().for_each(|name| drop(fields.remove(name)));
    }
    let slot = db::slot(&request).await?;
    let periods = Periods {
        min: api.config.min_period.unwrap_or(Length::millis(slot)),
        max: api.config.max_period,
        is_slot: api.config.min_period.is_none(),
    };
    let (uri, mut arguments) = schedule(fields, uri, periods).map_err(|refusal| match refusal {
        Refusal::Fields(faults) => Problem::fields("invalid-field", &faults),
        Refusal::Uri(fault) => Problem::fields("malformed-uri", &[fault]),
        Refusal::Period(fault) => Problem::fields("period-out-of-range", &[fault]),
    })?;
    check_address(api, &uri)?;
    let unless_there = headers.get(header::IF_NONE_MATCH).is_some_and(|value| value == "*");
    let create_only = how == Write::Create || unless_there;
    let id = db::id_of(&request, uri.as_str()).await?;
    let (before, mine) = judged(&request, &id).await?;
    let before = before.filter(|row| !row.deleted);
    let there_already = || match how {
        Write::Create => Problem::new("uri-already-scheduled", "The URI is scheduled already.")
            .with("existing", format!("/v1/schedules/{id}")),
        Write::Period(_) if !unless_there => {
            Problem::new("uri-already-scheduled", "The URI is scheduled with another period.")
                .with("existing", format!("/v1/schedules/{id}"))
        }
        _ => Problem::new("precondition-failed", "It exists already."),
    };
    match &before {
        Some(_) if create_only => return Err(there_already()),
        Some(_) if !mine => return Err(not_own()),
        None if how == Write::Replace => return Err(changed()),
        row if !show::matches(headers, row.as_ref()) => return Err(changed()),
        _ => {}
    }
    restore(&mut arguments, before.as_ref()).map_err(|faults| Problem::fields("invalid-field", &faults))?;
    check_secrets(api, &request, &uri, &arguments).await?;
    let replace = !create_only && (before.is_some() || !matches!(how, Write::Period(_)));
    if let (Write::Period(period), Some(row)) = (how, before) {
        if !has_period(&row, period) {
            return Err(there_already());
        }
        if let Some(row) = kept(&request, row).await? {
            request.commit().await?;
            return Ok(show::answer(&row, StatusCode::OK, &HeaderMap::new()));
        }
    }
    arguments.push(("replace", Argument::Switch(replace)));
    let made = changes::schedule(&request, &arguments).await;
    made.map_err(|trouble| if trouble.is("42710") { there_already() } else { trouble.into() })?;
    let row = there(db::one(&request, &id).await?)?;
    if create_only && !row.new {
        return Err(there_already()); // a concurrent request has created the schedule
    }
    request.commit().await?;
    let status = if row.new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(show::answer(&row, status, &HeaderMap::new()))
}

async fn kept(request: &Request, row: Row) -> Result<Option<Row>, Problem> {
    if !has_ended(&row) {
        return Ok(Some(row));
    }
    changes::resume(request, &row.id).await?;
    Ok(db::one(request, &row.id).await?.filter(|row| !has_ended(row)))
}

pub(super) async fn read(api: &Api, asker: &Asker, id: &str) -> Result<Option<Row>, Problem> {
    let request = api.begin(asker).await?;
    let row = db::one(&request, id).await?;
    request.commit().await?;
    Ok(row)
}
