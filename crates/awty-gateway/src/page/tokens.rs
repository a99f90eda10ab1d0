//! `/tokens` shows the tokens that a role may manage. A new token is shown only once, right after its creation.

use super::fail::View;
use super::form::{Form, see};
use super::frame;
use super::parts::{button, command, empty, next_page, string, table, text, time};
use super::visit::Visit;
use super::words::encoded;
use axum::extract::Path;
use axum::http::Method;
use maud::{Markup, html};
use serde_json::{Value, json};

pub async fn show(visit: Visit) -> View {
    if visit.asker.may("admin").is_err() {
        visit.count().await?;
        let line = "awty-gateway token create --role ROLE --scope admin --database postgresql://ROLE@HOST/DATABASE";
        let body = html! {
            h1 { "Tokens" }
            (empty("Tokens", "A token of scope admin can list, create and delete tokens. To create one:", Some(line)))
        };
        return Ok(frame::live(&visit, "Tokens", body));
    }
    view(visit, None).await
}

async fn view(visit: Visit, new: Option<&str>) -> View {
    visit.count().await?;
    let after = visit.query.get("after").map(|after| format!("?after={}", encoded(after))).unwrap_or_default();
    let found = visit.get(&format!("/v1/tokens{after}")).await?;
    let body = html! {
        h1 { "Tokens" }
        @if let Some(token) = new {
            section.notice role="status" {
                p { "This is the new token. It is shown only now, so copy it." }
                (command(token))
            }
        }
        (table("Tokens", &[text("Token"), text("Scope"), text("Created"), text("Last used"), text("Ends"), text("")], found.items().iter().map(row).collect()))
        (next_page(found.next().map(|after| format!("/tokens?after={}", encoded(&after)))))
        section {
            h2 { "Create a token" }
            form.stack method="post" action="/tokens" {
                label { "Scope "
                    select name="scope" {
                        option value="read" { "read: sees everything, changes nothing" }
                        option value="write" { "write: also changes checks and schedules" }
                        option value="admin" { "admin: also limits, blocks and tokens" }
                    }
                }
                label { "Ends after " input name="expires" value="90 d" size="8" required; }
                button { "Create" }
            }
        }
    };
    Ok(frame::still(&visit, "Tokens", body))
}

fn row(token: &Value) -> Vec<Markup> {
    let place = format!("/tokens/{}/delete", token["id"]);
    vec![
        html! { b { (token["id"]) } " " span.soft { (string(&token["role"])) } },
        html! { (string(&token["scope"])) },
        html! { (time(&token["created_at"])) br; span.soft { "by " (string(&token["created_by"])) } },
        time(&token["last_used_at"]),
        time(&token["expires_at"]),
        button(&place, "Delete", &[]),
    ]
}

pub async fn create(visit: Visit, form: Form) -> View {
    let body = json!({"scope": form.need("scope")?, "expires": form.need("expires")?});
    let made = visit.call(Method::POST, "/v1/tokens", Some(body)).await?;
    view(visit, made.json["token"].as_str()).await
}

pub async fn delete(visit: Visit, Path(id): Path<i64>) -> View {
    visit.call(Method::DELETE, &format!("/v1/tokens/{id}"), None).await?;
    Ok(see("/tokens"))
}
