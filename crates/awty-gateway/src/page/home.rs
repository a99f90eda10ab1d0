//! `/`: the start page. Late rows come first, then failures, then pending checks.

use super::fail::View;
use super::parts::{
    Mark, due, empty, entity, is_late, job, mark, none, number, select, string, table, text, time, whole,
};
use super::stop::Stop;
use super::visit::Visit;
use super::words::{absolute, count, grouped, millis, moment};
use super::{alerts, frame, slots};
use crate::db::{status, views};
use maud::{Markup, html};
use serde_json::Value;

const ROWS: usize = 10;
const MANY: usize = 100;

pub async fn show(visit: Visit) -> View {
    let reading = visit.read().await?;
    let (database, gateways) = status::standing(&reading).await?;
    let late = views::open_alerts(&reading, 1, ROWS as i64).await?;
    let soon = views::soon(&reading, ROWS as i64).await?;
    let failing = views::failing(&reading, MANY as i64).await?;
    let endpoints = views::failing_endpoints(&reading, MANY as i64).await?;
    let behind = views::behind(&reading, MANY as i64).await?;
    let targets = views::closed_targets(&reading, ROWS as i64).await?;
    let coming_hour = slots::read(&reading, &slots::HOUR).await?;
    let has_rules = !late.is_empty() || !soon.is_empty() || !views::rules(&reading, 1).await?.is_empty();
    let hour = views::last_hour(&reading).await?;
    let ended = views::ended_with_problems(&reading, MANY as i64).await?;
    let stop = Stop::of(&reading, database.clone()).await?;
    visit.end(reading).await?;
    let fails = failing.len() + endpoints.len() + behind.len();
    let body = html! {
        (answer(visit.late(), fails, ended as usize, stop.why().is_some()))
        p.soft { "Was an endpoint not called earlier? " a href="/why" { "Ask about a time" } "." }
        (stop.banner_of("the list of late rows"))
        @if !late.is_empty() {
            (alerts::open("Late now", &late, &visit))
            @if visit.late() > ROWS as i64 { p.more { a href="/alerts" { "All " (count(visit.late(), "late row", "late rows")) } } }
        }
        (failures(&failing, &endpoints, &behind))
        @if ended > 0 { p { a href="/history" { "What has ended with a problem" } } }
        @if !targets.is_empty() { (closed(&targets)) }
        (coming(&soon, has_rules))
        (coming_hour.draw(&slots::HOUR))
        (workers(&gateways, &database, &hour))
    };
    Ok(frame::live(&visit, "", body))
}

fn up_to_many(number: usize, one: &str, many: &str) -> String {
    match number {
        number if number >= MANY => format!("more than {} {many}", MANY - 1),
        number => count(number as i64, one, many),
    }
}

fn answer(late: i64, fails: usize, ended: usize, stopped: bool) -> Markup {
    let mut parts = Vec::new();
    if late > 0 {
        parts.push(count(late, "row is late", "rows are late"));
    }
    if fails > 0 {
        parts.push(up_to_many(fails, "thing fails", "things fail"));
    }
    if ended > 0 {
        let ended = up_to_many(ended, "check has ended with a problem", "checks have ended with a problem");
        parts.push(format!("{ended} in the last hour"));
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
    for row in failing.iter().take(ROWS) {
        let of = row["max"].as_i64().filter(|max| *max > 0).map(|max| format!(" of {max}"));
        let detail =
            html! { "attempt " (row["attempt"]) (of.unwrap_or_default()) " failed: " (string(&row["message"])) };
        rows.push(vec![entity(row), job(string(&row["job"])), time(&row["at"]), detail]);
    }
    for row in endpoints.iter().take(ROWS) {
        let place = format!("/schedules/{}", string(&row["id"]));
        let link = html! { a.entity href=(place) { b { (string(&row["uri"])) } } };
        let detail = match row["waits"] == true {
            true => "its call is late since then, for longer than its own period",
            false => "no call has succeeded since then",
        };
        rows.push(vec![link, html! { span.kind { "endpoint" } }, time(&row["since"]), html! { (detail) }]);
    }
    for row in behind.iter().take(ROWS) {
        let detail = match (row["every"].as_i64(), row["last"].is_null()) {
            (_, true) => "it repeats, and has not succeeded yet".into(),
            (Some(every), _) => {
                format!("it repeats every {}, and its last success is older, or its last run failed", millis(every))
            }
            (None, _) => format!(
                "it repeats at {}, and it has not succeeded since its last planned time, or its last run failed",
                string(&row["cron"])
            ),
        };
        rows.push(vec![
            job(string(&row["job"])),
            html! { span.kind { "repetition" } },
            time(&row["last"]),
            html! { (detail) },
        ]);
    }
    html! {
        @if !rows.is_empty() { (table("What fails", &[text("What"), text("Job"), text("Since"), text("Why")], rows)) }
        @if endpoints.len() > ROWS { p.more { a href="/schedules?failing=true" { "All endpoints that fail" } } }
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
        vec![
            entity(row),
            html! { a href="/rules" { (string(&row["rule"])) } },
            due(&row["at"], is_late(&row["at"])),
            note,
        ]
    };
    table(caption, &[text("Row"), text("Rule"), text("When"), text("What comes")], soon.iter().map(row).collect())
}

fn workers(gateways: &[Value], database: &Value, hour: &Value) -> Markup {
    let row =
        |row: &Value| vec![html! { (string(&row["name"])) }, whole(&row["in_flight"]), time(&row["last_claim_at"])];
    html! {
        @if !gateways.is_empty() {
            (table("Gateways at work", &[text("Gateway"), number("Calls in flight"), text("Last claim")], gateways.iter().map(row).collect()))
        }
        dl.facts {
            @if !hour.is_null() {
                div { dt { "Calls in the hour from " (clock(&hour["from"])) } dd { (calls(hour)) } }
                div { dt { "Started late by" } dd { (lateness(hour)) (caught_up(hour)) } }
            }
            div { dt { "Database" } dd { (string(&database["name"])) } }
            div { dt { "Pending checks" } dd { (whole(&database["pending"])) } }
            @let oldest = &database["oldest_overdue"];
            div { dt { "Check that waits longest" } dd { @if oldest.is_null() { (none()) } @else { (due(oldest, is_late(oldest))) } } }
            div { dt { "Last run in the database" } dd { (time(&database["last_slot_run"])) } }
            div { dt { "awty" } dd { (string(&database["version"])) } }
        }
    }
}

fn clock(at: &Value) -> String {
    moment(at).map(|at| absolute(at, crate::clock::now())).unwrap_or_default()
}

fn calls(hour: &Value) -> String {
    let number = |name: &str| hour[name].as_i64().unwrap_or(0);
    let (ok, dropped) = (number("ok"), number("dropped"));
    let failed = number("count") - ok - dropped;
    format!("{} succeeded, {} failed, {} dropped", grouped(ok), grouped(failed), grouped(dropped))
}

fn caught_up(hour: &Value) -> String {
    let calls = hour["caught_up"].as_i64().filter(|calls| *calls > 0);
    let late = hour["caught_up_max"].as_i64().map(|late| format!(", up to {} late", millis(late))).unwrap_or_default();
    calls
        .map(|calls| format!("; {} after a stop{late}", count(calls, "call was caught up", "calls were caught up")))
        .unwrap_or_default()
}

fn lateness(hour: &Value) -> String {
    match ["half", "most", "longest"].map(|name| hour[name].as_i64()) {
        [Some(half), Some(most), Some(longest)] => {
            format!("half up to {}, 95 % up to {}, all up to {}", millis(half), millis(most), millis(longest))
        }
        _ => "no call was made in time".into(),
    }
}
