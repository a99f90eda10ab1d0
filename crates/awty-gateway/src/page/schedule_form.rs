//! `/schedules/new` and `/schedules/{id}/edit`: the form of a schedule. The API checks the fields, and each error is
//! shown at its field.

use super::answer::{BODY, Called};
use super::fail::{Fail, View};
use super::form::{Form, see};
use super::frame;
use super::parts::{field, string};
use super::visit::Visit;
use super::words::encoded;
use axum::extract::Path;
use axum::http::{Method, StatusCode, header};
use axum::response::IntoResponse;
use maud::{Markup, html};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

const FIELDS: [(&str, &str, &str); 6] = [
    ("uri", "Address", "The endpoint to call, such as https://api.example.com/tick"),
    ("every", "Every", "A length of time, such as 10 min or 1h 30m. Leave it empty for a cron expression."),
    ("cron", "Cron", "Five fields, such as 0 9 * * mon-fri"),
    ("zone", "Time zone", "Of the cron expression, such as Europe/Berlin. Without one, UTC counts."),
    ("timeout", "Timeout", "How long one call may take, such as 30 s"),
    ("description", "Description", "For people"),
];
const METHODS: [&str; 6] = ["POST", "GET", "PUT", "PATCH", "DELETE", "HEAD"];

#[derive(Default)]
struct Filled {
    values: BTreeMap<String, String>,
    errors: BTreeMap<String, String>,
    /// An error that belongs to no single field.
    other: Option<String>,
    version: Option<String>,
}

impl Filled {
    fn of_form(form: &Form) -> Self {
        let names = FIELDS.iter().map(|(name, ..)| *name).chain(["method", "body_text"]);
        let values = names.filter_map(|name| Some((name.to_owned(), form.get(name)?.to_owned()))).collect();
        Filled { values, version: form.get("version").map(str::to_owned), ..Filled::default() }
    }

    fn of_schedule(found: &Called) -> Self {
        let row = &found.json;
        let names = FIELDS.iter().map(|(name, ..)| *name).chain(["method", "body_text"]);
        let values = names.filter_map(|name| Some((name.to_owned(), row[name].as_str()?.to_owned()))).collect();
        Filled { values, version: found.header(header::ETAG).map(str::to_owned), ..Filled::default() }
    }

    fn refused(mut self, fail: Fail) -> Result<Self, Fail> {
        let Fail::Problem(status @ (400 | 409 | 413 | 422), problem) = fail else { return Err(fail) };
        for error in problem["errors"].as_array().into_iter().flatten() {
            let name = string(&error["pointer"]).trim_start_matches('/').to_owned();
            let remedy = error["remedy"].as_str().map(|remedy| format!("; {remedy}")).unwrap_or_default();
            let text = sentence(&format!("{}{remedy}.", string(&error["reason"])));
            if self.is_field(&name) {
                self.errors.insert(name, text);
            } else {
                self.other = Some(format!("{name} {}{remedy}", string(&error["reason"])));
            }
        }
        if status == 409 {
            self.errors.insert("uri".into(), string(&problem["detail"]).to_owned());
        } else if self.errors.is_empty() && self.other.is_none() {
            self.other = Some(string(&problem["detail"]).to_owned());
        }
        Ok(self)
    }

    fn is_field(&self, name: &str) -> bool {
        FIELDS.iter().any(|(known, ..)| *known == name) || name == "body_text"
    }

    fn get(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    fn draw(&self, action: &str, label: &str) -> Markup {
        let error = |name: &str| self.errors.get(name).map(String::as_str);
        html! {
            form.sheet method="post" action=(action) {
                @if let Some(other) = &self.other { p.error role="alert" { (other) } }
                @if let Some(version) = &self.version { input type="hidden" name="version" value=(version); }
                @for (name, label, hint) in FIELDS { (field(label, name, self.get(name), hint, error(name))) }
                div.field {
                    label for="method" { "Method" }
                    select #method name="method" {
                        @for method in METHODS { option value=(method) selected[self.get("method") == method] { (method) } }
                    }
                }
                div.field {
                    label for="body_text" { "Body" }
                    textarea #body_text name="body_text" rows="4" aria-describedby="body-about" { "\n" (self.get("body_text")) }
                    p.about #body-about {
                        @if let Some(error) = error("body_text") { strong.error { (error) } " " }
                        "Text to send. Without a body, the endpoint gets a small JSON with the schedule and the slot."
                    }
                }
                button { (label) }
            }
        }
    }

    fn fields(&self) -> Map<String, Value> {
        self.values.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect()
    }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn view(visit: &Visit, title: &str, action: &str, filled: &Filled, label: &str) -> axum::response::Response {
    let body = html! {
        h1 { (title) }
        (filled.draw(action, label))
    };
    frame::still(visit, title, body)
}

/// Returns a link to the form for a new schedule. The form contains the settings of the schedule `row`, but the URI
/// `uri`.
pub fn for_address(row: &Value, uri: &str) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("uri", uri);
    for name in FIELDS.iter().skip(1).map(|(name, ..)| *name).chain(["method"]) {
        query.append_pair(name, string(&row[name]));
    }
    format!("/schedules/new?{}", query.finish())
}

pub async fn new(visit: Visit) -> View {
    visit.count().await?;
    Ok(view(&visit, "New schedule", "/schedules/new", &Filled::of_form(&visit.query), "Create"))
}

pub async fn create(visit: Visit, form: Form) -> View {
    let filled = Filled::of_form(&form);
    match visit.call(Method::POST, "/v1/schedules", Some(filled.fields().into())).await {
        Ok(made) => Ok(see(&format!("/schedules/{}", encoded(string(&made.json["id"]))))),
        Err(fail) => {
            let filled = filled.refused(fail)?;
            visit.count().await?;
            let view = view(&visit, "New schedule", "/schedules/new", &filled, "Create");
            Ok((StatusCode::UNPROCESSABLE_ENTITY, view).into_response())
        }
    }
}

pub async fn edit(visit: Visit, Path(id): Path<String>) -> View {
    visit.count().await?;
    let place = format!("/schedules/{}", encoded(&id));
    let found = visit.get(&format!("/v1{place}")).await?;
    Ok(view(&visit, "Edit the schedule", &format!("{place}/edit"), &Filled::of_schedule(&found), "Save"))
}

/// Changes only the fields of the form, so that others, such as headers and retries, keep their values.
pub async fn replace(visit: Visit, Path(id): Path<String>, form: Form) -> View {
    let place = format!("/schedules/{}", encoded(&id));
    let found = visit.get(&format!("/v1{place}")).await?;
    let filled = Filled::of_form(&form);
    let refusal = match visit.put(&format!("/v1{place}"), merged(&found.json, &filled), filled.version.as_deref()).await
    {
        Ok(_) => return Ok(see(&place)),
        Err(refusal) => refusal,
    };
    let filled = match refusal {
        Fail::Problem(412, _) => Filled {
            other: Some(
                "This schedule was changed meanwhile. Save again to replace that change with these fields.".into(),
            ),
            version: found.header(header::ETAG).map(str::to_owned),
            ..filled
        },
        refusal => filled.refused(refusal)?,
    };
    visit.count().await?;
    let view = view(&visit, "Edit the schedule", &format!("{place}/edit"), &filled, "Save");
    Ok((StatusCode::UNPROCESSABLE_ENTITY, view).into_response())
}

fn merged(row: &Value, filled: &Filled) -> String {
    let mut fields = row.as_object().cloned().unwrap_or_default();
    for (name, ..) in FIELDS {
        fields.remove(name);
    }
    if filled.values.contains_key("every") || filled.values.contains_key("cron") {
        for name in ["at", "after"] {
            fields.remove(name);
        }
    }
    let mut body = fields.remove(BODY);
    // The form cannot show a body that is not text, so the stored body is kept unless the person types a new body.
    if row["body_text"].is_string() || filled.values.contains_key("body_text") {
        body = None;
        for name in ["body_text", "body_base64"] {
            fields.remove(name);
        }
    }
    fields.extend(filled.fields());
    let mut text = Value::Object(fields).to_string();
    if let Some(body) = body.as_ref().and_then(Value::as_str) {
        text.insert_str(1, &format!("\"body\":{body},"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_error_stands_at_its_field_and_the_text_stays() {
        let problem = json!({"detail": "x", "errors": [{"pointer": "/every", "reason": "has no unit", "remedy": "write 10 s"},
            {"pointer": "/retries/max_attempts", "reason": "is out of range", "remedy": null}]});
        let filled = Filled::of_form(&Form::of(b"uri=https%3A%2F%2Fa.example%2F&every=10"));
        let filled = filled.refused(Fail::Problem(422, problem)).unwrap();
        let page = filled.draw("/schedules/new", "Create").into_string();
        assert!(
            page.contains("Has no unit; write 10 s.")
                && page.contains("value=\"10\"")
                && page.contains("retries/max_attempts is out of range"),
            "{page}"
        );
        assert!(Filled::default().refused(Fail::Problem(403, json!({}))).is_err());
    }
}
