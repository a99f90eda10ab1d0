//! `/slots`: what comes in the next hour and day, the heaviest slot, and the checks of one slot.

use super::chart::Range;
use super::draw::{Chart, Series, Unit};
use super::fail::{Fail, View};
use super::parts::{Mark, empty, entity, job, linked_time, mark, number, string, table, text, time, whole};
use super::visit::Visit;
use super::words::{absolute, count, encoded, grouped, moment};
use super::{frame, words};
use crate::db::views;
use axum::extract::Path;
use chrono::DateTime;
use maud::{Markup, html};
use serde_json::Value;
use std::collections::BTreeMap;

const ROWS: i64 = 200;
pub const HOUR: (i64, usize) = (300, 13);
const DAY: (i64, usize) = (3_600, 25);

/// Draws the checks that are due ahead. `step` is the width of a bucket in seconds, and their number.
pub fn ahead(title: &'static str, rows: &[Value], (step, buckets): (i64, usize)) -> Markup {
    let range = Range::after(crate::clock::now().timestamp(), step, buckets);
    // A check that is overdue is due now.
    let due = rows
        .iter()
        .filter_map(|row| Some((moment(&row["slot"])?.timestamp().max(range.from), row["checks"].as_i64()?)));
    let placed = range.place(due, |a, b| a + b);
    if placed.iter().all(Option::is_none) {
        return empty(title, "No check is due in this time.", None);
    }
    #[allow(clippy::cast_precision_loss)] // a chart needs no more precision
    let values = placed.iter().map(|value| value.map(|value| value as f64)).collect();
    let sentence = sentence(&range, &placed);
    let stacked = vec![Series { name: "checks", class: "first", values }];
    Chart { title, sentence: &sentence, range, unit: Unit::Count, stacked, lines: Vec::new() }.draw()
}

fn sentence(range: &Range, placed: &[Option<i64>]) -> String {
    let all: i64 = placed.iter().flatten().sum();
    // The first of the heaviest is the nearest.
    let heaviest = placed.iter().enumerate().rev().max_by_key(|(_, value)| **value);
    let heaviest = heaviest.map(|(bucket, value)| {
        let at = DateTime::from_timestamp(range.at(bucket), 0).unwrap_or_default();
        format!(
            " The heaviest time begins at {}, with {}.",
            absolute(at, crate::clock::now()),
            grouped(value.unwrap_or(0))
        )
    });
    let verb = if all == 1 { "is" } else { "are" };
    format!("{} {verb} due.{}", count(all, "check", "checks"), heaviest.unwrap_or_default())
}

pub async fn show(visit: Visit) -> View {
    let reading = visit.read().await?;
    let hour = views::ahead(&reading, "1 hour", "5 minutes").await?;
    let day = views::ahead(&reading, "1 day", "1 hour").await?;
    visit.end(reading).await?;
    let mut jobs = BTreeMap::new();
    for row in &day {
        *jobs.entry(string(&row["job"])).or_insert(0) += row["checks"].as_i64().unwrap_or(0);
    }
    let mut heaviest: Vec<&Value> = hour.iter().collect();
    heaviest.sort_by_key(|row| std::cmp::Reverse(row["checks"].as_i64()));
    let slot = |row: &&Value| {
        let at = string(&row["slot"]);
        vec![
            linked_time(&format!("/slots/{}?width=5m", encoded(at)), &row["slot"]),
            job(string(&row["job"])),
            whole(&row["checks"]),
        ]
    };
    let body = html! {
        h1 { "What comes" }
        (ahead("The next hour", &hour, HOUR))
        @if !heaviest.is_empty() {
            (table("The heaviest five minutes of the hour", &[text("From"), text("Job"), number("Checks")], heaviest.iter().take(10).map(slot).collect()))
        }
        (ahead("The next day", &day, DAY))
        @if !jobs.is_empty() {
            (table("The next day by job", &[text("Job"), number("Checks")], jobs.iter().map(|(name, checks)| vec![job(name), html! { (grouped(*checks)) }]).collect()))
        }
        p.about { "Checks that are held, or whose job is paused, are left out." }
    };
    Ok(frame::live(&visit, "Slots", body))
}

pub async fn one(visit: Visit, Path(slot): Path<String>) -> View {
    let at = words::moment(&Value::from(slot.as_str())).ok_or_else(Fail::not_found)?;
    let width = visit.query.interval("width")?.unwrap_or_else(|| "1 second".into());
    let reading = visit.read().await?;
    let checks = views::in_slot(&reading, &at.to_rfc3339(), &width, ROWS).await?;
    visit.end(reading).await?;
    let row = |row: &Value| {
        let state = match row["attempt"].as_i64() {
            Some(failed) if failed > 0 => mark(Mark::Bad, &format!("failed {failed} times")),
            _ => mark(Mark::Wait, "due"),
        };
        vec![entity(row), job(string(&row["job"])), time(&row["at"]), state]
    };
    let body = html! {
        h1 { "Due from " (absolute(at, crate::clock::now())) }
        @if checks.is_empty() {
            (empty("Checks", "No check that this role may see is due then.", None))
        } @else {
            (table("Checks", &[text("Entity"), text("Job"), text("Slot"), text("State")], checks.iter().map(row).collect()))
            @if i64::try_from(checks.len()).is_ok_and(|found| found >= ROWS) { p.about { "The first " (ROWS) " are shown." } }
        }
    };
    Ok(frame::live(&visit, "Slot", body))
}
