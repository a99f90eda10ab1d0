//! `/schedules`: the list of schedules, its filters, and the buttons that change a schedule.

use super::fail::{Fail, View};
use super::form::{Form, see};
use super::frame;
use super::parts::{Mark, due, empty, is_late, mark, next_page, none, select, string, table, text, time};
use super::stop::Stop;
use super::visit::Visit;
use super::words::{encoded, millis};
use crate::duration::parse_or_zero;
use axum::extract::Path;
use axum::http::Method;
use maud::{Markup, html};
use serde_json::{Value, json};

const FILTERS: [&str; 4] = ["state", "text", "origin", "failing"];

pub async fn show(visit: Visit) -> View {
    let mut query = String::from("limit=50");
    for name in FILTERS.into_iter().chain(["after"]) {
        if let Some(value) = visit.query.get(name) {
            let name = if name == "text" { "q" } else { name };
            query.push_str(&format!("&{name}={}", encoded(value)));
        }
    }
    let reading = visit.read().await?;
    let stop = Stop::read(&reading).await?;
    visit.end(reading).await?;
    let found = visit.get(&format!("/v1/schedules?{query}")).await?;
    let is_filtered = FILTERS.iter().any(|name| visit.query.get(name).is_some());
    let next = found.next().map(|after| {
        let kept = FILTERS.iter().filter_map(|name| Some(format!("{name}={}&", encoded(visit.query.get(name)?))));
        format!("/schedules?{}after={}", kept.collect::<String>(), encoded(&after))
    });
    let body = html! {
        h1 { "Schedules of endpoints" }
        (stop.banner())
        (filters(&visit))
        @if found.items().is_empty() {
            @if next.is_some() {
                (empty("Schedules", "No schedule up to here fits these filters. The list goes on.", None))
            } @else if is_filtered {
                (empty("Schedules", "No schedule fits these filters.", None))
            } @else {
                (empty("Schedules", "No endpoint is scheduled yet. Create one here, or in the database:", Some(&select("awty_http.schedule('https://api.example.com/tick', every => '10 min')"))))
            }
        } @else {
            (table("Schedules", &[text("Endpoint"), text("State"), text("Plan"), text("Next call"), text("Last call")], found.items().iter().map(row).collect()))
        }
        (next_page(next))
    };
    Ok(frame::still(&visit, "Schedules", body))
}

fn filters(visit: &Visit) -> Markup {
    let get = |name: &str| visit.query.get(name).unwrap_or_default();
    html! {
        form.filters method="get" action="/schedules" {
            label { "Text " input name="text" type="search" value=(get("text")); }
            label { "State "
                select name="state" {
                    option value="" { "any" }
                    @for state in ["active", "paused", "held", "blocked", "ended"] {
                        option value=(state) selected[get("state") == state] { (state) }
                    }
                }
            }
            label { "Last call "
                select name="failing" {
                    option value="" { "any" }
                    option value="true" selected[get("failing") == "true"] { "failed" }
                    option value="false" selected[get("failing") == "false"] { "did not fail" }
                }
            }
            button { "Filter" }
            @if visit.writes() { a.button href="/schedules/new" { "New schedule" } }
        }
    }
}

pub fn state(row: &Value) -> Markup {
    let failing = !row["failing_since"].is_null();
    match string(&row["state"]) {
        "active" if failing => mark(Mark::Bad, "failing"),
        "active" => mark(Mark::Good, "active"),
        "ended" => mark(Mark::Wait, "ended"),
        other => mark(Mark::Held, other),
    }
}

pub fn plan(row: &Value) -> Markup {
    html! {
        @if let Some(every) = row["every"].as_str() { "every " (every) }
        @else if let Some(cron) = row["cron"].as_str() { code { (cron) } " " (row["zone"].as_str().unwrap_or("UTC")) }
        @else if !row["at"].is_null() { "once at " (time(&row["at"])) }
        @else { "once" }
    }
}

pub fn result(last: &Value) -> Markup {
    let fault = last["fault"].as_str();
    html! {
        @if last.is_null() { (none()) } @else {
            @match (last["status"].as_i64(), fault) {
                (Some(status), None) => { (mark(Mark::Good, &status.to_string())) }
                (Some(status), Some(fault)) if fault != "status" => { (mark(Mark::Bad, &format!("{status}, {fault}"))) }
                (Some(status), Some(_)) => { (mark(Mark::Bad, &status.to_string())) }
                (None, Some(fault)) => { (mark(Mark::Bad, fault)) }
                (None, None) => { "called" }
            }
            @if let Some(took) = last["duration"].as_str().and_then(|took| parse_or_zero(took).ok()) { " in " (millis(took.as_millis())) }
        }
    }
}

fn row(row: &Value) -> Vec<Markup> {
    let name = html! { a.entity href=(format!("/schedules/{}", string(&row["id"]))) { b { (string(&row["uri"])) } } @if let Some(about) = row["description"].as_str() { br; span.soft { (about) } } };
    let last = html! { (result(&row["last"])) @if !row["last"].is_null() { br; (time(&row["last"]["at"])) } };
    vec![name, state(row), plan(row), next_call(&row["next_slot"]), last]
}

pub fn next_call(slot: &Value) -> Markup {
    if is_late(slot) { due(slot, true) } else { time(slot) }
}

pub async fn act(visit: Visit, Path((id, action)): Path<(String, String)>, form: Form) -> View {
    let body = match action.as_str() {
        "run" | "resume" => None,
        "pause" => Some(json!({"note": form.get("note")})),
        _ => return Err(Fail::not_found()),
    };
    let place = format!("/schedules/{}", encoded(&id));
    visit.call(Method::POST, &format!("/v1{place}/{action}"), body).await?;
    Ok(see(&place))
}

pub async fn confirm(visit: Visit, Path(id): Path<String>) -> View {
    visit.count().await?;
    let place = format!("/schedules/{}", encoded(&id));
    let found = visit.get(&format!("/v1{place}")).await?.json;
    let body = html! {
        h1 { "Delete this schedule?" }
        p { (string(&found["uri"])) " is then called no more. Its history stays as long as its statistics." }
        form.inline method="post" action=(format!("{place}/delete")) { button.danger { "Delete" } }
        " " a href=(place) { "Keep it" }
    };
    Ok(frame::still(&visit, "Delete", body))
}

pub async fn delete(visit: Visit, Path(id): Path<String>) -> View {
    visit.call(Method::DELETE, &format!("/v1/schedules/{}", encoded(&id)), None).await?;
    Ok(see("/schedules"))
}
