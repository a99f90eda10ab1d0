//! How an endpoint is called: what a check of awty_http carries in its `args`.
//!
//! Invariant: what is not said has its default; what is not known is refused.

use super::range::Ranges;
use crate::duration::Length;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The largest body.
pub const LARGEST_BODY: usize = 256 * 1024;
const SHORTEST_TIMEOUT: Length = Length::millis(100);
const LONGEST_TIMEOUT: Length = Length::seconds(15 * 60);
const LONGEST_CONNECT: Length = Length::seconds(5);

/// The methods that an endpoint may be called with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs)] // HTTP's own words
pub enum Method {
    #[default]
    Post,
    Get,
    Head,
    Put,
    Patch,
    Delete,
}

impl Method {
    /// As hyper knows it.
    pub const fn hyper(self) -> hyper::Method {
        match self {
            Method::Post => hyper::Method::POST,
            Method::Get => hyper::Method::GET,
            Method::Head => hyper::Method::HEAD,
            Method::Put => hyper::Method::PUT,
            Method::Patch => hyper::Method::PATCH,
            Method::Delete => hyper::Method::DELETE,
        }
    }
}

/// When to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retries {
    /// Attempts of one occurrence, with the first.
    pub max_attempts: u32,
    /// The wait after the first failure; it doubles.
    pub first_delay: Length,
    /// No wait is longer.
    pub max_delay: Length,
}

impl Default for Retries {
    fn default() -> Self {
        Retries { max_attempts: 3, first_delay: Length::seconds(10), max_delay: Length::seconds(600) }
    }
}

/// How to call; the fields are those of a schedule in the API.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Definition {
    /// POST if nothing else is said.
    pub method: Method,
    /// Headers of the user.
    pub headers: BTreeMap<String, String>,
    /// JSON that is sent.
    #[serde(deserialize_with = "present")]
    pub body: Option<Value>,
    /// Text that is sent.
    pub body_text: Option<String>,
    /// Bytes that are sent.
    pub body_base64: Option<String>,
    /// Of the whole call; none: the gateway's.
    pub timeout: Option<Length>,
    /// Of TCP and TLS.
    pub connect_timeout: Option<Length>,
    /// When to try again.
    pub retries: Retries,
    /// A call that would be later is not made.
    pub max_lateness: Option<Length>,
    /// Statuses that are a success.
    pub success: Ranges,
    /// Whether the call is signed.
    pub sign: bool,
    /// Whether answers of successful calls are kept.
    pub keep_response: bool,
}

impl Default for Definition {
    fn default() -> Self {
        Definition {
            method: Method::default(),
            headers: BTreeMap::new(),
            body: None,
            body_text: None,
            body_base64: None,
            timeout: None,
            connect_timeout: None,
            retries: Retries::default(),
            max_lateness: None,
            success: Ranges::default(),
            sign: true,
            keep_response: false,
        }
    }
}

/// `"body": null` is a body, and no body at all is none.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Definition {
    /// Of a check's `args`; none: all defaults.
    pub fn of_args(args: Option<&Value>) -> Result<Self, String> {
        let Some(args) = args else { return Ok(Definition::default()) };
        if !args.is_object() {
            return Err("args is no JSON object".into());
        }
        let definition = Definition::deserialize(args).map_err(|error| error.to_string())?;
        definition.check()?;
        Ok(definition)
    }

    fn check(&self) -> Result<(), String> {
        let bodies = [self.body.is_some(), self.body_text.is_some(), self.body_base64.is_some()];
        if bodies.iter().filter(|given| **given).count() > 1 {
            return Err("body, body_text and body_base64 exclude one another".into());
        }
        let timeout = self.timeout.unwrap_or(Length::seconds(30));
        if !(SHORTEST_TIMEOUT..=LONGEST_TIMEOUT).contains(&timeout) {
            return Err(format!("timeout is {timeout}; write {SHORTEST_TIMEOUT} to {LONGEST_TIMEOUT}"));
        }
        if !(1..=1_000).contains(&self.retries.max_attempts) {
            return Err("retries.max_attempts lies between 1 and 1000".into());
        }
        for name in self.headers.keys() {
            super::request::user_header(name)?;
        }
        self.payload().map(drop)
    }

    /// For TCP and TLS, 5 s at most.
    pub fn connect_timeout(&self) -> Length {
        self.connect_timeout.unwrap_or(LONGEST_CONNECT).min(LONGEST_CONNECT)
    }

    /// The body of the user and its content type, if there is one.
    pub fn payload(&self) -> Result<Option<(Bytes, &'static str)>, String> {
        let payload = if let Some(json) = &self.body {
            (Bytes::from(json.to_string()), "application/json")
        } else if let Some(text) = &self.body_text {
            (Bytes::from(text.clone()), "text/plain; charset=utf-8")
        } else if let Some(text) = &self.body_base64 {
            let bytes = STANDARD.decode(text).map_err(|error| format!("body_base64: {error}"))?;
            (Bytes::from(bytes), "application/octet-stream")
        } else {
            return Ok(None);
        };
        if payload.0.len() > LARGEST_BODY {
            return Err(format!("the body has {} bytes; write {LARGEST_BODY} at most", payload.0.len()));
        }
        Ok(Some(payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(args: Value) -> String {
        Definition::of_args(Some(&args)).unwrap_err()
    }

    #[test]
    fn nothing_said_is_all_defaults() {
        assert_eq!(Definition::of_args(None).unwrap(), Definition::default());
        assert_eq!(Definition::of_args(Some(&json!({}))).unwrap(), Definition::default());
    }

    #[test]
    fn what_is_said_is_read() {
        let args = json!({"method": "PUT", "headers": {"X-A": "b"}, "body": {"a": 1}, "timeout": "1 min", "success": "200,202",
            "retries": {"max_attempts": 5}, "sign": false});
        let definition = Definition::of_args(Some(&args)).unwrap();
        assert_eq!(definition.method, Method::Put);
        assert_eq!(definition.timeout, Some(Length::seconds(60)));
        assert_eq!((definition.retries.max_attempts, definition.retries.first_delay), (5, Length::seconds(10)));
        assert_eq!(definition.payload().unwrap().unwrap(), (Bytes::from_static(b"{\"a\":1}"), "application/json"));
    }

    #[test]
    fn a_body_of_null_is_a_body() {
        let payload =
            |args: Value| Definition::of_args(Some(&args)).unwrap().payload().unwrap().map(|(bytes, _)| bytes);
        assert_eq!(payload(json!({"body": null})), Some(Bytes::from_static(b"null")));
        assert_eq!(payload(json!({})), None);
        assert_eq!(payload(json!({"body_base64": "AAE="})), Some(Bytes::from_static(&[0, 1])));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(refused(json!({"methode": "GET"})).contains("methode"));
        assert!(refused(json!({"method": "CONNECT"})).contains("CONNECT"));
        assert!(refused(json!({"body": 1, "body_text": "1"})).contains("exclude"));
        assert!(refused(json!({"timeout": "20 min"})).contains("15m"));
        assert!(refused(json!({"timeout": "10000"})).contains("of what"));
        assert!(refused(json!({"retries": {"max_attempts": 0}})).contains("between"));
        assert!(refused(json!({"headers": {"Host": "x"}})).contains("Host"));
        assert!(refused(json!({"success": "600"})).contains("status"));
        assert!(refused(json!({"body_text": "a".repeat(LARGEST_BODY + 1)})).contains("at most"));
        assert!(refused(json!([])).contains("object"));
    }
}
