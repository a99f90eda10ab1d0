//! Charts of one endpoint: outcomes, lateness and duration. Each chart marks calls that were missed during a stop and
//! made afterwards.

use super::chart::Range;
use super::draw::{Chart, Marks, Series, Unit};
use super::parts::empty;
use super::words::{count, millis, moment};
use crate::duration::parse_or_zero;
use maud::{Markup, html};
use serde_json::Value;

const CAUGHT_UP: &str = "caught up";

pub struct Numbers<'a> {
    pub items: &'a [Value],
    pub range: Range,
    /// Width of a bucket in seconds.
    pub step: i64,
}

fn length(item: &Value) -> Option<i64> {
    Some(parse_or_zero(item.as_str()?).ok()?.as_millis())
}

impl Numbers<'_> {
    fn place<T: Clone>(&self, value: impl Fn(&Value) -> Option<T>) -> Vec<Option<T>> {
        let values = self.items.iter().filter_map(|item| Some((moment(&item["at"])?.timestamp(), value(item)?)));
        self.range.place(values, |_, last| last)
    }

    fn sum(&self, name: &str) -> i64 {
        self.items.iter().filter_map(|item| item[name].as_i64()).sum()
    }

    fn counted(&self, name: &'static str, class: &'static str, of: &str) -> Series {
        Series { name, class, values: self.place(|item| item[of].as_f64().filter(|count| *count > 0.0)) }
    }

    fn lines(&self, what: &str) -> Vec<Series> {
        #[allow(clippy::cast_precision_loss)] // a chart needs no more precision
        let line = |name: &'static str, class: &'static str, of: &str| Series {
            name,
            class,
            values: self.place(|item| length(&item[what][of]).map(|length| length as f64)),
        };
        vec![line("longest", "third", "max"), line("95 %", "second", "p95"), line("half", "first", "p50")]
    }

    fn longest(&self, what: &str) -> Option<String> {
        self.items.iter().filter_map(|item| length(&item[what]["max"])).max().map(millis)
    }

    fn marks(&self, text: impl Fn(&Value, i64) -> String) -> Option<Marks> {
        let caught_up = |item: &Value| item["caught_up"].as_i64().filter(|calls| *calls > 0);
        let texts = self.place(|item| caught_up(item).map(|calls| text(item, calls)));
        texts.iter().any(Option::is_some).then_some(Marks { name: CAUGHT_UP, texts })
    }

    /// Says how many calls were caught up after a stop, and the largest lateness among these calls.
    fn caught_up(&self) -> Option<String> {
        let calls = Some(self.sum("caught_up")).filter(|calls| *calls > 0)?;
        let latest = self.items.iter().filter_map(|item| length(&item["caught_up_max"])).max();
        let late = latest.map(|latest| format!(", up to {} late", millis(latest))).unwrap_or_default();
        Some(format!("{} after a stop{late}", count(calls, "call was caught up", "calls were caught up")))
    }

    pub fn draw(&self) -> Markup {
        if self.items.is_empty() {
            return empty("Calls over time", "No call ended in this time. Choose a longer time above.", None);
        }
        let point = format!(" Each point is of {}.", millis(self.step.saturating_mul(1_000)));
        let caught_up = self.caught_up();
        let also = caught_up.as_ref().map(|calls| format!(" {calls}.")).unwrap_or_default();
        let outcomes = format!("{} of {} succeeded.{also}", self.sum("ok"), count(self.sum("count"), "call", "calls"));
        let late = match (self.longest("lateness"), &caught_up) {
            (Some(longest), None) => {
                format!("The call with the longest delay started {longest} after its slot.{point}")
            }
            (Some(longest), Some(calls)) => {
                format!(
                    "Without the calls that were caught up, the call with the longest delay started {longest} after its slot. {calls}.{point}"
                )
            }
            (None, Some(calls)) => format!("{calls}. No other call was made.{point}"),
            (None, None) => format!("No call was made.{point}"),
        };
        let slow = match self.longest("duration") {
            Some(longest) => format!("The longest call took {longest}.{also}{point}"),
            None => format!("No call was made.{point}"),
        };
        let stacked = vec![
            self.counted("succeeded", "first", "ok"),
            self.counted("failed", "fourth", "failed"),
            self.counted("dropped", "third", "dropped"),
        ];
        let chart = |title, sentence, unit, stacked, lines, marks| {
            Chart { title, sentence, range: self.range, unit, stacked, lines, bands: Vec::new(), marks }.draw()
        };
        let calls = |_: &Value, calls: i64| count(calls, "call", "calls");
        let by = |item: &Value, calls: i64| match length(&item["caught_up_max"]) {
            Some(latest) => format!("{}, up to {}", count(calls, "call", "calls"), millis(latest)),
            None => count(calls, "call", "calls"),
        };
        html! {
            (chart("Outcomes", &outcomes, Unit::Count, stacked, Vec::new(), self.marks(calls)))
            (chart("Lateness", &late, Unit::Millis, Vec::new(), self.lines("lateness"), self.marks(by)))
            (chart("Duration", &slow, Unit::Millis, Vec::new(), self.lines("duration"), self.marks(calls)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn drawn(items: &[Value]) -> String {
        Numbers { items, range: Range { from: 0, step: 60, count: 3 }, step: 60 }.draw().into_string()
    }

    fn item(minute: i64, caught_up: i64, lateness: Value) -> Value {
        json!({"at": format!("1970-01-01T00:0{minute}:00Z"), "count": 2, "ok": 2, "failed": 0, "dropped": 0, "caught_up": caught_up,
            "caught_up_max": (caught_up > 0).then_some("35s"), "lateness": {"p50": lateness, "p95": lateness, "max": lateness},
            "duration": {"p50": "5ms", "p95": "5ms", "max": "5ms"}})
    }

    #[test]
    fn a_call_that_was_caught_up_is_in_each_chart_its_table_and_its_sentence() {
        let page = drawn(&[item(0, 0, json!("12ms")), item(1, 1, json!("14ms"))]);
        let charts: Vec<&str> = page.split("<section class=\"chart\">").skip(1).collect();
        assert_eq!(charts.len(), 3);
        for chart in charts {
            assert!(chart.contains("1 call was caught up after a stop, up to 35 s late."), "{chart}");
            assert!(chart.contains("<g class=\"marks\"><rect x=\"1\" y=\"0\" width=\"1\" height=\"100\">"), "{chart}");
            assert!(chart.contains("data-label=\"caught up\"><div>1 call"), "{chart}");
        }
        assert!(page.contains("<div>1 call, up to 35 s</div>"), "{page}");
        assert!(page.contains(
            "Without the calls that were caught up, the call with the longest delay started 14 ms after its slot."
        ));
    }

    #[test]
    fn a_chart_without_such_calls_does_not_name_them() {
        let page = drawn(&[item(0, 0, json!("12ms"))]);
        assert!(
            !page.contains("caught up")
                && page.contains("The call with the longest delay started 12 ms after its slot."),
            "{page}"
        );
        let page = drawn(&[item(0, 2, Value::Null)]);
        assert!(
            page.contains("2 calls were caught up after a stop, up to 35 s late. No other call was made."),
            "{page}"
        );
    }
}
