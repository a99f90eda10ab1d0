//! The page `/why` shows the first reason why no check runs, a command that removes the reason, and other problems that
//! awty has found.

use super::fail::View;
use super::parts::{Mark, command, mark, reason, remedy, select, string, time};
use super::visit::Visit;
use super::words::{millis, moment};
use super::{frame, links, zone};
use crate::db::{status, views};
use crate::health;
use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};
use serde_json::Value;

/// Largest difference between two clocks that is ignored, because the measured difference includes the duration of a
/// query.
const CLOCKS_AGREE: TimeDelta = TimeDelta::seconds(5);

pub async fn show(visit: Visit) -> View {
    let reading = visit.read().await?;
    let database = status::database(&reading).await?;
    let times = views::clock(&reading).await?;
    let asked = crate::clock::now();
    let findings = status::findings(&reading).await?;
    let next = views::next_due(&reading).await?;
    let stops = views::stops(&reading).await?;
    visit.end(reading).await?;
    let gateway = health::reasons(&visit.page.worker);
    let why = database["why"].as_str();
    // Hides a finding if the reason at the top of the page shows the same command, because both describe the same
    // problem.
    let is_told = |fix: Option<&str>| why.is_some() && fix.is_some() && fix == database["fix"].as_str();
    let clock = clock(&times, &database["last_slot_run"], asked);
    let chain = links::Seen {
        database: &database,
        stops: &stops,
        findings: &findings,
        gateway: (&visit.page.name, &gateway),
        clock: clock.as_deref(),
        times: &times,
        next: &next,
    };
    let (chain, all_hold) = chain.draw();
    let findings: Vec<_> = findings.iter().filter(|finding| !is_told(finding["fix"].as_str())).collect();
    let is_well = why.is_none() && gateway.is_empty() && findings.is_empty() && clock.is_none();
    let body = html! {
        h1 {
            @if is_well { "Nothing is in the way." }
            @else if why.is_none() && all_hold { "Nothing stops the checks, but awty has found this." }
            @else { "This is in the way." }
        }
        @if let Some(why) = why { (reason(why, database["fix"].as_str().map(remedy))) }
        @for (why, fix) in gateway.iter().map(|reason| parted(reason)).filter(|(_, fix)| !is_told(*fix)) {
            (of_gateway(&visit.page.name, why, fix))
        }
        @if !visit.reloads() { (of_past()) }
        @for finding in &findings { (found(finding)) }
        @if let Some(clock) = &clock { (reason(clock, Some(command("timedatectl status")))) }
        (chain)
        @if is_well {
            @if next.is_null() {
                p { "Nothing is due, because no check is pending. To schedule one:" }
                (command(&select("awty.schedule('orders', '42', 'unshipped', after => '3 hours')")))
            } @else {
                p { "The next check is due at " (time(&next)) "." }
            }
            p { "If a check did not run, ask for its entity in the field above: " code { "orders 42" } " shows its past, its future, and why it does not run now." }
        }
    };
    Ok(frame::live(&visit, "Why", body))
}

/// Warns of a wrong clock, because it can make checks seem overdue that are not due yet.
fn clock(times: &Value, last_slot_run: &Value, now: DateTime<Utc>) -> Option<String> {
    let (there, last) = (moment(&times["now"])?, moment(last_slot_run));
    let (off, back) = (there - now, last.map(|last| last - there));
    let slot = TimeDelta::milliseconds(times["slot"].as_i64().unwrap_or(0));
    if off.abs() > CLOCKS_AGREE {
        let word = if off < TimeDelta::zero() { "behind" } else { "ahead of" };
        let length = millis(off.abs().num_milliseconds());
        return Some(format!("the clock of the database is {length} {word} the clock of this gateway"));
    }
    back.filter(|back| *back > slot + CLOCKS_AGREE)
        .map(|back| format!("the clock of the database was set back by {} or more", millis(back.num_milliseconds())))
}

/// Splits a reason of the gateway into the problem and, after the first semicolon, the solution.
fn parted(reason: &str) -> (&str, Option<&str>) {
    reason.split_once("; ").map_or((reason, None), |(why, fix)| (why, Some(fix)))
}

/// Leads to the answer about an earlier call, because the rest of the view is about the present.
fn of_past() -> Markup {
    html! {
        section {
            p { "This view is about now. Why was an endpoint not called earlier? Say which, and when:" }
            form.filters method="get" action="/entity" {
                label { "URI " input name="q" type="search" placeholder="https://api.example.com/tick" autocapitalize="none" required; }
                label { "Was it called at (" (zone::name()) ") " input name="at" type="datetime-local" required; }
                button { "Look" }
            }
        }
    }
}

fn of_gateway(name: &str, why: &str, fix: Option<&str>) -> Markup {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_wrong_clock_is_told() {
        let now = moment(&json!("2026-11-26T10:00:00Z")).unwrap();
        let told = |there: &str, last: &str| clock(&json!({"now": there, "slot": 1_000}), &json!(last), now);
        let on_time = "2026-11-26T10:00:02Z";
        assert_eq!(told(on_time, "2026-11-26T09:59:59Z"), None);
        assert!(told("2026-11-26T09:00:00Z", on_time).is_some_and(|why| why.contains("is 1 h behind")));
        assert!(told("2026-11-26T11:00:00Z", on_time).is_some_and(|why| why.contains("is 1 h ahead of")));
        assert!(told(on_time, "2026-11-26T10:01:02Z").is_some_and(|why| why.contains("set back by 1 min")));
        assert_eq!(clock(&json!({"now": on_time}), &Value::Null, now), None);
    }
}
