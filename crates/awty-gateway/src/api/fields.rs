//! Invariant: the error for a wrong or unknown field of a request tells the client what to write instead.

use super::json_text;
use super::problem::{Fault, MAX_FAULTS, Problem, shortened};
use super::shape::{FieldList, Kind, RETRIES};
use crate::db::{Argument, Arguments};
use crate::deliver::request::MOST_HEADERS;
use crate::deliver::user_header::user_header;
use crate::duration::{self, Length};
use awty_core::http::Statuses;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

pub const HIDDEN: &str = "•••";

/// Members of a JSON object, whose values are not parsed yet.
pub type Object = BTreeMap<String, Box<RawValue>>;

pub struct Fields {
    pub left: Object,
    /// At most [`MAX_FAULTS`]
    pub faults: Vec<Fault>,
}

impl Fields {
    pub fn of(left: Object) -> Self {
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

    /// Returns the JSON text of a field that is not null.
    pub fn take(&mut self, name: &str) -> Option<Box<RawValue>> {
        self.left.remove(name).filter(|value| value.get() != "null")
    }

    pub fn text(&mut self, name: &str) -> Option<String> {
        self.take_as(name, "is not a text; write it in quotes")
    }

    fn take_as<T: for<'a> Deserialize<'a>>(&mut self, name: &str, otherwise: &str) -> Option<T> {
        let value = serde_json::from_str(self.take(name)?.get());
        value.map_err(|_| self.fault(name, otherwise)).ok()
    }

    /// Returns the JSON text of a field, also if it is null.
    pub fn json(&mut self, name: &str) -> Option<String> {
        let value = self.left.remove(name)?;
        if let Some(why) = json_text::refusal(value.get()) {
            self.fault(name, why);
        }
        Some(String::from(Box::<str>::from(value)))
    }

    pub fn switch(&mut self, name: &str) -> Option<bool> {
        self.take_as(name, "is not a boolean; write true or false")
    }

    pub fn whole(&mut self, name: &str, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
        let number = serde_json::from_str(self.take(name)?.get()).ok().filter(|number| range.contains(number));
        if number.is_none() {
            self.fault(name, format!("is out of range; write {} to {}", range.start(), range.end()));
        }
        number
    }

    pub fn length(&mut self, name: &str) -> Option<Length> {
        self.parsed(name, duration::parse)
    }

    fn parsed(&mut self, name: &str, parse: fn(&str) -> Result<Length, String>) -> Option<Length> {
        let value = self.take(name)?;
        let text = serde_json::from_str(value.get()).unwrap_or_else(|_| value.get().to_owned());
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
            Kind::Json => self.json(name).map(Argument::JsonText),
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
        self.take_as(name, "is no array of texts; write for example [\"shop\"]")
    }

    fn retries(&mut self, name: &str) -> Option<Value> {
        let otherwise = "is no object; write for example \
                         {\"max_attempts\": 3, \"first_delay\": \"10 s\", \"max_delay\": \"10 min\"}";
        let mut inner = Fields::of(self.take_as(name, otherwise)?);
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
        let otherwise = "is not an object of texts; write for example {\"X-From\": \"shop\"}";
        let headers: Object = self.take_as("headers", otherwise)?;
        if headers.len() > MOST_HEADERS {
            self.fault("headers", format!("has more than {MOST_HEADERS} headers; send fewer headers"));
            return None;
        }
        let text = |(name, value): (String, Box<RawValue>)| {
            if let Err(why) = user_header(&name) {
                self.fault("headers", why);
            }
            let text = serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| {
                self.fault("headers", format!("has {name:?} with something else; write a text"));
                String::new()
            });
            (name, Value::String(text))
        };
        Some(Value::Object(headers.into_iter().map(text).collect()))
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
