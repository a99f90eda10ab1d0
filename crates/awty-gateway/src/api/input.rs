//! Turns a schedule as a client writes it into the arguments of `awty_http.schedule`. Pure.
//!
//! Invariant: every field that does not fit, unknown ones included, is named with the value to write instead.

use super::fields::{Fields, interval};
use super::problem::Fault;
use crate::db::changes::Wanted;
use crate::deliver::range::Ranges;
use crate::duration::Length;
use awty_core::uri::Uri;
use serde_json::{Map, Value};

/// Bounds of a period.
#[derive(Clone, Copy, Debug)]
pub struct Periods {
    pub min: Length,
    pub max: Length,
    /// `min` is awty's slot, and not the gateway's setting.
    pub is_slot: bool,
}

/// Why an input is refused.
#[derive(Debug)]
pub enum Refusal {
    /// Faults of single fields.
    Fields(Vec<Fault>),
    /// The URI is malformed.
    Uri(Fault),
    Period(Fault),
}

/// Reads a schedule. `uri` is the URI in the address of the request, if it has one.
pub fn wanted(fields: Map<String, Value>, uri: Option<String>, periods: Periods) -> Result<Wanted, Refusal> {
    let mut reader = Fields::of(fields);
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
    let endpoint =
        Uri::parse(&text).map_err(|why| Refusal::Uri(Fault { pointer: "/uri".into(), reason: why.to_string() }))?;
    let every = reader.length("every");
    if let Some(every) = every.filter(|every| !(periods.min..=periods.max).contains(every)) {
        let slots =
            if periods.is_slot && every < periods.min { ", or set awty.slot to 1s in the database" } else { "" };
        let reason = format!("is {every}; write {} to {}{slots}", periods.min, periods.max);
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
        body: reader.json("body"),
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
        reader.fault("every", "or cron, at, after: exactly one of them has to say when; write for example 15 min");
    }
    wanted.headers = reader.headers();
    retries(&mut reader, &mut wanted);
    labels(&mut reader, &mut wanted);
    reader.end().map(|()| wanted).map_err(Refusal::Fields)
}

fn retries(reader: &mut Fields, wanted: &mut Wanted) {
    let fields = match reader.take("retries") {
        Some(Value::Object(fields)) => fields,
        Some(_) => {
            return reader.fault(
                "retries",
                "is no object; write for example {\"max_attempts\": 3, \"first_delay\": \"10 s\", \"max_delay\": \"10 min\"}",
            );
        }
        None => return,
    };
    let mut inner = Fields::of(fields);
    let mut retries = Map::new();
    if let Some(attempts) = inner.whole("max_attempts", 1..=1_000) {
        retries.insert("max_attempts".into(), attempts.into());
    }
    for name in ["first_delay", "max_delay"] {
        if let Some(length) = inner.interval(name) {
            retries.insert(name.into(), length.into());
        }
    }
    let faults = inner.end().err().unwrap_or_default().into_iter();
    reader.faults.extend(faults.map(|fault| Fault { pointer: format!("/retries{}", fault.pointer), ..fault }));
    wanted.retries = Some(Value::Object(retries));
}

fn labels(reader: &mut Fields, wanted: &mut Wanted) {
    match reader.take("labels") {
        Some(Value::Array(all)) if all.iter().all(Value::is_string) => {
            wanted.labels = Some(all.iter().filter_map(|label| label.as_str().map(str::to_owned)).collect());
        }
        Some(_) => reader.fault("labels", "is no array of texts; write for example [\"shop\"]"),
        None => {}
    }
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
