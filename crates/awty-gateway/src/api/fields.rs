//! Takes fields out of a JSON object and gathers what is wrong with them. Pure.
//!
//! Invariant: every field that does not fit is named, with what to write instead; an unknown field is one of them.

use super::number;
use super::problem::{Fault, Problem};
use crate::deliver::request::user_header;
use crate::duration::{self, Length};
use serde_json::{Map, Value};

/// What a header's value is shown as if it may be a secret.
pub const HIDDEN: &str = "•••";

/// The fields that are left, and what is wrong so far.
pub struct Fields {
    /// What nobody has taken.
    pub left: Map<String, Value>,
    /// What is wrong.
    pub faults: Vec<Fault>,
}

impl Fields {
    /// All of an object.
    pub fn of(left: Map<String, Value>) -> Self {
        Fields { left, faults: Vec::new() }
    }

    /// Something is wrong with that field; what to write instead comes after a semicolon.
    pub fn fault(&mut self, name: &str, reason: impl Into<String>) {
        let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        self.faults.push(Fault { pointer, reason: reason.into() });
    }

    /// A field; null is none.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name).filter(|value| !value.is_null())
    }

    /// A text.
    pub fn text(&mut self, name: &str) -> Option<String> {
        match self.take(name)? {
            Value::String(text) => Some(text),
            _ => {
                self.fault(name, "is no text; write it in quotes");
                None
            }
        }
    }

    /// Any JSON; null is one, too.
    pub fn json(&mut self, name: &str) -> Option<Value> {
        let value = self.left.remove(name)?;
        if !number::are_short(&value) {
            self.fault(name, "has a number of more than 1000 characters without its exponent; write it as a text");
        }
        Some(value)
    }

    /// True or false.
    pub fn switch(&mut self, name: &str) -> Option<bool> {
        let value = self.take(name)?;
        if !value.is_boolean() {
            self.fault(name, "is no switch; write true or false");
        }
        value.as_bool()
    }

    /// A whole number within a range.
    pub fn whole(&mut self, name: &str, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
        let number = self.take(name)?.as_i64().filter(|number| range.contains(number));
        if number.is_none() {
            self.fault(name, format!("is out of range; write {} to {}", range.start(), range.end()));
        }
        number
    }

    /// A length of time.
    pub fn length(&mut self, name: &str) -> Option<Length> {
        let text = match self.take(name)? {
            Value::String(text) => text,
            other => other.to_string(),
        };
        duration::parse(&text).map_err(|why| self.fault(name, why)).ok()
    }

    /// A length of time, as PostgreSQL reads it.
    pub fn interval(&mut self, name: &str) -> Option<String> {
        self.length(name).map(interval)
    }

    /// A moment.
    pub fn time(&mut self, name: &str) -> Option<String> {
        let text = self.text(name)?;
        if chrono::DateTime::parse_from_rfc3339(&text).is_err() {
            self.fault(name, "is no time; write for example 2027-01-15T08:00:00Z");
        }
        Some(text)
    }

    /// Headers of a call.
    pub fn headers(&mut self) -> Option<Value> {
        match self.take("headers")? {
            Value::Object(headers) => {
                for (name, value) in &headers {
                    if let Err(why) = user_header(name) {
                        self.fault("headers", why);
                    }
                    if value == HIDDEN {
                        self.fault("headers", format!("has {name:?} with {HIDDEN}, which stands for what is not shown; write its value or {{{{secret:NAME}}}}"));
                    }
                    if !value.is_string() {
                        self.fault("headers", format!("has {name:?} with something else; write a text"));
                    }
                }
                Some(Value::Object(headers))
            }
            _ => {
                self.fault("headers", "is no object of texts; write for example {\"X-From\": \"shop\"}");
                None
            }
        }
    }

    /// Whatever is left is unknown.
    pub fn end(mut self) -> Result<(), Vec<Fault>> {
        let unknown: Vec<String> = self.left.keys().cloned().collect();
        unknown.iter().for_each(|name| self.fault(name, "is no field of this resource; leave it out"));
        if self.faults.is_empty() { Ok(()) } else { Err(self.faults) }
    }

    /// [`end`](Self::end), as an answer.
    pub fn done(self) -> Result<(), Problem> {
        self.end().map_err(|faults| Problem::fields("invalid-field", &faults))
    }
}

/// As PostgreSQL reads it.
pub fn interval(length: Length) -> String {
    format!("{} milliseconds", length.as_millis())
}
