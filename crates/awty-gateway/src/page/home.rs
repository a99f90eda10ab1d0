//! `/`: are we there yet? What is late comes first, then what fails, then what comes.

use super::fail::View;
use super::parts::{Mark, empty, entity, job, mark, none, number, reason, select, string, table, text, time, whole};
use super::visit::Visit;
use super::words::{count, millis};
use super::{alerts, frame, slots};
use crate::db::{status, views};
use maud::{Markup, html};
use serde_json::Value;

const ROWS: i64 = 10;

pub async fn show(visit: Visit) -> View {
    let reading = visit.read().await?;
    let (database, gateways) = status::standing(&reading).await?;
    let late = views::open_alerts(&reading, 1, ROWS).await?;
    let soon = views::soon(&reading, ROWS).await?;
    let failing = views::failing(&reading, ROWS).await?;
    let endpoints = views::failing_endpoints(&reading, ROWS).await?;
    let behind = views::behind(&reading, ROWS).await?;
    let targets = views::closed_targets(&reading, ROWS).await?;
    let ahead = views::ahead(&reading, "1 hour", "5 minutes").await?;
    let has_rules = !late.is_empty() || !soon.is_empty() || !views::rules(&reading, 1).await?.is_empty();
    visit.end(reading).await?;
    let why = database["why"].as_str();
    let fails = failing.len() + endpoints.len() + behind.len();
    let body = html! {
        (answer(visit.late(), fails, why.is_some()))
        @if let Some(why) = why { (reason(why, database["fix"].as_str())) }
        @if !late.is_empty() {
            (alerts::open("Late now", &late, &visit))
            @if visit.late() > ROWS { p.more { a href="/alerts" { "All " (count(visit.late(), "late row", "late rows")) } } }
        }
        (failures(&failing, &endpoints, &behind))
        @if !targets.is_empty() { (closed(&targets)) }
        (coming(&soon, has_rules))
        (slots::ahead("The next hour", &ahead, slots::HOUR))
        (workers(&gateways, &database))
    };
    Ok(frame::live(&visit, "", body))
}

fn answer(late: i64, fails: usize, stopped: bool) -> Markup {
    let fails = i64::try_from(fails).unwrap_or(i64::MAX);
    let mut parts = Vec::new();
    if late > 0 {
        parts.push(count(late, "row is late", "rows are late"));
    }
    if fails > 0 {
        parts.push(count(fails, "thing fails", "things fail"));
    }
    if stopped {
        parts.push("something is stopped".into());
    }
    html! {
        p.eyebrow { "Are we there yet?" }
        @if parts.is_empty() {
            h1 { "Yes. All is well." }
        } @else {
            h1 { "Not yet: " (parts.join(", ")) "." }
        }
    }
}

fn failures(failing: &[Value], endpoints: &[Value], behind: &[Value]) -> Markup {
    let mut rows = Vec::new();
    for row in failing {
        let of = row["max"].as_i64().filter(|max| *max > 0).map(|max| format!(" of {max}"));
        let detail =
            html! { "attempt " (row["attempt"]) (of.unwrap_or_default()) " failed: " (string(&row["message"])) };
        rows.push(vec![entity(row), job(string(&row["job"])), time(&row["at"]), detail]);
    }
    for row in endpoints {
        let place = format!("/schedules/{}", string(&row["id"]));
        let link = html! { a.entity href=(place) { b { (string(&row["uri"])) } } };
        rows.push(vec![link, html! { "endpoint" }, time(&row["since"]), html! { "no call has succeeded since then" }]);
    }
    for row in behind {
        let every = row["every"].as_i64().map(millis).unwrap_or_default();
        let detail = html! { "it repeats every " (every) ", and its last success is older" };
        rows.push(vec![job(string(&row["job"])), html! { "repetition" }, time(&row["last"]), detail]);
    }
    html! {
        @if !rows.is_empty() { (table("What fails", &[text("What"), text("Job"), text("Since"), text("Why")], rows)) }
    }
}

fn closed(targets: &[Value]) -> Markup {
    let row = |row: &Value| {
        let word = if row["state"] == "open" { "failing" } else { "blocked" };
        let name = row["target"].as_str().unwrap_or("all targets");
        vec![html! { (name) }, mark(Mark::Held, word), time(&row["until"]), html! { (string(&row["why"])) }]
    };
    table(
        "Targets that get no calls",
        &[text("Target"), text("State"), text("Until"), text("Why")],
        targets.iter().map(row).collect(),
    )
}

fn coming(soon: &[Value], has_rules: bool) -> Markup {
    let caption = "Late within the hour, unless something happens";
    if soon.is_empty() {
        let statement = (!has_rules).then(|| {
            select("awty.watch('orders', since => 'placed_at', until => $$status <> 'NEW'$$, within => '3 hours')")
        });
        let sentence = match has_rules {
            true => "No watched row becomes late within the hour.",
            false => "No table is watched yet. A rule says by when something must be true of each row:",
        };
        return empty(caption, sentence, statement.as_deref());
    }
    let row = |row: &Value| {
        let note = if row["reminds"] == true {
            html! { "reminder, or late" }
        } else {
            html! { "late" }
        };
        vec![entity(row), html! { a href="/rules" { (string(&row["rule"])) } }, time(&row["at"]), note]
    };
    table(caption, &[text("Row"), text("Rule"), text("At"), text("What comes")], soon.iter().map(row).collect())
}

fn workers(gateways: &[Value], database: &Value) -> Markup {
    let row =
        |row: &Value| vec![html! { (string(&row["name"])) }, whole(&row["in_flight"]), time(&row["last_claim_at"])];
    html! {
        @if !gateways.is_empty() {
            (table("Gateways at work", &[text("Gateway"), number("Calls in flight"), text("Last claim")], gateways.iter().map(row).collect()))
        }
        dl.facts {
            div { dt { "Database" } dd { (string(&database["name"])) } }
            div { dt { "Pending checks" } dd { (whole(&database["pending"])) } }
            div { dt { "Waiting longest" } dd { @if database["oldest_overdue"].is_null() { (none()) } @else { (time(&database["oldest_overdue"])) } } }
            div { dt { "Last run" } dd { (time(&database["last_slot_run"])) } }
            div { dt { "awty" } dd { (string(&database["version"])) } }
        }
    }
}
