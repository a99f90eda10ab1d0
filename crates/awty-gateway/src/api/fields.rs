//! Invariant: the error for a wrong or unknown field of a request tells the client what to write instead.

use super::number;
use super::problem::{Fault, MAX_FAULTS, Problem, shortened};
use super::shape::{FieldList, Kind, RETRIES};
use crate::db::{Argument, Arguments};
use crate::deliver::user_header::user_header;
use crate::duration::{self, Length};
use awty_core::http::Statuses;
use serde_json::{Map, Value};

pub const HIDDEN: &str = "•••";

pub struct Fields {
    pub left: Map<String, Value>,
    /// At most [`MAX_FAULTS`]
    pub faults: Vec<Fault>,
}

impl Fields {
    pub fn of(left: Map<String, Value>) -> Self {
        Fields { left, faults: Vec::new() }
    }

    pub fn fault(&mut self, name: &str, reason: impl Into<String>) {
        let pointer = shortened(format!("/{}", name.replace('~', "~0").replace('/', "~1")));
        self.add(Fault { pointer, reason: shortened(reason.into()) });
    }

    fn add(&mut self, fault: Fault) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault);
        }
    }

    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name).filter(|value| !value.is_null())
    }

    pub fn text(&mut self, name: &str) -> Option<String> {
        match self.take(name)? {
            Value::String(text) => Some(text),
            _ => {
                self.fault(name, "is not a text; write it in quotes");
                None
            }
        }
    }

    /// Returns `Some(Value::Null)` for a field with the value null.
    pub fn json(&mut self, name: &str) -> Option<Value> {
        let value = self.left.remove(name)?;
        if !number::are_short(&value) {
            self.fault(name, "has a number of more than 1000 characters without its exponent; write it as a text");
        }
        Some(value)
    }

    pub fn switch(&mut self, name: &str) -> Option<bool> {
        let value = self.take(name)?;
        if !value.is_boolean() {
            self.fault(name, "is not a boolean; write true or false");
        }
        value.as_bool()
    }

    pub fn whole(&mut self, name: &str, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
        let number = self.take(name)?.as_i64().filter(|number| range.contains(number));
        if number.is_none() {
            self.fault(name, format!("is out of range; write {} to {}", range.start(), range.end()));
        }
        number
    }

    pub fn length(&mut self, name: &str) -> Option<Length> {
        self.parsed(name, duration::parse)
    }

    fn parsed(&mut self, name: &str, parse: fn(&str) -> Result<Length, String>) -> Option<Length> {
        let text = match self.take(name)? {
            Value::String(text) => text,
            other => other.to_string(),
        };
        parse(&text).map_err(|why| self.fault(name, why)).ok()
    }

    pub fn time(&mut self, name: &str) -> Option<String> {
        let text = self.text(name)?;
        if chrono::DateTime::parse_from_rfc3339(&text).is_err() {
            self.fault(name, "is not a time; write for example 2027-01-15T08:00:00Z");
        }
        Some(text)
    }

    pub fn arguments(&mut self, list: FieldList) -> Arguments {
        list.iter().filter_map(|(name, kind)| Some((*name, self.argument(name, *kind)?))).collect()
    }

    fn argument(&mut self, name: &str, kind: Kind) -> Option<Argument> {
        match kind {
            Kind::Text => self.text(name).map(Argument::Text),
            Kind::Length => self.length(name).map(interval).map(Argument::Interval),
            Kind::LengthOrZero => self.parsed(name, duration::parse_or_zero).map(interval).map(Argument::Interval),
            Kind::Time => self.time(name).map(Argument::Time),
            Kind::Json => self.json(name).map(Argument::Json),
            Kind::Switch => self.switch(name).map(Argument::Switch),
            Kind::Headers => self.headers().map(Argument::Json),
            Kind::Retries => self.retries(name).map(Argument::Json),
            Kind::Attempts => self.whole(name, 1..=1_000).map(|number| Argument::Json(number.into())),
            Kind::Statuses => self.statuses(name).map(Argument::Text),
            Kind::Labels => self.labels(name).map(Argument::Texts),
        }
    }

    fn statuses(&mut self, name: &str) -> Option<String> {
        let text = self.text(name)?;
        if let Err(why) = text.parse::<Statuses>() {
            self.fault(name, why);
        }
        Some(text)
    }

    fn labels(&mut self, name: &str) -> Option<Vec<String>> {
        let labels = serde_json::from_value(self.take(name)?).ok();
        if labels.is_none() {
            self.fault(name, "is no array of texts; write for example [\"shop\"]");
        }
        labels
    }

    fn retries(&mut self, name: &str) -> Option<Value> {
        let Value::Object(fields) = self.take(name)? else {
            let example = "{\"max_attempts\": 3, \"first_delay\": \"10 s\", \"max_delay\": \"10 min\"}";
            self.fault(name, format!("is no object; write for example {example}"));
            return None;
        };
        let mut inner = Fields::of(fields);
        let json = |argument| match argument {
            Argument::Json(value) => value,
            Argument::Interval(text) => text.into(),
            _ => Value::Null,
        };
        let retries =
            inner.arguments(RETRIES).into_iter().map(|(name, value)| (name.to_owned(), json(value))).collect();
        for fault in inner.end().err().unwrap_or_default() {
            self.add(Fault { pointer: format!("/{name}{}", fault.pointer), ..fault });
        }
        Some(Value::Object(retries))
    }

    pub fn headers(&mut self) -> Option<Value> {
        match self.take("headers")? {
            Value::Object(headers) => {
                for (name, value) in &headers {
                    if let Err(why) = user_header(name) {
                        self.fault("headers", why);
                    }
                    if !value.is_string() {
                        self.fault("headers", format!("has {name:?} with something else; write a text"));
                    }
                }
                Some(Value::Object(headers))
            }
            _ => {
                self.fault("headers", "is not an object of texts; write for example {\"X-From\": \"shop\"}");
                None
            }
        }
    }

    pub fn end(mut self) -> Result<(), Vec<Fault>> {
        let unknown: Vec<String> = self.left.keys().take(MAX_FAULTS).cloned().collect();
        unknown.iter().for_each(|name| self.fault(name, "is not a field of this resource; leave it out"));
        if self.faults.is_empty() { Ok(()) } else { Err(self.faults) }
    }

    pub fn done(self) -> Result<(), Problem> {
        self.end().map_err(|faults| Problem::fields("invalid-field", &faults))
    }
}

pub fn interval(length: Length) -> String {
    format!("{} milliseconds", length.as_millis())
}
