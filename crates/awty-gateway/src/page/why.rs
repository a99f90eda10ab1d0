//! `/why`: the first reason why nothing runs, with the command that solves it, and what else awty has found.

use super::fail::View;
use super::frame;
use super::parts::{Mark, command, mark, none, reason, string, table, text, time};
use super::visit::Visit;
use super::words::millis;
use crate::db::status;
use crate::health;
use maud::{Markup, html};
use serde_json::Value;

pub async fn show(visit: Visit) -> View {
    let reading = visit.read().await?;
    let (database, _) = status::standing(&reading).await?;
    let findings = status::findings(&reading).await?;
    visit.end(reading).await?;
    let gateway = health::reasons(&visit.page.worker);
    let why = database["why"].as_str();
    let is_well = why.is_none() && gateway.is_empty() && findings.is_empty();
    let body = html! {
        h1 { @if is_well { "Nothing is in the way." } @else { "This is in the way." } }
        @if let Some(why) = why { (reason(why, database["fix"].as_str())) }
        @for reason in &gateway { (of_gateway(&visit.page.name, reason)) }
        @for finding in &findings { (found(finding)) }
        (links(&database, &gateway))
        @if is_well {
            p { "If a check did not run, ask for its entity in the field above: " code { "orders 42" } " shows its past, its future, and why it does not run now." }
        }
    };
    Ok(frame::live(&visit, "Why", body))
}

/// A reason of the gateway has its commands after the first semicolon.
fn of_gateway(name: &str, reason: &str) -> Markup {
    let (why, fix) = reason.split_once("; ").map_or((reason, None), |(why, fix)| (why, Some(fix)));
    html! {
        section.notice {
            p { (mark(Mark::Bad, &format!("The gateway {name} is not ready:"))) " " (why) }
            @if let Some(fix) = fix { (command(fix)) }
        }
    }
}

fn found(finding: &Value) -> Markup {
    let kind = match string(&finding["level"]) {
        "error" => Mark::Bad,
        "warning" => Mark::Late,
        _ => Mark::Wait,
    };
    html! {
        section.notice {
            h2 { (mark(kind, &format!("{}:", string(&finding["level"])))) " " (string(&finding["finding"])) }
            p { (string(&finding["detail"])) }
            @if let Some(fix) = finding["fix"].as_str() { (command(fix)) }
        }
    }
}

/// The chain from the server to a run, in order.
fn links(database: &Value, gateway: &[String]) -> Markup {
    let link = |name: &str, good: bool, detail: Markup| {
        vec![html! { (name) }, if good { mark(Mark::Good, "yes") } else { mark(Mark::Bad, "no") }, detail]
    };
    let (version, library) = (string(&database["version"]), string(&database["library"]));
    let lag = database["lag"].as_i64().unwrap_or(0);
    let rows = vec![
        link("The database answers", true, html! { (string(&database["name"])) }),
        link("The library is loaded", !library.is_empty(), html! { (library) }),
        link(
            "Library and SQL have the same version",
            library == version || library.starts_with(&format!("{version}.")),
            html! { (version) },
        ),
        link("awty is enabled", database["enabled"] == true, html! { code { "awty.enabled" } }),
        link("The database is adopted", database["database_held"] != true && database["held"] != true, none()),
        link(
            "Due checks run",
            lag < 60_000,
            html! { @if lag > 0 { "the oldest waits for " (millis(lag)) } @else { (none()) } },
        ),
        link(
            "The last error is over",
            database["last_error"].is_null(),
            html! {
                @if let Some(error) = database["last_error"].as_str() { (error) " " (time(&database["last_error_at"])) } @else { (none()) }
            },
        ),
        link("This gateway claims calls", gateway.is_empty(), none()),
    ];
    table("From the server to a run", &[text("Link"), text("Holds"), text("Detail")], rows)
}
