//! A schedule as a client writes it becomes the arguments of `awty_http.schedule`. Pure.
//!
//! Invariant: every field that does not fit is named, with what to write instead; an unknown field is one of them.

use super::problem::Fault;
use crate::db::schedules::Wanted;
use crate::deliver::range::Ranges;
use crate::deliver::request::user_header;
use crate::duration::{self, Length};
use crate::uri::Endpoint;
use serde_json::{Map, Value};

/// Between which lengths a period lies.
#[derive(Clone, Copy, Debug)]
pub struct Periods {
    /// The shortest.
    pub min: Length,
    /// The longest.
    pub max: Length,
}

/// What is wrong with a whole input.
#[derive(Debug)]
pub enum Refusal {
    /// These fields do not fit.
    Fields(Vec<Fault>),
    /// The URI cannot be one.
    Uri(Fault),
    /// The period is out of range.
    Period(Fault),
}

/// Takes fields out of an object and gathers what is wrong.
struct Reader {
    fields: Map<String, Value>,
    faults: Vec<Fault>,
}

impl Reader {
    fn fault(&mut self, name: &str, reason: impl Into<String>) {
        self.faults.push(Fault { pointer: format!("/{name}"), reason: reason.into() });
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.fields.remove(name).filter(|value| !value.is_null())
    }

    fn text(&mut self, name: &str) -> Option<String> {
        match self.take(name)? {
            Value::String(text) => Some(text),
            _ => {
                self.fault(name, "is a text");
                None
            }
        }
    }

    fn switch(&mut self, name: &str) -> Option<bool> {
        let value = self.take(name)?;
        if !value.is_boolean() {
            self.fault(name, "is true or false");
        }
        value.as_bool()
    }

    fn length(&mut self, name: &str) -> Option<Length> {
        let text = match self.take(name)? {
            Value::String(text) => text,
            other => other.to_string(),
        };
        duration::parse(&text).map_err(|why| self.fault(name, why)).ok()
    }

    fn interval(&mut self, name: &str) -> Option<String> {
        self.length(name).map(interval)
    }

    fn time(&mut self, name: &str) -> Option<String> {
        let text = self.text(name)?;
        if chrono::DateTime::parse_from_rfc3339(&text).is_err() {
            self.fault(name, "is no time; write for example 2027-01-15T08:00:00Z");
        }
        Some(text)
    }
}

/// As PostgreSQL reads it.
fn interval(length: Length) -> String {
    format!("{} milliseconds", length.as_millis())
}

/// Reads a schedule. `uri` is what the address of the request says, if it does.
pub fn wanted(fields: Map<String, Value>, uri: Option<String>, periods: Periods) -> Result<Wanted, Refusal> {
    let mut reader = Reader { fields, faults: Vec::new() };
    let said = reader.text("uri");
    if let (Some(said), Some(uri)) = (&said, &uri)
        && said != uri
    {
        reader.fault("uri", "is another one than that of the request; leave it out");
    }
    let Some(text) = uri.or(said) else {
        let reason = "is missing; write for example https://api.example.com/tick".into();
        return Err(Refusal::Fields(vec![Fault { pointer: "/uri".into(), reason }]));
    };
    let endpoint = Endpoint::parse(&text).map_err(|why| Refusal::Uri(Fault { pointer: "/uri".into(), reason: why }))?;
    let every = reader.length("every");
    if let Some(every) = every.filter(|every| !(periods.min..=periods.max).contains(every)) {
        let reason = format!("is {every}; write {} to {}", periods.min, periods.max);
        return Err(Refusal::Period(Fault { pointer: "/every".into(), reason }));
    }
    let mut wanted = Wanted {
        uri: endpoint.as_str().to_owned(),
        every: every.map(interval),
        cron: reader.text("cron"),
        zone: reader.text("zone"),
        at: reader.time("at"),
        after: reader.interval("after"),
        starts: reader.time("starts"),
        ends: reader.time("ends"),
        jitter: reader.interval("jitter"),
        catch_up: reader.interval("catch_up"),
        method: reader.text("method"),
        body: reader.fields.remove("body"),
        body_text: reader.text("body_text"),
        body_base64: reader.text("body_base64"),
        timeout: reader.interval("timeout"),
        connect_timeout: reader.interval("connect_timeout"),
        max_lateness: reader.interval("max_lateness"),
        success: reader.text("success"),
        sign: reader.switch("sign"),
        keep_response: reader.switch("keep_response"),
        description: reader.text("description"),
        paused: reader.switch("paused"),
        ..Wanted::default()
    };
    if let Some(Err(why)) = wanted.success.as_deref().map(str::parse::<Ranges>) {
        reader.fault("success", why);
    }
    if [&wanted.every, &wanted.cron, &wanted.at, &wanted.after].iter().filter(|plan| plan.is_some()).count() != 1
        && !reader.faults.iter().any(|fault| matches!(fault.pointer.as_str(), "/every" | "/cron" | "/at" | "/after"))
    {
        reader.fault("every", "or cron, at, after: exactly one of them says when; write for example 15 min");
    }
    headers(&mut reader, &mut wanted);
    retries(&mut reader, &mut wanted);
    labels(&mut reader, &mut wanted);
    let unknown: Vec<String> = reader.fields.keys().cloned().collect();
    unknown.iter().for_each(|name| {
        reader.fault(&name.replace('~', "~0").replace('/', "~1"), "is no field of a schedule; leave it out")
    });
    if reader.faults.is_empty() { Ok(wanted) } else { Err(Refusal::Fields(reader.faults)) }
}

fn headers(reader: &mut Reader, wanted: &mut Wanted) {
    match reader.take("headers") {
        Some(Value::Object(headers)) => {
            for (name, value) in &headers {
                if let Err(why) = user_header(name) {
                    reader.fault("headers", why);
                }
                if !value.is_string() {
                    reader.fault("headers", format!("has {name:?} with something else than a text"));
                }
            }
            wanted.headers = Some(Value::Object(headers));
        }
        Some(_) => reader.fault("headers", "is an object of texts"),
        None => {}
    }
}

fn retries(reader: &mut Reader, wanted: &mut Wanted) {
    let fields = match reader.take("retries") {
        Some(Value::Object(fields)) => fields,
        Some(_) => {
            return reader.fault(
                "retries",
                "is an object: {\"max_attempts\": 3, \"first_delay\": \"10 s\", \"max_delay\": \"10 min\"}",
            );
        }
        None => return,
    };
    let mut inner = Reader { fields, faults: Vec::new() };
    let mut retries = Map::new();
    if let Some(attempts) = inner.take("max_attempts") {
        if !attempts.as_u64().is_some_and(|attempts| (1..=1_000).contains(&attempts)) {
            inner.fault("max_attempts", "lies between 1 and 1000");
        }
        retries.insert("max_attempts".into(), attempts);
    }
    for name in ["first_delay", "max_delay"] {
        if let Some(length) = inner.interval(name) {
            retries.insert(name.into(), length.into());
        }
    }
    let unknown: Vec<String> = inner.fields.keys().cloned().collect();
    unknown.iter().for_each(|name| inner.fault(name, "is no field of retries"));
    reader
        .faults
        .extend(inner.faults.into_iter().map(|fault| Fault { pointer: format!("/retries{}", fault.pointer), ..fault }));
    wanted.retries = Some(Value::Object(retries));
}

fn labels(reader: &mut Reader, wanted: &mut Wanted) {
    match reader.take("labels") {
        Some(Value::Array(all)) if all.iter().all(Value::is_string) => {
            wanted.labels = Some(all.iter().filter_map(|label| label.as_str().map(str::to_owned)).collect());
        }
        Some(_) => reader.fault("labels", "is an array of texts"),
        None => {}
    }
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
