use super::fail::Fail;
use super::state::{Page, Visitor};
use crate::api::body::whole;
use crate::duration;
use axum::RequestExt;
use axum::body::HttpBody;
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::collections::BTreeMap;
use std::sync::Arc;

pub const LARGEST_FORM: usize = 64 * 1024;
/// A form may be larger than a schedule's body (at most 256 KiB), because browsers send most bytes outside ASCII as
/// three characters.
pub const LARGEST_SCHEDULE: usize = LARGEST_FORM + 3 * 256 * 1024;

/// No form of the page has as many fields. Thousands of short fields would take thirty times the memory of their text.
const MOST_FIELDS: usize = 100;

/// Fields whose leading and trailing spaces are kept, because `'42 '` and `'42'` are the keys of two rows.
const EXACT: [&str; 4] = ["name", "key", "job", "body_text"];

/// An empty field of a form or query counts as absent.
#[derive(Clone, Default)]
pub struct Form {
    fields: BTreeMap<String, String>,
}

impl Form {
    pub fn of(text: &[u8]) -> Self {
        let fields = url::form_urlencoded::parse(text).into_owned().take(MOST_FIELDS).map(|(name, value)| {
            let value = value.replace("\r\n", "\n");
            let value = if EXACT.contains(&name.as_str()) { value } else { value.trim().to_owned() };
            (name, value)
        });
        let fields = fields.filter(|(_, value)| !value.is_empty() && !value.contains('\0')).collect();
        Form { fields }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    pub fn need(&self, name: &str) -> Result<&str, Fail> {
        self.get(name).ok_or_else(|| Fail::Refused(422, format!("The field {name} is empty.")))
    }

    pub fn interval(&self, name: &str) -> Result<Option<String>, Fail> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let length = duration::parse(text).map_err(|why| Fail::Refused(422, format!("“{text}” {why}")))?;
        Ok(Some(format!("{} milliseconds", length.as_millis())))
    }

    pub fn back(&self, otherwise: &str) -> Response {
        let place = self.get("back").filter(|place| is_local(place)).unwrap_or(otherwise);
        see(place)
    }
}

/// Before its reader has signed in, the page that repeats a place uses memory that no role has room for.
const LONGEST_PLACE: usize = 2048;

/// An address that begins with two slashes, or a slash and a backslash, leads to another site.
pub fn is_local(place: &str) -> bool {
    place.len() <= LONGEST_PLACE
        && place.starts_with('/')
        && !place.starts_with("//")
        && !place.contains(['\\', '\r', '\n', '\t'])
}

pub fn see(place: &str) -> Response {
    match header::HeaderValue::from_str(place) {
        Ok(place) => (StatusCode::SEE_OTHER, [(header::LOCATION, place)]).into_response(),
        Err(_) => see("/"),
    }
}

impl FromRequest<Arc<Page>> for Form {
    type Rejection = Fail;

    /// Reserves memory for a large form, within the signed-in role's limit, until the answer counts instead.
    async fn from_request(request: Request, page: &Arc<Page>) -> Result<Self, Fail> {
        let visitor = request.extensions().get::<Visitor>().cloned().unwrap_or_default();
        let length = request.body().size_hint().upper();
        if let Some(room) = page.api.form(visitor.role.role(), length, LARGEST_SCHEDULE).await? {
            visitor.form.get_or_init(|| room);
        }
        let refusal = |status: StatusCode| {
            let why = if status == StatusCode::PAYLOAD_TOO_LARGE { "is too large" } else { "did not arrive" };
            Fail::Refused(status.as_u16(), format!("The form {why}."))
        };
        Ok(Form::of(&whole(request.with_limited_body().into_body()).await.map_err(refusal)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_of_this_page_is_followed() {
        assert!(is_local("/alerts?x=1") && is_local("/"));
        assert!(!is_local(&format!("/{}", "x".repeat(LONGEST_PLACE))));
        for place in ["//evil.example", "/\\evil.example", "https://evil.example", "", "alerts", "/\t/evil.example"] {
            assert!(!is_local(place), "{place}");
        }
    }

    #[test]
    fn a_form_has_a_hundred_fields_at_most() {
        let text: Vec<String> = (0..1_000).map(|n| format!("f{n}=1")).collect();
        assert_eq!(Form::of(text.join("&").as_bytes()).fields.len(), MOST_FIELDS);
    }

    #[test]
    fn a_form_is_read() {
        let form = Form::of(b"name=orders&key=a%20%26b&note=+&back=//evil.example");
        assert_eq!((form.get("name"), form.get("key"), form.get("note")), (Some("orders"), Some("a &b"), None));
        assert_eq!(form.back("/alerts").headers()[header::LOCATION], "/alerts");
        assert!(form.need("job").is_err());
        let exact = Form::of(b"key=42+&body_text=+a%0D%0Ab%0A");
        assert_eq!((exact.get("key"), exact.get("body_text")), (Some("42 "), Some(" a\nb\n")));
        assert_eq!(Form::of(b"until=2+h").interval("until").unwrap().as_deref(), Some("7200000 milliseconds"));
        assert!(Form::of(b"until=2").interval("until").is_err());
    }
}
