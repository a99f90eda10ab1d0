//! Decides from the calls around a time whether an endpoint was called then, and if not, why.

use super::calls::lateness;
use super::parts::string;
use super::words::moment;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

/// The form takes a time without seconds, so each answer is about a whole minute.
const MINUTE: TimeDelta = TimeDelta::minutes(1);

#[derive(Debug, PartialEq)]
pub enum Answer<'a> {
    ToCome,
    NotThereYet(DateTime<Utc>),
    /// The endpoint was called in the minute that the person asked about. `late` is the first call planned for that
    /// minute that came late or was dropped.
    Called {
        calls: Vec<&'a Value>,
        late: Option<&'a Value>,
    },
    Late(&'a Value),
    Running(&'a Value),
    Ended(&'a Value),
    NotPlanned(Option<DateTime<Utc>>),
    Forgotten,
    Gap(Option<&'a Value>, Option<&'a Value>),
}

pub fn is_dropped(call: &Value) -> bool {
    call["ok"] != true && string(&call["message"]).starts_with("dropped: ")
}

/// Decides whether the endpoint was called at `at`. `calls` are the calls around `at`, in the order of time.
pub fn answer<'a>(at: DateTime<Utc>, now: DateTime<Utc>, calls: &[&'a Value], facts: &'a Value) -> Answer<'a> {
    let of = |call: &Value, name: &str| moment(&call[name]);
    let jitter = TimeDelta::milliseconds(facts["jitter"].as_i64().unwrap_or(0));
    let end = at + MINUTE + jitter;
    let within = |time: Option<DateTime<Utc>>| time.is_some_and(|time| time >= at && time < end);
    if at > now {
        return Answer::ToCome;
    }
    if let Some(created) = moment(&facts["created"]).filter(|created| *created >= at + MINUTE) {
        return Answer::NotThereYet(created);
    }
    let made = |call: &&&Value| {
        of(call, "at").is_some_and(|made| made >= at && made < at + MINUTE)
            || within(of(call, "slot")) && within(of(call, "at"))
    };
    let found: Vec<&Value> = calls.iter().filter(made).filter(|call| !is_dropped(call)).copied().collect();
    let came_late = |call: &&&Value| {
        let is_late = call["attempt"] == 1 && !within(of(call, "at")) || lateness(call).is_some();
        within(of(call, "slot")) && (is_late || is_dropped(call))
    };
    let late = calls.iter().find(came_late).copied();
    if !found.is_empty() {
        return Answer::Called { calls: found, late };
    }
    if let Some(late) = late {
        return Answer::Late(late);
    }
    if let Some(running) = calls.iter().find(|call| of(call, "at") < Some(at) && of(call, "ended_at") > Some(at)) {
        return Answer::Running(running);
    }
    if let Some(ended) = facts["ended"].as_array().into_iter().flatten().find(|ended| within(of(ended, "slot"))) {
        return Answer::Ended(ended);
    }
    let planned = moment(&facts["planned"]);
    if planned.is_none_or(|planned| planned >= at + MINUTE) {
        return Answer::NotPlanned(planned);
    }
    let (before, after): (Vec<&Value>, Vec<&Value>) = calls.iter().partition(|call| of(call, "at") < Some(at));
    if before.is_empty() && moment(&facts["kept"]).is_some_and(|kept| at < kept) {
        return Answer::Forgotten;
    }
    Answer::Gap(before.last().copied(), after.first().copied())
}

#[cfg(test)]
#[path = "past_tests.rs"]
mod tests;
