//! `/slots`: the checks of the next hour, of the next day, and of one slot.

use super::chart::Range;
use super::draw::{Band, Chart, Series, Unit};
use super::fail::{Fail, View};
use super::parts::{
    Mark, due, empty, entity, is_late, job, linked_time, mark, number, select, string, table, text, whole,
};
use super::stop::Stop;
use super::visit::{Reading, Visit};
use super::words::{absolute, count, encoded, grouped, moment, times};
use super::{frame, words};
use crate::db::views;
use axum::extract::Path;
use chrono::DateTime;
use maud::{Markup, html};
use serde_json::Value;
use std::collections::BTreeMap;

const ROWS: i64 = 200;

pub struct Span {
    name: &'static str,
    title: &'static str,
    heaviest: &'static str,
    ahead: &'static str,
    step: &'static str,
    seconds: i64,
    buckets: usize,
}

pub const HOUR: Span = Span {
    name: "1h",
    title: "The next hour",
    heaviest: "The heaviest five minutes",
    ahead: "1 hour",
    step: "5 minutes",
    seconds: 300,
    buckets: 13,
};
const DAY: Span = Span {
    name: "1d",
    title: "The next day",
    heaviest: "The heaviest hours",
    ahead: "1 day",
    step: "1 hour",
    seconds: 3_600,
    buckets: 25,
};

pub struct Coming {
    /// Checks per time step. `None` if counting the checks would take too long.
    rows: Option<Vec<Value>>,
    range: Range,
    open: Vec<Value>,
}

pub async fn read(reading: &Reading, span: &Span) -> Result<Coming, Fail> {
    let range = Range::after(crate::clock::now().timestamp(), span.seconds, span.buckets);
    let rows = views::ahead(reading, span.ahead, span.step).await?;
    let open = views::open_hours(reading, range.from, span.seconds / PARTS, span.buckets as i64 * PARTS).await?;
    Ok(Coming { rows, range, open })
}

/// Each bucket has this many parts. The chart shows for each part whether a calendar is open.
const PARTS: i64 = 4;

impl Coming {
    fn bands(&self) -> Vec<Band> {
        let mut bands: Vec<Band> = Vec::new();
        for row in &self.open {
            let (name, Some(part)) = (string(&row["calendar"]), row["part"].as_u64()) else { continue };
            if bands.last().is_none_or(|band| band.name != name) {
                bands.push(Band { name: name.into(), parts: Vec::new() });
            }
            if let Some(band) = bands.last_mut() {
                band.parts.push(part as f64 / PARTS as f64);
            }
        }
        bands
    }

    pub fn draw(&self, span: &Span) -> Markup {
        let Some(rows) = &self.rows else {
            let count = select(&format!("* FROM awty.forecast('{}', '{}')", span.ahead, span.step));
            return empty(
                span.title,
                "Counting the checks of this time takes too long for this page. To count them:",
                Some(&count),
            );
        };
        // Overdue checks count as due now.
        let range = self.range;
        let due = rows
            .iter()
            .filter_map(|row| Some((moment(&row["slot"])?.timestamp().max(range.from), row["checks"].as_i64()?)));
        let placed = range.place(due, |a, b| a + b);
        if placed.iter().all(Option::is_none) {
            return empty(span.title, "No check is due in this time.", None);
        }
        #[allow(clippy::cast_precision_loss)] // a chart needs no more precision
        let values = placed.iter().map(|value| value.map(|value| value as f64)).collect();
        let sentence = sentence(&range, &placed);
        let stacked = vec![Series { name: "checks", class: "first", values }];
        let bands = self.bands();
        Chart {
            title: span.title,
            sentence: &sentence,
            range,
            unit: Unit::Count,
            stacked,
            lines: Vec::new(),
            bands,
            marks: None,
        }
        .draw()
    }
}

fn sentence(range: &Range, placed: &[Option<i64>]) -> String {
    let all: i64 = placed.iter().flatten().sum();
    // If several buckets have equally many checks, the first is taken.
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
    let span = if visit.query.get("ahead") == Some(DAY.name) { &DAY } else { &HOUR };
    let reading = visit.read().await?;
    let coming = read(&reading, span).await?;
    let stop = Stop::read(&reading).await?;
    visit.end(reading).await?;
    let rows = coming.rows.as_deref().unwrap_or_default();
    let mut jobs = BTreeMap::new();
    for row in rows {
        *jobs.entry(string(&row["job"])).or_insert(0) += row["checks"].as_i64().unwrap_or(0);
    }
    let mut heaviest: Vec<&Value> = rows.iter().collect();
    heaviest.sort_by_key(|row| std::cmp::Reverse(row["checks"].as_i64()));
    let slot = |row: &&Value| {
        let at = string(&row["slot"]);
        vec![
            linked_time(&format!("/slots/{}?width={}s", encoded(at), span.seconds), &row["slot"]),
            job(string(&row["job"])),
            whole(&row["checks"]),
        ]
    };
    let body = html! {
        h1 { "What comes" }
        (stop.banner())
        p.choices {
            @for Span { name, title, .. } in [&HOUR, &DAY] {
                a href=(format!("/slots?ahead={name}")) aria-current=[(*name == span.name).then_some("true")] { (title) } " "
            }
        }
        (coming.draw(span))
        @if !heaviest.is_empty() {
            (table(span.heaviest, &[text("From"), text("Job"), number("Checks")], heaviest.iter().take(10).map(slot).collect()))
        }
        @if jobs.len() > 1 {
            (table("By job", &[text("Job"), number("Checks")], jobs.iter().map(|(name, checks)| vec![job(name), html! { (grouped(*checks)) }]).collect()))
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
    let stop = Stop::read(&reading).await?;
    visit.end(reading).await?;
    let row = |row: &Value| {
        let state = match row["attempt"].as_i64() {
            Some(failed) if failed > 0 => html! { (mark(Mark::Bad, &format!("failed {}", times(failed)))) ", " },
            _ => html! {},
        };
        vec![entity(row), job(string(&row["job"])), html! { (state) (due(&row["at"], is_late(&row["at"]))) }]
    };
    let body = html! {
        h1 { "Checks from " (absolute(at, crate::clock::now())) }
        (stop.banner())
        @if checks.is_empty() {
            (empty("Checks", "No check that this role may see is due then.", None))
        } @else {
            (table("Checks", &[text("Entity"), text("Job"), text("State")], checks.iter().map(row).collect()))
            @if i64::try_from(checks.len()).is_ok_and(|found| found >= ROWS) { p.about { "The first " (ROWS) " are shown." } }
        }
    };
    Ok(frame::live(&visit, "Slot", body))
}
