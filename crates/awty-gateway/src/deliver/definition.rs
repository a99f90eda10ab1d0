//! How an endpoint is called: what a check of awty_http carries in its `args`.
//!
//! Invariant: what is not said has its default; what is not known is refused.

use super::range::Ranges;
use crate::duration::Length;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
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
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Definition {
    /// POST if nothing else is said.
    pub method: Method,
    /// Headers of the user.
    pub headers: BTreeMap<String, String>,
    /// JSON that is sent, to the letter.
    #[serde(deserialize_with = "present")]
    pub body: Option<Box<RawValue>>,
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
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

impl Definition {
    /// Of a check's `args`; none: all defaults.
    pub fn of_args(args: Option<&RawValue>) -> Result<Self, String> {
        let Some(args) = args else { return Ok(Definition::default()) };
        if !args.get().starts_with('{') {
            return Err("args is no JSON object".into());
        }
        let definition: Definition = serde_json::from_str(args.get()).map_err(|error| error.to_string())?;
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
        let length = self.body.as_ref().map(|json| json.get().len()).or(self.body_text.as_ref().map(String::len));
        match length.map_or_else(|| Ok(self.bytes()?.map_or(0, |bytes| bytes.len())), Ok::<_, String>)? {
            length if length > LARGEST_BODY => {
                Err(format!("the body has {length} bytes; write {LARGEST_BODY} at most"))
            }
            _ => Ok(()),
        }
    }

    fn bytes(&self) -> Result<Option<Vec<u8>>, String> {
        let bytes = self
            .body_base64
            .as_ref()
            .map(|text| STANDARD.decode(text.split_ascii_whitespace().collect::<String>()))
            .transpose();
        bytes.map_err(|error| format!("body_base64: {error}"))
    }

    /// For TCP and TLS, 5 s at most.
    pub fn connect_timeout(&self) -> Length {
        self.connect_timeout.unwrap_or(LONGEST_CONNECT).min(LONGEST_CONNECT)
    }

    /// Takes out the body of the user with its content type, if there is one: it is not kept twice while the call lasts.
    pub fn take_payload(&mut self) -> Result<Option<(Bytes, &'static str)>, String> {
        let bytes = self.bytes()?;
        self.body_base64 = None;
        let json = self.body.take().map(|json| (Bytes::from(String::from(Box::<str>::from(json))), "application/json"));
        let text = self.body_text.take().map(|text| (Bytes::from(text), "text/plain; charset=utf-8"));
        Ok(json.or(text).or(bytes.map(|bytes| (Bytes::from(bytes), "application/octet-stream"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(args: &str) -> Result<Definition, String> {
        Definition::of_args(Some(&RawValue::from_string(args.to_owned()).unwrap()))
    }

    fn refused(args: Value) -> String {
        read(&args.to_string()).unwrap_err()
    }

    #[test]
    fn nothing_said_is_all_defaults() {
        let default = format!("{:?}", Definition::default());
        assert_eq!(format!("{:?}", Definition::of_args(None).unwrap()), default);
        assert_eq!(format!("{:?}", read("{}").unwrap()), default);
    }

    #[test]
    fn what_is_said_is_read() {
        let args = json!({"method": "PUT", "headers": {"X-A": "b"}, "body": {"a": 1}, "timeout": "1 min", "success": "200,202",
            "retries": {"max_attempts": 5}, "sign": false});
        let mut definition = read(&args.to_string()).unwrap();
        assert_eq!(definition.method, Method::Put);
        assert_eq!(definition.timeout, Some(Length::seconds(60)));
        assert_eq!((definition.retries.max_attempts, definition.retries.first_delay), (5, Length::seconds(10)));
        assert_eq!(definition.take_payload().unwrap().unwrap(), (Bytes::from_static(b"{\"a\":1}"), "application/json"));
    }

    #[test]
    fn a_body_of_null_is_a_body() {
        let payload = |args: Value| read(&args.to_string()).unwrap().take_payload().unwrap().map(|(bytes, _)| bytes);
        assert_eq!(payload(json!({"body": null})), Some(Bytes::from_static(b"null")));
        assert_eq!(payload(json!({})), None);
        assert_eq!(payload(json!({"body_base64": "AA\nE=\r\n"})), Some(Bytes::from_static(&[0, 1])));
    }

    #[test]
    fn a_body_leaves_to_the_letter_however_large_its_numbers_and_deep_its_lists() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        for body in ["1e400", "12345678901234567890123", "{\"b\": 1, \"a\": 2.50}", &deep] {
            let mut definition = read(&format!("{{\"body\": {body}}}")).unwrap();
            assert_eq!(definition.take_payload().unwrap().unwrap().0, body.as_bytes());
            assert!(definition.take_payload().unwrap().is_none(), "kept twice");
        }
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
