//! Signs people in and out. The gateway stores no session, because the cookie contains the token.
//!
//! Invariant: no script and no other site can use the cookie.

use super::fail::{Fail, View};
use super::form::{Form, is_local, see};
use super::state::Page;
use super::{cookies, document, parts, zone};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use std::sync::Arc;

const LASTS: u32 = 12 * 3_600;
const YEAR: u32 = 366 * 86_400;

/// Without TLS, browsers refuse cookies with the prefix `__Host-`.
const fn name(secure: bool) -> &'static str {
    if secure { "__Host-awty" } else { "awty" }
}

pub fn token(headers: &HeaderMap, secure: bool) -> Option<String> {
    cookies::value(headers, name(secure))
}

fn of_token(token: &str, seconds: u32, secure: bool) -> Option<HeaderValue> {
    let tls = if secure { "; Secure" } else { "" };
    let text = format!("{}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{tls}", name(secure));
    HeaderValue::from_str(&text).ok()
}

fn with(mut response: Response, cookie: Option<HeaderValue>) -> Response {
    if let Some(cookie) = cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

fn view(next: &str, refusal: Option<&str>) -> Markup {
    let body = html! {
        h1 { "Are we there yet?" }
        p { "Sign in with a token. It opens what its role may see in the database." }
        form.stack method="post" action="/login" {
            input type="hidden" name="next" value=(next);
            label for="token" { "Token" }
            input #token name="token" type="password" autocomplete="current-password" required autofocus
                placeholder="awty_…" aria-describedby=[refusal.map(|_| "refusal")];
            @if let Some(refusal) = refusal { p.error #refusal role="alert" { (refusal) } }
            button { "Sign in" }
        }
        details {
            summary { "Where does a token come from?" }
            p { "On the machine of the gateway, for a role that the gateway is a member of:" }
            (parts::command("awty-gateway token create --role app --scope write --database postgresql://app@localhost/shop"))
            p { "The scope " code { "read" } " shows everything and changes nothing." }
        }
    };
    document::bare("Sign in · awty", html! {}, body)
}

pub async fn show(RawQuery(query): RawQuery) -> Markup {
    let query = Form::of(query.unwrap_or_default().as_bytes());
    view(query.get("next").filter(|next| is_local(next)).unwrap_or("/"), None)
}

pub async fn enter(State(page): State<Arc<Page>>, form: Form) -> View {
    let (token, next) = (form.get("token").unwrap_or_default(), form.get("next").filter(|next| is_local(next)));
    let next = next.unwrap_or("/");
    match page.api.asker(token, false).await {
        Ok(_) => Ok(with(see(next), of_token(token, LASTS, page.secure))),
        Err(problem) if problem.status() == StatusCode::UNAUTHORIZED => {
            let refusal = match problem.body()["type"].as_str() {
                Some("/problems/token-expired") => "This token has expired. Create a new one.",
                _ => "This token is not known. A token is awty_ and 43 characters.",
            };
            Ok((StatusCode::UNAUTHORIZED, view(next, Some(refusal))).into_response())
        }
        Err(problem) => Err(Fail::from(problem)),
    }
}

pub async fn leave(State(page): State<Arc<Page>>) -> Response {
    with(see("/login"), of_token("", 0, page.secure))
}

pub async fn choose_zone(form: Form) -> View {
    let chosen = form.get("zone").unwrap_or("UTC");
    let zone = zone::find(chosen).ok_or_else(|| {
        Fail::Refused(422, format!("“{chosen}” is no time zone. Write a name such as Europe/Berlin or UTC."))
    })?;
    let mut response = form.back("/");
    let text = format!(
        "{}={}; Path=/; Max-Age={YEAR}; HttpOnly; SameSite=Strict",
        zone::COOKIE,
        zone.iana_name().unwrap_or("UTC")
    );
    if let Ok(value) = header::HeaderValue::from_str(&text) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_is_out_of_reach_for_scripts_and_other_sites() {
        let secure = of_token("awty_x", 60, true).unwrap();
        assert_eq!(secure, "__Host-awty=awty_x; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure");
        assert_eq!(
            of_token("awty_x", 60, false).unwrap(),
            "awty=awty_x; Path=/; Max-Age=60; HttpOnly; SameSite=Strict"
        );
        assert!(of_token("a\r\nSet-Cookie: b", 60, false).is_none());
    }

    #[test]
    fn the_token_is_read_from_its_own_cookie() {
        let headers =
            HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_static("a=b; awty=t1; __Host-awty=t2"))]);
        assert_eq!((token(&headers, false).as_deref(), token(&headers, true).as_deref()), (Some("t1"), Some("t2")));
        assert_eq!(token(&HeaderMap::new(), true), None);
    }
}
