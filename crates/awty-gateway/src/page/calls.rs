//! Shows the last calls of an endpoint, and why the newest late call was late.

use super::attempt;
use super::fail::Fail;
use super::parts::{Column, Mark, PATIENCE, empty, linked_time, mark, number, string, table, text, time};
use super::state::Page;
use super::words::{absolute, encoded, millis, moment};
use crate::db::{Request, calls};
use chrono::TimeDelta;
use maud::{Markup, html};
use serde_json::Value;

/// Causes of a delay. The page shows the text of a cause, followed by the time at which the cause ended.
const ENDS: [(&str, &str); 5] = [
    ("job", "Its job was paused until"),
    ("server", "The database server was down; it started at"),
    ("gateway", "No gateway called; this gateway started at"),
    ("schedule", "The schedule was paused or changed until"),
    ("settings", "Calls began again when the database server read its settings, as it does if awty is switched on:"),
];

const MOST: i64 = 20;

pub struct Last {
    calls: Vec<calls::Item>,
    /// Index of the newest late call in `calls`, and the facts that may explain its delay.
    late: Option<(usize, Value)>,
}

pub const COLUMNS: [Column; 5] = [text("Called"), text("Result"), text("Answer"), number("Attempt"), text("Slot")];

/// Returns how late a call was. A retry does not count as late, because each retry comes after an intended pause.
pub fn lateness(call: &Value) -> Option<TimeDelta> {
    let late = moment(&call["at"])? - moment(&call["slot"])?;
    (call["attempt"] == 1 && late > PATIENCE).then_some(late)
}

pub struct PastCall<'a> {
    pub id: &'a str,
    pub call: &'a Value,
    pub key: &'a [String],
}

impl PastCall<'_> {
    pub fn row(&self) -> Vec<Markup> {
        let PastCall { id, call, key } = self;
        let word = if call["ok"] == true { mark(Mark::Good, "ok") } else { mark(Mark::Bad, "failed") };
        let place = key.get(1).map(|lease| attempt::place(lease, id, string(&call["ended_at"]))).unwrap_or_default();
        let late = lateness(call).map(|late| mark(Mark::Late, &format!("{} late", millis(late.num_milliseconds()))));
        vec![
            linked_time(&place, &call["at"]),
            word,
            attempt::said(call),
            html! { (call["attempt"]) },
            html! { (time(&call["slot"])) @if let Some(late) = late { br; (late) } },
        ]
    }
}

/// Reads what can explain that an endpoint was not called between `from` and `to`, such as the end of a pause. Also
/// counts the other endpoints that were called in that time.
pub async fn meanwhile(page: &Page, reading: &Request, id: &str, from: &str, to: &str) -> Result<Value, Fail> {
    let mut meanwhile = calls::meanwhile(reading, id, from, to).await?;
    meanwhile["gateway"] = page.started.to_rfc3339().into();
    Ok(meanwhile)
}

/// Says why the endpoint was not called between the planned time (`slot`) and the start (`at`) of `call`.
pub fn why(call: &Value, meanwhile: &Value) -> String {
    end(call, meanwhile).unwrap_or_else(|| cause(meanwhile).into())
}

impl Last {
    pub async fn read(page: &Page, reading: &Request, id: &str, until: Option<&str>) -> Result<Self, Fail> {
        let calls = calls::attempts(reading, id, until, until.map(|_| 0), MOST).await?;
        let newest = calls.iter().position(|(call, _)| lateness(call).is_some());
        let late = match newest {
            Some(place) => {
                let call = &calls[place].0;
                Some((place, meanwhile(page, reading, id, string(&call["slot"]), string(&call["at"])).await?))
            }
            None => None,
        };
        Ok(Last { calls, late })
    }

    pub fn draw(&self, id: &str) -> Markup {
        if self.calls.is_empty() {
            return empty("Last calls", "No call has ended, as far as awty.attempt_retention keeps them.", None);
        }
        let row = |(call, key): &calls::Item| PastCall { id, call, key }.row();
        html! {
            (table(
                "Last calls",
                &COLUMNS,
                self.calls.iter().map(row).collect(),
            ))
            @if let Some((call, _)) = self.calls.get(MOST as usize - 1) {
                p { a href=(format!("/schedules/{id}?bucket=1m&until={}", encoded(string(&call["at"])))) { "Earlier calls" } }
            }
        }
    }

    /// Explains the delay of the newest late call. The views show the explanation before their charts and tables.
    pub fn cause(&self) -> Markup {
        html! {
            @if let Some((place, meanwhile)) = &self.late {
                section.notice.past { p { (mark(Mark::Held, "The newest late call:")) " " (self.sentence(*place, meanwhile)) } }
            }
        }
    }

    fn sentence(&self, place: usize, meanwhile: &Value) -> String {
        let call = &self.calls[place].0;
        let slot = moment(&call["slot"]).map(|slot| absolute(slot, crate::clock::now())).unwrap_or_default();
        let late = lateness(call).map(|late| millis(late.num_milliseconds())).unwrap_or_default();
        format!("The call for {slot} came {late} late. {}", why(call, meanwhile))
    }
}

/// Says what delayed the call, such as a pause of the job, and when this cause ended. If other endpoints were called
/// during the delay, the cause can only be a pause or change of the call's own schedule.
fn end(call: &Value, meanwhile: &Value) -> Option<String> {
    let (slot, at) = (moment(&call["slot"])?, moment(&call["at"])?);
    let only_this = meanwhile["called"].as_i64() > Some(0);
    let ends = ENDS.iter().filter(|(name, _)| !only_this || *name == "schedule");
    ends.filter_map(|(name, words)| Some((moment(&meanwhile[name])?, words)))
        .find(|(end, _)| *end > slot && *end <= at)
        .map(|(end, words)| format!("{words} {}.", absolute(end, crate::clock::now())))
}

/// Infers the cause of a call's delay from the other endpoints that were called during the delay. For example, if an
/// endpoint of the same target was called, the target cannot be the cause.
fn cause(meanwhile: &Value) -> &'static str {
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
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_late_call_tells_what_was_stopped() {
        let told = |others: i64, called: i64, near: i64, near_called: i64| {
            cause(&json!({"others": others, "called": called, "near": near, "near_called": near_called}))
        };
        assert!(told(0, 0, 0, 0).contains("could tell"));
        assert!(told(3, 0, 1, 0).contains("all calls had stopped"));
        assert!(told(3, 0, 1, 0).starts_with("No other endpoint was called meanwhile, so all calls"));
        assert!(told(3, 0, 3, 0).contains("the target was blocked"));
        assert!(told(3, 2, 1, 1).contains("this schedule itself"));
        assert!(told(3, 2, 1, 0).contains("and none of this target"));
        assert!(told(3, 2, 0, 0).contains("paused or held, or its target"));
    }

    #[test]
    fn the_end_of_a_stop_is_the_cause_if_it_was_meanwhile() {
        let call = json!({"slot": "2026-11-26T10:00:00Z", "at": "2026-11-26T10:00:35Z"});
        let told = |name: &str, time: &str, called: i64| end(&call, &json!({name: time, "called": called}));
        for (name, words) in ENDS {
            let sentence = told(name, "2026-11-26T10:00:34Z", 0).unwrap();
            assert!(sentence.starts_with(words) && sentence.ends_with(" UTC."), "{sentence}");
            assert_eq!(told(name, "2026-11-26T10:00:34Z", 1).is_some(), name == "schedule");
            assert_eq!(told(name, "2026-11-26T10:00:00Z", 0), None);
            assert_eq!(told(name, "2026-11-26T10:00:36Z", 0), None);
        }
        assert_eq!(end(&call, &json!({"job": null, "called": 0})), None);
    }

    #[test]
    fn only_the_first_attempt_can_be_late() {
        let call = |at: &str, attempt: i64| json!({"slot": "2026-11-26T10:00:00Z", "at": at, "attempt": attempt});
        assert_eq!(lateness(&call("2026-11-26T10:00:35Z", 1)), Some(TimeDelta::seconds(35)));
        assert_eq!(lateness(&call("2026-11-26T10:00:09Z", 1)), None);
        assert_eq!(lateness(&call("2026-11-26T10:00:35Z", 2)), None);
    }
}
