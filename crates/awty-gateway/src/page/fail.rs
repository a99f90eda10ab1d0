//! Turns refusals into views.

use super::document;
use crate::api::{Problem, shortened};
use crate::db::Trouble;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::html;
use serde_json::Value;

#[derive(Debug)]
pub enum Fail {
    /// No person is signed in. The string is the path that the browser opens after the sign-in.
    SignIn(String),
    /// A link on another site opened the page, so the browser sent no cookie. The browser sends the cookie when the
    /// page reloads itself.
    Again,
    Problem(u16, Value),
    Refused(u16, String),
}

pub type View = Result<Response, Fail>;

impl From<Problem> for Fail {
    fn from(problem: Problem) -> Self {
        Fail::Problem(problem.status().as_u16(), problem.body())
    }
}

impl From<Trouble> for Fail {
    fn from(trouble: Trouble) -> Self {
        Problem::from(trouble).into()
    }
}

impl Fail {
    pub fn not_found() -> Self {
        Fail::Refused(404, "It does not exist, or this role may not see it.".into())
    }
}

impl IntoResponse for Fail {
    fn into_response(self) -> Response {
        let (status, title, detail) = match self {
            Fail::SignIn(next) => {
                let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("next", &next).finish();
                let place = if next == "/" { "/login".to_owned() } else { format!("/login?{query}") };
                return (StatusCode::SEE_OTHER, [(header::LOCATION, place)]).into_response();
            }
            Fail::Again => {
                let head = html! { meta http-equiv="refresh" content="0"; };
                return document::bare("awty", head, html! { p { "One moment." } }).into_response();
            }
            Fail::Problem(status, problem) => {
                let text = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
                (status, text("title"), text("detail"))
            }
            Fail::Refused(status, detail) => (status, title(status).to_owned(), detail),
        };
        let right = super::rights::command(&detail);
        let detail = shortened(detail);
        let title = if right.is_some() { "A right is missing".to_owned() } else { title };
        let body = html! {
            h1 { (title) }
            @if !detail.starts_with(&title) { p { (detail) } }
            @if let Some(right) = &right {
                p { "The role that has signed in, or the gateway, lacks a right. As the role that may give it:" }
                (super::parts::command(right))
            }
            @if status == 503 {
                p { "Calls and checks that are due wait, and nothing is lost. The log of the gateway has the reason. To see whether the server accepts connections:" }
                (super::parts::command("pg_isready -h HOST -d DATABASE"))
            }
            p { a href="/" { "Back to the first page" } }
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, document::bare(&format!("{title} · awty"), html! {}, body)).into_response()
    }
}

fn title(status: u16) -> &'static str {
    match status {
        400 => "The request cannot be read",
        403 => "This is not permitted",
        404 => "Nothing was found",
        422 => "A value is wrong",
        504 => "The database took too long",
        _ => "The request was refused",
    }
}
