use super::fields::{Fields, Object, interval};
use super::problem::Fault;
use super::shape::SCHEDULE;
use crate::db::{Argument, Arguments};
use crate::duration::Length;
use awty_core::uri::{Uri, UriError};

const WHEN: [&str; 4] = ["every", "cron", "at", "after"];

#[derive(Clone, Copy, Debug)]
pub struct Periods {
    pub min: Length,
    pub max: Length,
    /// True if the setting `min_period` is missing. `min` is then the database's `awty.slot`.
    pub is_slot: bool,
}

#[derive(Debug)]
pub enum Refusal {
    Fields(Vec<Fault>),
    Uri(Fault),
    Period(Fault),
}

pub fn schedule(fields: Object, uri: Option<String>, periods: Periods) -> Result<(Uri, Arguments), Refusal> {
    let mut reader = Fields::of(fields);
    let said = reader.text("uri");
    let Some(text) = uri.as_ref().or(said.as_ref()) else {
        let reason = "is missing; write for example https://api.example.com/tick".into();
        return Err(Refusal::Fields(vec![Fault { pointer: "/uri".into(), reason }]));
    };
    let refused = |why: UriError| Refusal::Uri(Fault { pointer: "/uri".into(), reason: why.to_string() });
    let uri = Uri::parse(text).map_err(refused)?;
    if said.is_some_and(|said| Uri::parse(&said).as_ref() != Ok(&uri)) {
        reader.fault("uri", "differs from the URI of the request; leave it out");
    }
    let every = reader.length("every");
    if let Some(every) = every.filter(|every| !(periods.min..=periods.max).contains(every)) {
        let slots = if periods.is_slot && every < periods.min && periods.min > Length::seconds(1) {
            ", or let a superuser run ALTER SYSTEM SET awty.slot = '1s' and SELECT pg_reload_conf()"
        } else {
            ""
        };
        let reason = format!("is {every}; write {} to {}{slots}", periods.min, periods.max);
        return Err(Refusal::Period(Fault { pointer: "/every".into(), reason }));
    }
    let mut arguments = vec![("uri", Argument::Text(uri.to_string()))];
    arguments.extend(every.map(|every| ("every", Argument::Interval(interval(every)))));
    arguments.extend(reader.arguments(SCHEDULE));
    if arguments.iter().filter(|(name, _)| WHEN.contains(name)).count() != 1
        && !reader.faults.iter().any(|fault| WHEN.iter().any(|name| fault.pointer[1..] == **name))
    {
        reader.fault("every", "or cron, at, after: exactly one of them must be given; write for example 15 min");
    }
    reader.end().map(|()| (uri, arguments)).map_err(Refusal::Fields)
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
