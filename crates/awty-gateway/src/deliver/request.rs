//! Invariant: only the gateway sets the headers by which receivers detect duplicates and forgeries.

use super::definition::{Definition, hyper_method};
use super::sign::{signature, signing_key};
use super::unmade::Unmade;
use super::user_header::user_header;
use crate::duration::Length;
use crate::net::report::Call;
use awty_core::http::Method;
use awty_core::uri::{self, Uri};
use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    pub job: String,
    /// The tenant's ids and signing keys are derived from this random number.
    pub tenant: i64,
    pub entity_name: String,
    /// Path and query of the URI. If `awty_http.send()` made the call, `#` and the call's key are appended.
    pub entity_key: String,
    /// One more than the number of failed attempts in a row.
    pub attempt: u32,
    pub check_count: i32,
    pub first_check_at: DateTime<Utc>,
    pub next_check_at: DateTime<Utc>,
    /// All attempts of a call have the same idempotency key.
    pub key: String,
}

pub struct RequestContext<'a> {
    pub master_key: &'a [u8],
    pub timeout: Length,
    pub now: DateTime<Utc>,
    pub secret: &'a LookUp<'a>,
}

pub type LookUp<'a> = dyn Fn(&str) -> Result<String, Unmade> + Sync + 'a;

/// Maximum number of headers. The HTTP library's `HeaderMap` panics above 24,576 headers.
pub const MOST_HEADERS: usize = 1_000;

pub const REFERENCE: &str = "{{secret:";
pub const MOST_REFERENCES: usize = 16;
/// Maximum number of bytes, including the values of secrets.
pub const LARGEST_HEADERS: usize = 64 * 1024;

fn too_large() -> Unmade {
    format!("the headers have more than {LARGEST_HEADERS} bytes").into()
}

struct Secrets<'a> {
    look_up: &'a LookUp<'a>,
    known: BTreeMap<String, String>,
}

impl Secrets<'_> {
    fn get(&mut self, name: &str) -> Result<&str, Unmade> {
        if !self.known.contains_key(name) {
            self.known.insert(name.to_owned(), (self.look_up)(name)?);
        }
        Ok(&self.known[name])
    }

    fn filled(&mut self, value: &str, most: usize) -> Result<String, Unmade> {
        let (mut out, mut rest) = (String::new(), value);
        while let Some((before, after)) = rest.split_once(REFERENCE) {
            let end = || "{{secret: has no end; write {{secret:NAME}}".to_owned();
            let (name, after) = after.split_once("}}").ok_or_else(end)?;
            out.push_str(before);
            out.push_str(self.get(name)?);
            rest = after;
            if out.len() > most {
                return Err(too_large());
            }
        }
        out.push_str(rest);
        if out.len() > most { Err(too_large()) } else { Ok(out) }
    }
}

pub fn user_headers(texts: &BTreeMap<String, String>, secret: &LookUp<'_>) -> Result<HeaderMap, Unmade> {
    if texts.len() > MOST_HEADERS {
        return Err(format!("there are more than {MOST_HEADERS} headers").into());
    }
    let references: usize = texts.values().map(|value| value.matches(REFERENCE).count()).sum();
    if references > MOST_REFERENCES {
        return Err(format!("there are more than {MOST_REFERENCES} references to secrets").into());
    }
    let mut secrets = Secrets { look_up: secret, known: BTreeMap::new() };
    let (mut headers, mut left) = (HeaderMap::new(), LARGEST_HEADERS);
    for (name, text) in texts {
        let value = secrets.filled(text, left.saturating_sub(name.len()))?;
        left = left.checked_sub(name.len() + value.len()).ok_or_else(too_large)?;
        let mut value = HeaderValue::from_str(&value)
            .map_err(|_| format!("the header {name} has a value that HTTP does not take"))?;
        value.set_sensitive(true);
        headers.insert(user_header(name)?, value);
    }
    Ok(headers)
}

/// Refuses a target that is not the URI's origin, because the call would escape the origin's limits, blocks and circuit
/// breaker.
fn endpoint(delivery: &Delivery) -> Result<Uri, Unmade> {
    let endpoint =
        Uri::of_lease(&delivery.entity_name, &delivery.entity_key).map_err(|why| format!("the URI {why}"))?;
    match endpoint.entity_name() {
        name if name == delivery.entity_name => Ok(endpoint),
        name => Err(format!("the entity name {:?} is no target; write {name}", delivery.entity_name).into()),
    }
}

pub fn request(delivery: &Delivery, definition: &mut Definition, context: &RequestContext<'_>) -> Result<Call, Unmade> {
    let endpoint = endpoint(delivery)?;
    if delivery.tenant == 0 {
        return Err("the tenant was dropped".to_owned().into());
    }
    let path = delivery.entity_key.split('#').next().unwrap_or_default();
    let id = uri::id(delivery.tenant, format!("{}{path}", delivery.entity_name));
    let mut headers = user_headers(&definition.headers, context.secret)?;
    definition.headers.clear(); // memory holds the headers only once during the call
    let bodyless = matches!(definition.method, Method::Get | Method::Head);
    let payload = match definition.take_payload()? {
        Some((body, kind)) => Some((body, kind)),
        None if bodyless => None,
        None => Some((own_body(delivery, &id), "application/json")),
    };
    let body = payload.as_ref().map_or_else(Bytes::new, |(body, _)| body.clone());
    let mut set = |name: &'static str, value: &str| match HeaderValue::from_str(value) {
        Ok(value) => drop(headers.insert(HeaderName::from_static(name), value)),
        Err(_) => tracing::error!(header = name, "a header of the gateway's own does not fit"),
    };
    if let Some((_, kind)) = &payload {
        set("content-type", kind);
    }
    let lateness = (context.now - delivery.next_check_at).num_milliseconds().max(0);
    set("user-agent", concat!("awty-gateway/", env!("CARGO_PKG_VERSION")));
    set("webhook-id", &delivery.key);
    set("idempotency-key", &format!("\"{}\"", delivery.key));
    set("webhook-timestamp", &context.now.timestamp().to_string());
    set("awty-schedule", &id);
    set("awty-slot", &time(delivery.first_check_at));
    set("awty-attempt", &format!("{}/{}", delivery.attempt, definition.retries.max_attempts));
    set("awty-count", &delivery.check_count.to_string());
    set("awty-lateness", &format!("{}.{:03}", lateness / 1_000, lateness % 1_000));
    if definition.sign {
        let key = signing_key(context.master_key, delivery.tenant, &id);
        set("webhook-signature", &signature(&key, &delivery.key, context.now.timestamp(), &body));
    }
    Ok(Call {
        tenant: delivery.tenant,
        endpoint,
        method: hyper_method(definition.method),
        headers,
        body,
        timeout: definition.timeout.unwrap_or(context.timeout).std(),
        connect_timeout: definition.connect_timeout().std(),
    })
}

fn own_body(delivery: &Delivery, id: &str) -> Bytes {
    let body = json!({"schedule": id, "slot": time(delivery.first_check_at), "attempt": delivery.attempt, "key": delivery.key});
    Bytes::from(body.to_string())
}

pub fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
