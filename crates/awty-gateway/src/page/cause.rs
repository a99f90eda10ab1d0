//! Says why an endpoint was called late or not at all.
//!
//! The database knows some stops, such as a block of the target. For other stops, the cause is inferred from the calls
//! of other endpoints.

use super::parts::{PATIENCE, string};
use super::words::{absolute, moment};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

/// Causes of a delay. The page shows the text of a cause, followed by the time at which the cause ended.
const ENDS: [(&str, &str); 5] = [
    ("job", "Its job was paused until"),
    ("server", "The database server was down; it started at"),
    ("gateway", "No gateway called until this one started at"),
    ("schedule", "The schedule was paused or changed until"),
    ("settings", "Calls began again when the database server read its settings, as it does if awty is switched on:"),
];

/// Largest difference between the end of a block and the time of a call that ended it, because each process reads the
/// clock by itself.
const CLOCKS: TimeDelta = TimeDelta::seconds(1);

/// Time during which an endpoint should have been called, but was not.
pub struct Wait {
    pub slot: DateTime<Utc>,
    /// Time after the slot by which the call would have started if nothing had stopped it.
    pub patience: TimeDelta,
    /// Time of the call that ended the wait. Without such a call, the time at which the check ended, or the present.
    pub end: DateTime<Utc>,
    pub is_called: bool,
}

impl Wait {
    /// Returns the time from a call's slot to the call.
    pub fn of(call: &Value) -> Option<Self> {
        Some(Wait { slot: moment(&call["slot"])?, patience: PATIENCE, end: moment(&call["at"])?, is_called: true })
    }

    pub fn why(&self, meanwhile: &Value) -> String {
        self.known(meanwhile).unwrap_or_else(|| inferred(meanwhile).into())
    }

    /// Returns a cause that the database knows. A block of the target comes first, because it names its role and its
    /// note.
    pub fn known(&self, meanwhile: &Value) -> Option<String> {
        let stops = &meanwhile["stops"];
        self.block(&stops["block"], meanwhile)
            .or_else(|| self.lasting("Its job", "paused", &stops["pause"]))
            .or_else(|| {
                let word = if stops["hold"]["paused"] == true { "paused" } else { "held" };
                self.lasting("This schedule", word, &stops["hold"])
            })
            .or_else(|| self.ended(meanwhile))
    }

    fn block(&self, block: &Value, meanwhile: &Value) -> Option<String> {
        let until = moment(&block["until"]);
        if block.is_null() || until.is_some_and(|until| until <= self.slot) {
            return None;
        }
        let is_before_call = until.is_some_and(|until| until <= self.end + CLOCKS);
        let ends_wait = until.is_some_and(|until| self.end - until <= PATIENCE);
        // The row of a block that was extended has the time of the extension. Such a block is the cause if the call
        // followed its end at once, and if the target got no other call.
        let is_extended = is_before_call && ends_wait && meanwhile["near_called"].as_i64().unwrap_or(0) == 0;
        let fits = if self.is_covered_by(block) { is_before_call || !self.is_called } else { is_extended };
        let subject = match block["target"].as_str() {
            Some(target) => format!("The target {target}"),
            None => "Each target of its job".into(),
        };
        fits.then(|| self.sentence(&subject, "blocked", block))
    }

    /// Tells of a stop that has not ended, if no call was made since.
    fn lasting(&self, subject: &str, word: &str, stop: &Value) -> Option<String> {
        let fits = !stop.is_null() && !self.is_called && self.is_covered_by(stop);
        fits.then(|| self.sentence(subject, word, stop))
    }

    fn is_covered_by(&self, stop: &Value) -> bool {
        moment(&stop["since"]).is_none_or(|since| since <= self.slot + self.patience)
    }

    fn sentence(&self, subject: &str, word: &str, stop: &Value) -> String {
        let now = crate::clock::now();
        let until = moment(&stop["until"]);
        let is_over = until.is_some_and(|until| until <= now);
        let (is, from) = if is_over { ("was", "from") } else { ("is", "since") };
        let mut text = format!("{subject} {is} {word}");
        if let Some(since) = moment(&stop["since"]).filter(|_| self.is_covered_by(stop)) {
            text.push_str(&format!(" {from} {}", absolute(since, now)));
        }
        if let Some(until) = until {
            text.push_str(&format!(" until {}", absolute(until, now)));
        }
        if let Some(role) = stop["by"].as_str() {
            text.push_str(&format!(" by {role}"));
        }
        match string(&stop["note"]) {
            "" => text + ".",
            note => format!("{text}: “{note}”."),
        }
    }

    /// Names a cause by the time at which it ended. If other endpoints were called during the delay, the cause can only
    /// be a pause or change of the call's own schedule.
    fn ended(&self, meanwhile: &Value) -> Option<String> {
        let only_this = meanwhile["called"].as_i64() > Some(0);
        let ends = ENDS.iter().filter(|(name, _)| !only_this || *name == "schedule");
        ends.filter_map(|(name, words)| Some((moment(&meanwhile[name])?, words)))
            .find(|(end, _)| *end > self.slot && *end <= self.end)
            .map(|(end, words)| format!("{words} {}.", absolute(end, crate::clock::now())))
    }
}

/// Infers the cause of a call's delay from the other endpoints that were called during the delay. For example, if an
/// endpoint of the same target was called, the target cannot be the cause.
fn inferred(meanwhile: &Value) -> &'static str {
    let [others, called, near, near_called] =
        ["others", "called", "near", "near_called"].map(|name| meanwhile[name].as_i64().unwrap_or(0));
    if others == 0 {
        "No other endpoint is called so often that its calls could tell what was stopped then."
    } else if called == 0 && near == others {
        "No other endpoint was called meanwhile, and all of them have the same target. So the target was blocked, failing or at its limit, or all calls had stopped: awty, the database, the job or the gateways."
    } else if called == 0 {
        "No other endpoint was called meanwhile, so all calls had stopped: awty, the database, the job or the gateways. The logs of PostgreSQL and of the gateways have the cause."
    } else if near_called > 0 {
        "Other endpoints of its target were called meanwhile, so this schedule itself was paused or held."
    } else if near > 0 {
        "Endpoints of other targets were called meanwhile, and none of this target, so the target was blocked, failing or at its limit."
    } else {
        "Endpoints of other targets were called meanwhile, so this schedule was paused or held, or its target was blocked, failing or at its limit."
    }
}

#[cfg(test)]
#[path = "cause_tests.rs"]
mod tests;
