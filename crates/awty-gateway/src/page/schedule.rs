//! `/schedules/{id}`: a schedule with its settings, next times, charts and last calls.

use super::answer::BODY;
use super::calls::Last;
use super::chart::Range;
use super::fail::{Fail, View};
use super::numbers::Numbers;
use super::parts::{button, command, reason, remedy, string, time};
use super::past::{self, Past};
use super::schedules::{next_call, plan, result, state};
use super::stop::Stop;
use super::visit::{Reading, Visit};
use super::words::{encoded, moment};
use super::{frame, zone};
use crate::db::views;
use axum::extract::Path;
use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};
use serde_json::Value;

/// Time ranges of the charts. Each entry has the bucket's name in the URL, the bucket's width in seconds, the number of
/// buckets, and the length of the whole range.
const BUCKETS: [(&str, i64, usize, &str); 7] = [
    ("1s", 1, 300, "5 min"),
    ("10s", 10, 360, "1 h"),
    ("1m", 60, 360, "6 h"),
    ("10m", 600, 144, "1 day"),
    ("1h", 3_600, 168, "7 days"),
    ("6h", 21_600, 360, "90 days"),
    ("1d", 86_400, 360, "360 days"),
];
/// The page does not show this reason why a check waits, because the check has only just become due.
const ABOUT_TO_RUN: &str = "it is due, and waits for an external worker";

const USUAL: usize = 3;

/// Length of time after the requested time `at` that the charts and the list of calls also show.
const AFTER: TimeDelta = TimeDelta::minutes(30);

pub async fn show(visit: Visit, Path(id): Path<String>) -> View {
    let place = format!("/schedules/{}", encoded(&id));
    let row = visit.get(&format!("/v1{place}")).await?.json;
    let asked = visit.query.get("bucket");
    let read = |until| moment(&Value::from(until)).or_else(|| zone::read(until)).ok_or_else(Fail::not_found);
    let at = visit.query.get("at").map(read).transpose()?;
    // A link can contain an end time (`until`), so that the page shows the same numbers whenever a person opens the
    // link.
    let until = visit.query.get("until").map(read).transpose()?;
    let until = until.or(at.map(|at| (at + AFTER).min(crate::clock::now())));
    let (bucket, step, buckets, _) = BUCKETS
        .into_iter()
        .find(|(name, ..)| asked == Some(name))
        .unwrap_or_else(|| at.map_or_else(|| usual(moment(&row["created_at"])), around));
    let range = Range::until(until.unwrap_or_else(crate::clock::now).timestamp(), step, buckets);
    let from = DateTime::from_timestamp(range.from, 0).unwrap_or_default().to_rfc3339();
    let to = DateTime::from_timestamp(range.end(), 0).unwrap_or_default().to_rfc3339();
    let stats =
        visit.get(&format!("/v1{place}/stats?bucket={bucket}&from={}&to={}", encoded(&from), encoded(&to))).await?;
    let next = visit.get(&format!("/v1{place}/next?count=5")).await?;
    let reading = visit.read().await?;
    let stop = Stop::read(&reading).await?;
    let waits = waits(&reading, &id, stop.why()).await?;
    let last = Last::read(&visit.page, &reading, &id, until.map(|_| to.as_str())).await?;
    let past = match at {
        Some(at) => Some(Past::read(&visit.page, &reading, &id, at).await?),
        None => None,
    };
    visit.end(reading).await?;
    let body = html! {
        h1 { (string(&row["uri"])) }
        p.lead { (state(&row)) ", " (plan(&row)) }
        @if let Some(about) = row["description"].as_str() { p.soft { (about) } }
        (stop.banner())
        @for wait in &waits { (reason(string(&wait["why"]), wait["mend"].as_str().map(remedy))) }
        @if let Some(why) = row["why"].as_str().filter(|_| waits.is_empty()) { (reason(why, None)) }
        @if let Some(past) = &past { (past.draw(&id)) } @else { (last.cause()) }
        (buttons(&row, &place, visit.writes()))
        @if !visit.reloads() { (past::ask(&place, visit.query.get("at").unwrap_or_default())) }
        dl.facts {
            div { dt { "Next calls" } dd { @if next.items().is_empty() { "none is planned" } @for at in next.items() { (next_call(at)) br; } } }
            div { dt { "Last call" } dd { (result(&row["last"])) br; (time(&row["last"]["at"])) } }
            @if !row["failing_since"].is_null() { div { dt { "Failing since" } dd { (time(&row["failing_since"])) } } }
            div { dt { "Last 24 hours" } dd { (row["counts"]["ok"]) " ok, " (row["counts"]["failed"]) " failed, " (row["counts"]["dropped"]) " dropped" } }
            div { dt { "Request" } dd { (string(&row["method"])) ", timeout " (row["timeout"].as_str().unwrap_or("of the gateway")) } }
            div { dt { "Success" } dd { (row["success"].as_str().unwrap_or("200-299")) } }
            div { dt { "Created" } dd { (time(&row["created_at"])) " by " (string(&row["created_by"])) } }
        }
        (choices(&place, bucket, until.is_some(), &range))
        (Numbers { items: stats.items(), range, step }.draw())
        (last.draw(&id))
        details { summary { "Repeat this request by hand" } (command(&curl(&row))) }
    };
    Ok(frame::live(&visit, string(&row["uri"]), body))
}

/// Returns the default time range of the charts, which is one day. For a younger schedule, returns the shortest range
/// that begins before the schedule's creation.
fn usual(created: Option<DateTime<Utc>>) -> (&'static str, i64, usize, &'static str) {
    let age = created.map_or(i64::MAX, |created| (crate::clock::now() - created).num_seconds());
    let fits = |(_, step, buckets, _): &(_, i64, usize, _)| age < step * *buckets as i64;
    BUCKETS.into_iter().take(USUAL).find(fits).unwrap_or(BUCKETS[USUAL])
}

/// Returns the time range of the charts around `at`. By default, single calls are kept for a day, so charts of earlier
/// times show hourly totals.
fn around(at: DateTime<Utc>) -> (&'static str, i64, usize, &'static str) {
    if crate::clock::now() - at < TimeDelta::days(1) { usual(Some(at)) } else { BUCKETS[USUAL + 1] }
}

/// Returns the reasons why a due call waits, and what mends each. The database returns them apart, because roles write
/// their own words into a reason. Leaves out reasons that the banner already shows, and reasons that last only until the
/// gateway claims the call.
async fn waits(reading: &Reading, id: &str, stop: Option<&str>) -> Result<Vec<Value>, Fail> {
    let is_told = |why: &str| why.starts_with(ABOUT_TO_RUN) || stop.is_some_and(|stop| why.starts_with(stop));
    let mut waits = views::standing(reading, id).await?;
    waits.retain(|wait| !is_told(string(&wait["why"])));
    Ok(waits)
}

fn choices(place: &str, bucket: &str, is_past: bool, range: &Range) -> Markup {
    let last = DateTime::from_timestamp(range.at(range.count - 1), 0).unwrap_or_default().to_rfc3339();
    html! {
        p.choices {
            @if is_past { "Not up to now. Show the last " } @else { "The last " }
            @for (name, .., span) in BUCKETS {
                a href=(format!("{place}?bucket={name}")) aria-current=[(name == bucket && !is_past).then_some("true")] { (span) } " "
            }
            a href=(format!("{place}?bucket={bucket}&until={}", encoded(&last))) aria-current=[is_past.then_some("true")] { "Link to these numbers" }
        }
    }
}

fn buttons(row: &Value, place: &str, writes: bool) -> Markup {
    let is = |states: &[&str]| writes && states.contains(&string(&row["state"]));
    html! {
        div.actions {
            @if is(&["active", "blocked"]) { (button(&format!("{place}/run"), "Call now", &[])) (button(&format!("{place}/pause"), "Pause", &[])) }
            @if is(&["paused", "held"]) { (button(&format!("{place}/resume"), "Resume", &[])) }
            @if writes { a.button href=(format!("{place}/edit")) { "Edit" } }
            @if is(&["active", "blocked", "paused", "held"]) { a.button href=(format!("{place}/delete")) { "Delete" } }
            a href=(format!("/entity?q={}", encoded(string(&row["uri"])))) { "Its whole life" }
        }
    }
}

/// Returns the request as a curl command, without its secrets and signature. `--globoff` keeps curl from reading
/// patterns in the address. `--data-raw` keeps curl from reading a file if the body begins with `@`.
fn curl(row: &Value) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    let mut line = format!("curl --globoff -X {} {}", string(&row["method"]), quoted(string(&row["uri"])));
    for (name, value) in row["headers"].as_object().into_iter().flatten() {
        line.push_str(&format!(" \\\n  -H {}", quoted(&format!("{name}: {}", string(value)))));
    }
    if let Some(body) = row[BODY].as_str().or(row["body_text"].as_str()) {
        line.push_str(&format!(" \\\n  --data-raw {}", quoted(body)));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_new_schedule_shows_all_its_calls() {
        let range = |minutes: i64| usual(Some(crate::clock::now() - chrono::TimeDelta::minutes(minutes))).3;
        assert_eq!([1, 30, 120, 2_000].map(range), ["5 min", "1 h", "6 h", "1 day"]);
        assert_eq!(usual(None).3, "1 day");
        let around = |hours: i64| around(crate::clock::now() - chrono::TimeDelta::hours(hours)).3;
        assert_eq!([0, 3, 20, 25].map(around), ["5 min", "6 h", "1 day", "7 days"]);
    }

    #[test]
    fn the_request_can_be_repeated_by_hand() {
        let row = json!({"method": "POST", "uri": "https://a.example/it's", "headers": {"X-A": "$(rm)"}, "body_text": "@/etc/passwd"});
        assert_eq!(
            curl(&row),
            "curl --globoff -X POST 'https://a.example/it'\\''s' \\\n  -H 'X-A: $(rm)' \\\n  --data-raw '@/etc/passwd'"
        );
    }
}
