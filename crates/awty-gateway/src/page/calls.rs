//! Shows the last calls of an endpoint, and why the newest late call was late.

use super::attempt;
use super::cause::Wait;
use super::fail::Fail;
use super::parts::{Column, Mark, PATIENCE, empty, linked_time, mark, number, string, table, text, time};
use super::state::Page;
use super::words::{absolute, encoded, millis, moment};
use crate::db::{Request, calls};
use chrono::TimeDelta;
use maud::{Markup, html};
use serde_json::Value;

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
        let why = Wait::of(call).map(|wait| wait.why(meanwhile)).unwrap_or_default();
        format!("The call for {slot} came {late} late. {why}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_first_attempt_can_be_late() {
        let call = |at: &str, attempt: i64| json!({"slot": "2026-11-26T10:00:00Z", "at": at, "attempt": attempt});
        assert_eq!(lateness(&call("2026-11-26T10:00:35Z", 1)), Some(TimeDelta::seconds(35)));
        assert_eq!(lateness(&call("2026-11-26T10:00:09Z", 1)), None);
        assert_eq!(lateness(&call("2026-11-26T10:00:35Z", 2)), None);
    }
}
