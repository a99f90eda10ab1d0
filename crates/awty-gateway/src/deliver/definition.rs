//! Reads an HTTP call from the `args` of a check.

use crate::duration::Length;
use awty_core::http::{Method, Statuses};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

pub const LARGEST_BODY: usize = 256 * 1024;
const SHORTEST_TIMEOUT: Length = Length::millis(100);
const LONGEST_TIMEOUT: Length = Length::seconds(15 * 60);
const LONGEST_CONNECT: Length = Length::seconds(5);

pub const fn hyper_method(method: Method) -> hyper::Method {
    match method {
        Method::Post => hyper::Method::POST,
        Method::Get => hyper::Method::GET,
        Method::Head => hyper::Method::HEAD,
        Method::Put => hyper::Method::PUT,
        Method::Patch => hyper::Method::PATCH,
        Method::Delete => hyper::Method::DELETE,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retries {
    pub max_attempts: u32,
    pub first_delay: Length,
    pub max_delay: Length,
}

impl Default for Retries {
    fn default() -> Self {
        Retries { max_attempts: 3, first_delay: Length::seconds(10), max_delay: Length::seconds(600) }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Definition {
    pub method: Method,
    pub headers: BTreeMap<String, String>,
    #[serde(deserialize_with = "present")]
    pub body: Option<Box<RawValue>>,
    pub body_text: Option<String>,
    pub body_base64: Option<String>,
    /// `None` means the timeout of the gateway's settings.
    pub timeout: Option<Length>,
    pub connect_timeout: Option<Length>,
    pub retries: Retries,
    /// Maximum delay of a call's start. The gateway drops calls that would start later.
    pub max_lateness: Option<Length>,
    pub success: Statuses,
    pub sign: bool,
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
            success: Statuses::default(),
            sign: true,
            keep_response: false,
        }
    }
}

/// A null counts as present, so `"body": null` is a body.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

impl Definition {
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
            super::user_header::user_header(name)?;
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

    pub fn connect_timeout(&self) -> Length {
        self.connect_timeout.unwrap_or(LONGEST_CONNECT).min(LONGEST_CONNECT)
    }

    /// Takes the request body out of the call's definition, so that memory holds only one copy of the body during the
    /// call.
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
        assert!(refused(json!({"timeout": "10000"})).contains("has no unit"));
        assert!(refused(json!({"retries": {"max_attempts": 0}})).contains("between"));
        assert!(refused(json!({"headers": {"Host": "x"}})).contains("Host"));
        assert!(refused(json!({"success": "600"})).contains("status"));
        assert!(refused(json!({"body_text": "a".repeat(LARGEST_BODY + 1)})).contains("at most"));
        assert!(refused(json!([])).contains("object"));
    }
}
