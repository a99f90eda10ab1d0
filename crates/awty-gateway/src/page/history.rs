//! `/history`: finished checks. Checks with problems come first.

use super::fail::{Fail, View};
use super::form::Form;
use super::frame;
use super::parts::{
    button, empty, entity, job, next_page, none, number, outcome, select, string, table, text, time, whole,
};
use super::visit::Visit;
use super::words::{encoded, millis};
use crate::db::views;
use axum::extract::Path;
use axum::http::Method;
use maud::{Markup, html};
use serde_json::Value;

const ROWS: usize = 50;

pub async fn show(visit: Visit) -> View {
    let problems = visit.query.get("show") != Some("all");
    let (after, id) = (visit.query.get("after"), visit.query.get("id").and_then(|id| id.parse().ok()));
    if after.is_some_and(|after| {
        super::words::moment(&Value::from(after.replacen(' ', "T", 1))).is_none() && after.len() > 40
    }) {
        return Err(Fail::not_found());
    }
    let reading = visit.read().await?;
    let mut rows = views::ended(&reading, problems, after, id, ROWS as i64 + 1).await?;
    visit.end(reading).await?;
    let more = rows.len() > ROWS;
    rows.truncate(ROWS);
    let next = rows.last().filter(|_| more).map(|last| {
        let show = if problems { "" } else { "show=all&" };
        format!("/history?{show}after={}&id={}", encoded(string(&last["after"])), last["id"])
    });
    let body = html! {
        h1 { @if problems { "What ended with a problem" } @else { "What has ended" } }
        p.choices {
            a href="/history" aria-current=[problems.then_some("true")] { "Problems" } " "
            a href="/history?show=all" aria-current=[(!problems).then_some("true")] { "All" }
        }
        @if rows.is_empty() {
            (empty("History", if problems { "No check has ended with a problem, as far as the history is kept." } else { "No check has ended yet. To run one now:" },
                (!problems).then(|| select("awty.schedule('orders', '42', 'unshipped', after => '1 second')")).as_deref()))
        } @else {
            (table("Finished checks", &[text("Entity"), text("Job"), text("Outcome"), text("Ended"), number("Attempts"), number("Run time"), text("")], rows.iter().map(|ended| row(ended, visit.writes())).collect()))
            (next_page(next))
        }
    };
    Ok(frame::live(&visit, "History", body))
}

fn row(row: &Value, writes: bool) -> Vec<Markup> {
    let retry = format!("/history/{}/retry", row["id"]);
    let is_problem = !["done", "met", "cancelled", "replaced"].contains(&string(&row["outcome"]));
    vec![
        entity(row),
        job(string(&row["job"])),
        html! { (outcome(string(&row["outcome"]))) @if let Some(message) = row["message"].as_str() { br; span.message { (message) } } },
        time(&row["at"]),
        whole(&row["attempts"]),
        row["took"].as_i64().map_or_else(none, |took| html! { (millis(took)) }),
        html! { @if writes && is_problem && row["http"] == true { (button(&retry, "Call again", &[])) } },
    ]
}

pub async fn retry(visit: Visit, Path(id): Path<i64>, form: Form) -> View {
    visit.call(Method::POST, &format!("/v1/history/{id}/retry"), None).await?;
    Ok(form.back("/history"))
}
