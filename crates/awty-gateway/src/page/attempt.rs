//! `/attempts/{lease}`: a call's address, phases and answer.

use super::fail::{Fail, View};
use super::parts::{Mark, mark, none, string, table, text, time};
use super::visit::Visit;
use super::words::{encoded, millis, seconds};
use super::{frame, schedule_form};
use crate::db::views;
use axum::extract::Path;
use maud::{Markup, html};
use serde_json::Value;
use url::Url;

/// Name and label of each phase. A phase begins when the previous phase ends.
const PHASES: [(&str, &str); 4] = [
    ("name", "looking up the name"),
    ("connect", "connecting"),
    ("tls", "TLS"),
    ("first_byte", "waiting for the answer"),
];

/// The path's query string has the schedule and the time, so that the database finds the call quickly.
pub fn place(lease: &str, schedule: &str, at: &str) -> String {
    format!("/attempts/{lease}?schedule={}&at={}", encoded(schedule), encoded(at))
}

pub fn said(call: &Value) -> Markup {
    let result = &call["result"];
    html! {
        @match (result["status"].as_i64(), result["fault"].as_str()) {
            (Some(status), _) => { (status) }
            (None, Some(fault)) => { (fault) }
            (None, None) => { (string(&call["message"])) }
        }
        @if let Some(took) = seconds(&result["duration"]) { " in " (took) }
    }
}

pub async fn show(visit: Visit, Path(lease): Path<i64>) -> View {
    let (schedule, at) = (visit.query.need("schedule")?, visit.query.need("at")?);
    super::words::moment(&Value::from(at)).ok_or_else(Fail::not_found)?;
    let reading = visit.read().await?;
    let call = views::one_attempt(&reading, schedule, at, lease).await?.ok_or_else(Fail::not_found)?;
    visit.end(reading).await?;
    let place = format!("/schedules/{}", encoded(schedule));
    let request = visit.get(&format!("/v1{place}")).await.map(|found| found.json).unwrap_or_default();
    let result = &call["result"];
    let body = html! {
        h1 { @if call["ok"] == true { "This call succeeded." } @else { "This call failed." } }
        p.lead { (verdict(&call)) }
        p { a href=(place) { (request["uri"].as_str().unwrap_or("Its schedule")) } }
        dl.facts {
            div { dt { "Slot" } dd { (time(&call["slot"])) } }
            div { dt { "Called" } dd { (time(&call["at"])) } }
            div { dt { "Late by" } dd { @if let Some(late) = seconds(&result["lateness"]) { (late) } @else { (none()) } } }
            div { dt { "Attempt" } dd { (call["attempt"]) } }
            div { dt { "Answer" } dd { (said(&call)) } }
            div { dt { "Address" } dd { (result["address"].as_str().unwrap_or("–")) } }
            div { dt { "Gateway" } dd { (string(&call["worker"])) } }
            div { dt { "Key" } dd { code { (string(&call["key"])) } } }
        }
        (phases(&result["phases"]))
        (headers(&request))
        @if let Some(location) = result["location"].as_str() { (redirect(&request, location, visit.writes())) }
        @if let Some(answer) = result["body"].as_str() { h2 { "Answer" } pre { code { (answer) } } }
    };
    Ok(frame::live(&visit, "Call", body))
}

fn verdict(call: &Value) -> Markup {
    let result = &call["result"];
    html! {
        @if call["ok"] == true { (mark(Mark::Good, "done")) } @else { (mark(Mark::Bad, "failed")) }
        ": "
        @match (result["status"].as_i64(), result["fault"].as_str()) {
            (Some(status), None) => { "the endpoint answered " (status) }
            (Some(status), Some(fault)) => { "the endpoint answered " (status) ", which counts as " (fault) }
            (None, Some(fault)) => { "no answer came, because of " (fault) }
            (None, None) => { "the gateway has reported no details" }
        }
        @if let Some(message) = call["message"].as_str() { ". " (message) }
        @if result["sent"] == false { ". Nothing was sent." }
    }
}

/// Links to a form for a new schedule that calls the redirect's address directly. The form is filled with the plan of
/// the present schedule.
fn redirect(request: &Value, location: &str, writes: bool) -> Markup {
    let address = Url::parse(string(&request["uri"])).and_then(|uri| uri.join(location));
    html! {
        p { "It redirects to " code { (location) } ". A redirect is never followed." }
        @if let Some(address) = address.ok().filter(|address| writes && ["http", "https"].contains(&address.scheme())) {
            p {
                a.button href=(schedule_form::for_address(request, address.as_str())) { "Use this address" }
                " The form has the plan of this schedule, without its headers and body. Delete this schedule afterwards."
            }
        }
    }
}

/// Shows the schedule's current headers, because awty does not store the headers that a past call sent.
fn headers(request: &Value) -> Markup {
    let headers = request["headers"].as_object().into_iter().flatten();
    let rows: Vec<_> = headers.map(|(name, value)| vec![html! { (name) }, html! { (string(value)) }]).collect();
    html! {
        @if !rows.is_empty() { (table("Headers of the request, as the schedule has them now", &[text("Name"), text("Value")], rows)) }
    }
}

fn phases(phases: &Value) -> Markup {
    let mut rows = Vec::new();
    let total = phases["total"].as_f64().unwrap_or(0.0);
    let mut left = total;
    let mut add = |word: &str, length: f64| {
        let share = if total > 0.0 { (length / total * 1_000.0).clamp(0.0, 1_000.0) } else { 0.0 };
        #[allow(clippy::cast_possible_truncation)] // a cast of a float saturates
        let words = millis((length * 1_000.0).round() as i64);
        let bar = html! {
            svg.bar viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true" { rect width=(format!("{share:.0}")) height="10" {} }
        };
        rows.push(vec![html! { (word) }, html! { (words) }, bar]);
    };
    for (name, word) in PHASES {
        if let Some(length) = phases[name].as_f64() {
            add(word, length);
            left -= length;
        }
    }
    if left > 0.0 {
        add("reading the answer", left.max(0.0));
    }
    html! { @if total > 0.0 { (table("Phases", &[text("Phase"), text("Took"), text("Share")], rows)) } }
}
