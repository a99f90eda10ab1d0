//! `/targets`: each target's limits, block and circuit breaker, and the forms that block targets.

use super::fail::{Fail, View};
use super::form::{Form, see};
use super::frame;
use super::parts::{Mark, button, empty, mark, next_page, none, number, string, table, text, time, whole};
use super::visit::Visit;
use super::words::encoded;
use axum::extract::Path;
use axum::http::Method;
use maud::{Markup, html};
use serde_json::{Value, json};

pub async fn show(visit: Visit) -> View {
    visit.count().await?;
    let after = visit.query.get("after").map(|after| format!("?after={}", encoded(after))).unwrap_or_default();
    let found = visit.get(&format!("/v1/targets{after}")).await?;
    let may = visit.asker.may("admin").is_ok();
    let columns = [
        text("Target"),
        text("State"),
        number("In flight"),
        number("At once"),
        number("Per second"),
        text("Until"),
        text(""),
    ];
    let body = html! {
        h1 { "Targets" }
        p { "A target is the scheme, host and port of endpoints. Its limits hold for all gateways together." }
        @if found.items().is_empty() {
            (empty("Targets", "No target is limited, blocked, failing or called now.", None))
        } @else {
            (table("Targets", &columns, found.items().iter().map(|target| row(target, may)).collect()))
            (next_page(found.next().map(|after| format!("/targets?after={}", encoded(&after)))))
        }
        @if may {
            section {
                h2 { "Block a target" }
                (block_form(""))
            }
        } @else {
            p.about { "A token of scope admin can block targets." }
        }
    };
    Ok(frame::still(&visit, "Targets", body))
}

fn row(target: &Value, may: bool) -> Vec<Markup> {
    let origin = target["origin"].as_str();
    let state = match string(&target["state"]) {
        "ready" => mark(Mark::Good, "ready"),
        "open" | "half_open" => mark(Mark::Bad, "failing"),
        other => mark(Mark::Held, other),
    };
    let is_closed = ["blocked", "open"].contains(&string(&target["state"]));
    let rate = target["rate"].as_f64().map_or_else(none, |rate| html! { (rate) });
    vec![
        html! { b { (origin.unwrap_or("all targets together")) } },
        html! { (state) @if let Some(why) = target["why"].as_str() { br; span.message { (why) } } },
        whole(&target["in_flight"]),
        whole(&target["concurrency"]),
        rate,
        time(&target["blocked_until"]),
        html! { @if may && is_closed { @if let Some(origin) = origin { (button("/targets/unblock", "Unblock", &[("origin", origin)])) } } },
    ]
}

fn block_form(origin: &str) -> Markup {
    html! {
        form.stack method="post" action="/targets/block" {
            label { "Target " input name="origin" value=(origin) required placeholder="https://api.example.com"; }
            label { "For " input name="until" placeholder="10 min" size="8"; }
            label { "Note " input name="note" maxlength="200" placeholder="they asked us to"; }
            p.about { "Without a time, it is blocked until it is unblocked. A blocked target uses up no attempt." }
            button { "Block" }
        }
    }
}

pub async fn act(visit: Visit, Path(action): Path<String>, form: Form) -> View {
    let place = format!("/v1/targets/{}", encoded(form.need("origin")?));
    match action.as_str() {
        "block" => {
            let until = form.get("until").unwrap_or("infinity");
            visit
                .call(
                    Method::POST,
                    &format!("{place}/block"),
                    Some(json!({"blocked_until": until, "note": form.get("note")})),
                )
                .await?
        }
        "unblock" => visit.call(Method::POST, &format!("{place}/unblock"), None).await?,
        _ => return Err(Fail::not_found()),
    };
    Ok(see("/targets"))
}
