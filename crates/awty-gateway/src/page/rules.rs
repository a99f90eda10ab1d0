//! `/rules` shows each rule as a sentence, with the percentage of its rows that were on time.

use super::fail::View;
use super::frame;
use super::parts::{empty, none, number, select, string, table, text, time, whole};
use super::stop::Stop;
use super::visit::Visit;
use super::words::{count, millis};
use crate::db::views;
use maud::{Markup, html};
use serde_json::Value;

pub async fn show(visit: Visit) -> View {
    let reading = visit.read().await?;
    let rules = views::rules(&reading, 500).await?;
    let stop = Stop::read(&reading).await?;
    visit.end(reading).await?;
    let row = |row: &Value| {
        let name = html! { b { (string(&row["rule"])) } @if row["paused"] == true { " (paused)" } };
        vec![name, terms(row), whole(&row["pending"]), whole(&row["met"]), whole(&row["late"]), share(row), tells(row)]
    };
    let columns = [
        text("Rule"),
        text("By when"),
        number("Pending"),
        number("In time"),
        number("Late"),
        number("Share"),
        text("Tells"),
    ];
    let body = html! {
        h1 { @if rules.is_empty() { "No table is watched yet." } @else { (count(i64::try_from(rules.len()).unwrap_or(i64::MAX), "rule watches rows.", "rules watch rows.")) } }
        (stop.banner())
        @if rules.is_empty() {
            (empty("Rules", "A rule says by when something must be true of each row of a table:", Some(&select("awty.watch('orders', since => 'placed_at', until => $$status <> 'NEW'$$, within => '3 hours')"))))
        } @else {
            (table("Rules", &columns, rules.iter().map(row).collect()))
            @if let Some(since) = rules.iter().map(|row| &row["counted"]).find(|since| !since.is_null()) {
                p.about { "The rows in time and the late ones are counted since the first run of each rule, such as " (time(since)) "." }
            }
        }
    };
    Ok(frame::live(&visit, "Rules", body))
}

fn terms(row: &Value) -> Markup {
    let since = row["since"].as_str().unwrap_or("the insert");
    html! {
        code { (string(&row["until"])) } " in each row of " (string(&row["table"]))
        @if let Some(due) = row["due"].as_str() {
            " by " code { (due) }
        } @else if let Some(within) = row["within"].as_i64() {
            " within " (millis(within)) " of " code { (since) }
        }
        @if let Some(calendar) = row["calendar"].as_str() { ", in open time of " (calendar) }
    }
}

fn share(row: &Value) -> Markup {
    match (row["met"].as_i64(), row["late"].as_i64()) {
        (Some(met), Some(late)) if met + late > 0 => {
            // The share is rounded down, so that 100 % means that no row was late.
            let tenths = met.saturating_mul(1_000) / (met + late);
            html! { (tenths / 10) "." (tenths % 10) " %" }
        }
        _ => none(),
    }
}

fn tells(row: &Value) -> Markup {
    html! {
        @match (row["calls"].as_str().filter(|calls| !calls.is_empty()), row["notify"].as_str()) {
            (None, None) => { "only awty.alert" }
            (calls, notify) => {
                @if let Some(calls) = calls { code { (calls) "()" } " " }
                @if let Some(notify) = notify { "channel " code { (notify) } }
            }
        }
    }
}
