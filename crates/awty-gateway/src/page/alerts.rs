//! `/alerts`: rows that are late or were late earlier, each with the client that holds the row's alert.

use super::fail::View;
use super::frame;
use super::parts::{Mark, button, due, empty, entity, mark, none, number, select, string, table, text, time, whole};
use super::stop::Stop;
use super::visit::Visit;
use super::words::count;
use crate::db::views;
use maud::{Markup, html};
use serde_json::Value;

const ROWS: i64 = 100;

pub async fn show(visit: Visit) -> View {
    let reading = visit.read().await?;
    let late = views::open_alerts(&reading, 0, ROWS).await?;
    let cleared = views::cleared_alerts(&reading, 20).await?;
    let stop = Stop::read(&reading).await?;
    visit.end(reading).await?;
    let was = |row: &Value| {
        vec![
            entity(row),
            html! { (string(&row["rule"])) },
            time(&row["due"]),
            time(&row["cleared"]),
            whole(&row["told"]),
        ]
    };
    let body = html! {
        h1 {
            @match (visit.late(), stop.behind()) {
                (0, None) => "Nothing is late.",
                (0, Some(since)) => { "No row was late before " (since) "." }
                (late, behind) => { @if behind.is_some() { "At least " } (count(late, "row is late.", "rows are late.")) }
            }
        }
        (stop.banner_of("this list"))
        @if late.is_empty() {
            (empty("Late rows", "A late row stands here until the condition of its rule is met. To see which rules there are:", Some(&select("rule, relation, until, within FROM awty.rule"))))
        } @else {
            (open("Late rows", &late, &visit))
        }
        @if !cleared.is_empty() {
            (table("No longer late", &[text("Row"), text("Rule"), text("Late since"), text("Cleared"), number("Told")], cleared.iter().map(was).collect()))
        }
    };
    Ok(frame::still(&visit, "Alerts", body))
}

pub fn open(caption: &'static str, alerts: &[Value], visit: &Visit) -> Markup {
    let row = |row: &Value| {
        let level = row["level"].as_i64().unwrap_or(1);
        vec![
            entity(row),
            html! { a href="/rules" { (string(&row["rule"])) } },
            html! { (due(&row["due"], level > 0)) @if level > 1 { ", level " (level) } },
            whole(&row["told"]),
            taken(row, visit),
        ]
    };
    table(
        caption,
        &[text("Row"), text("Rule"), text("State"), number("Told"), text("Taken by")],
        alerts.iter().map(row).collect(),
    )
}

fn taken(row: &Value, visit: &Visit) -> Markup {
    let [name, key, rule] = ["name", "key", "rule"].map(|name| string(&row[name]));
    let fields = [("name", name), ("key", key), ("job", rule), ("back", &visit.place)];
    html! {
        @if let Some(person) = row["held_by"].as_str() {
            (mark(Mark::Held, person))
            @if let Some(note) = row["note"].as_str() { " “" (note) "”" }
            @if !row["held_until"].is_null() { " until " (time(&row["held_until"])) }
            @if visit.writes() { " " (button("/entity/release", "Release", &fields)) }
        } @else if !visit.writes() {
            (none())
        } @else if visit.reloads() {
            a href="/alerts" { "Take it" }
        } @else {
            details.take {
                summary { "Take it" }
                form.stack method="post" action="/entity/hold" {
                    @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
                    label { "Note " input name="note" maxlength="200" placeholder="asked the warehouse"; }
                    label { "For " input name="until" placeholder="2 h" size="8"; }
                    p.about { "Nobody is told while it is held. Without a time, it is held until it is released." }
                    button { "Hold" }
                }
            }
        }
    }
}
