//! Answers for one endpoint: was it called at this time, and if not, why?

use super::calls::{self, PastCall, lateness};
use super::cause::Wait;
use super::fail::Fail;
use super::parts::{Mark, PATIENCE, entity_place, mark, string, table};
use super::past_answer::{Answer, answer, is_dropped};
use super::state::Page;
use super::visit::{Reading, Visit};
use super::words::{absolute, count, encoded, millis, moment};
use super::zone;
use crate::db::{calls as db, views};
use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};
use serde_json::Value;

/// The table shows this many calls before the given time, and as many after it.
const SHOWN: usize = 5;

/// Number of calls to read from the start of the given minute, in which the endpoint may have been called 60 times.
const READ: i64 = 100;

/// Outcomes of checks that ended because their calls had not been made in time.
const MISSED: [&str; 2] = ["missed", "expired"];

pub struct Past {
    at: DateTime<Utc>,
    /// Calls before and after the given time, sorted by their end.
    calls: Vec<db::Item>,
    facts: Value,
    /// Time during which a call of this endpoint was late or missing, and facts about this time. `None` if no call was
    /// late or missing.
    wait: Option<(Wait, Value)>,
}

impl Past {
    pub async fn read(page: &Page, reading: &Reading, id: &str, at: DateTime<Utc>) -> Result<Self, Fail> {
        let from = at.to_rfc3339();
        let mut calls = db::attempts(reading, id, Some(&from), Some(0), SHOWN as i64).await?;
        calls.reverse();
        calls.extend(db::attempts_after(reading, id, &from, READ).await?);
        let facts = db::facts(reading, id, &from).await?;
        let now = crate::clock::now();
        let answer = answer(at, now, &calls.iter().map(|(call, _)| call).collect::<Vec<_>>(), &facts);
        let wait = match wait(&answer, at, now, &facts) {
            Some(wait) => {
                let (slot, end) = (wait.slot.to_rfc3339(), wait.end.to_rfc3339());
                Some((wait, calls::meanwhile(page, reading, id, &slot, &end).await?))
            }
            None => None,
        };
        Ok(Past { at, calls, facts, wait })
    }

    fn answer(&self) -> Answer<'_> {
        answer(self.at, crate::clock::now(), &self.calls.iter().map(|(call, _)| call).collect::<Vec<_>>(), &self.facts)
    }

    pub fn draw(&self, id: &str) -> Markup {
        let now = crate::clock::now();
        let answer = self.answer();
        let word = match &answer {
            Answer::Called { calls, late: Some(late) } if has(calls, late) => mark(Mark::Late, "Yes, but late."),
            Answer::Called { late: Some(_), .. } => mark(Mark::Late, "Yes, but not each time."),
            Answer::Called { calls, .. } if calls.iter().all(|call| call["ok"] == true) => mark(Mark::Good, "Yes."),
            Answer::Called { .. } => mark(Mark::Bad, "Yes, and it failed."),
            Answer::NotPlanned(_) | Answer::ToCome | Answer::NotThereYet(_) => mark(Mark::Wait, "No."),
            Answer::Forgotten => mark(Mark::Wait, "That is no longer known."),
            _ => mark(Mark::Late, "No."),
        };
        html! {
            section.notice.past role="status" {
                h2 { "Was it called at " (absolute(self.at, now)) "?" }
                p { (word) " " (self.sentence(&answer)) }
                @if matches!(answer, Answer::Forgotten) {
                    p { a href=(format!("/schedules/{id}?bucket=1h&until={}", encoded(&self.at.to_rfc3339()))) { "The numbers of each hour" } }
                }
            }
            (self.around(id, now))
        }
    }

    fn sentence(&self, answer: &Answer) -> String {
        let now = crate::clock::now();
        let time = |value: &Value| moment(value).map(|at| absolute(at, now)).unwrap_or_default();
        let cause = || self.wait.as_ref().map(|(wait, meanwhile)| wait.why(meanwhile)).unwrap_or_default();
        let known = || {
            let known = self.wait.as_ref().and_then(|(wait, meanwhile)| wait.known(meanwhile));
            known.map(|known| format!(" {known}")).unwrap_or_default()
        };
        match answer {
            Answer::ToCome => "That time is still to come.".into(),
            Answer::NotThereYet(created) => format!("It was created at {}.", absolute(*created, now)),
            Answer::Called { calls, late: None } => called(calls, &time),
            Answer::Called { calls, late: Some(late) } if calls.len() == 1 && has(calls, late) => {
                format!("{} {}", called(calls, &time), cause())
            }
            Answer::Called { calls, late: Some(late) } => {
                format!("{} {}", called(calls, &time), self.sentence(&Answer::Late(late)))
            }
            Answer::Late(call) if is_dropped(call) => {
                format!("The call for {} was not made: {}.{}", time(&call["slot"]), string(&call["message"]), known())
            }
            Answer::Late(call) => {
                let late = lateness(call).map(|late| millis(late.num_milliseconds())).unwrap_or_default();
                let (slot, made) = (time(&call["slot"]), time(&call["at"]));
                format!("The call for {slot} came {late} late, at {made}. {}", cause())
            }
            Answer::Running(call) => format!(
                "The call of {} lasted until {}. A slot that passes during a call is left out.",
                time(&call["at"]),
                time(&call["ended_at"])
            ),
            Answer::Ended(ended) => {
                let message = ended["message"].as_str().map(|message| format!(": {message}")).unwrap_or_default();
                let (slot, outcome) = (time(&ended["slot"]), string(&ended["outcome"]));
                format!("The check for {slot} ended as {outcome}{message}.{}", known())
            }
            Answer::NotPlanned(next) => match next {
                Some(next) => format!("Its plan has no call then. The next planned time was {}.", absolute(*next, now)),
                None => "Its plan has no call then.".into(),
            },
            Answer::Forgotten => "Single calls are kept for awty.attempt_retention.".into(),
            Answer::Gap(before, after) => {
                let before = before.map(|call| format!("The call before was at {}.", time(&call["at"])));
                let next = match after {
                    Some(call) => format!("The next call was at {}.", time(&call["at"])),
                    None => "No call has ended since then.".into(),
                };
                [before, Some(next), Some(cause())].into_iter().flatten().collect::<Vec<_>>().join(" ")
            }
        }
    }

    fn around(&self, id: &str, now: DateTime<Utc>) -> Markup {
        let centre = match self.answer() {
            Answer::Called { late: Some(call), .. } | Answer::Late(call) => moment(&call["at"]),
            _ => Some(self.at),
        };
        let place = self.calls.iter().position(|(call, _)| moment(&call["at"]) >= centre).unwrap_or(self.calls.len());
        let (before, after) = self.calls.split_at(place);
        let gap = |call: &db::Item, next: &db::Item| {
            let length = moment(&next.0["at"])? - moment(&call.0["ended_at"])?;
            let words = format!("no call for {}", millis(length.num_milliseconds()));
            Some(vec![html! { (mark(Mark::Wait, &words)) }, html! {}, html! {}, html! {}, html! {}])
        };
        let gap = before.last().zip(after.first()).and_then(|(call, next)| gap(call, next));
        let shown =
            |calls: &[db::Item]| calls.iter().map(|(call, key)| PastCall { id, call, key }.row()).collect::<Vec<_>>();
        let mut rows = shown(&before[before.len().saturating_sub(SHOWN)..]);
        rows.extend(gap);
        rows.extend(shown(&after[..after.len().min(SHOWN)]));
        html! { @if !rows.is_empty() { (table(&format!("Calls around {}", absolute(self.at, now)), &calls::COLUMNS, rows)) } }
    }
}

/// Returns the view of an entity. If the visitor asks about a time at which an endpoint was called, returns the view of
/// the endpoint's schedule at that time.
pub async fn place(visit: &Visit, name: &str, key: &str) -> Result<String, Fail> {
    let Some(at) = visit.query.get("at") else { return Ok(entity_place(name, key)) };
    let reading = visit.read().await?;
    let schedule = views::schedule_of(&reading, name, key).await?;
    visit.end(reading).await?;
    Ok(match schedule {
        Some(id) => format!("/schedules/{id}?at={}", encoded(at)),
        None => entity_place(name, key),
    })
}

/// Asks whether an endpoint was called at a time. `place` is the view of its schedule.
pub fn ask(place: &str, at: &str) -> Markup {
    html! {
        form.filters method="get" action=(place) {
            label { "Was it called at (" (zone::name()) ") " input name="at" type="datetime-local" value=(at) required; }
            button { "Look" }
        }
    }
}

/// Returns the time during which the endpoint should have been called at `at`, but was not.
fn wait(answer: &Answer, at: DateTime<Utc>, now: DateTime<Utc>, facts: &Value) -> Option<Wait> {
    let jitter = TimeDelta::milliseconds(facts["jitter"].as_i64().unwrap_or(0));
    match answer {
        Answer::Called { late: Some(call), .. } | Answer::Late(call) => Wait::of(call),
        Answer::Ended(ended) if MISSED.contains(&string(&ended["outcome"])) => {
            let (slot, end) = (moment(&ended["slot"])?, moment(&ended["at"])?);
            Some(Wait { slot, patience: PATIENCE, end, is_called: false })
        }
        Answer::Gap(_, next) => Some(Wait {
            slot: moment(&facts["planned"]).unwrap_or(at),
            patience: jitter + PATIENCE,
            end: next.and_then(|next| moment(&next["at"])).unwrap_or(now),
            is_called: next.is_some(),
        }),
        _ => None,
    }
}

fn has(calls: &[&Value], call: &Value) -> bool {
    calls.iter().any(|made| made["at"] == call["at"])
}

fn called(calls: &[&Value], time: &impl Fn(&Value) -> String) -> String {
    let failed = calls.iter().filter(|call| call["ok"] != true).count();
    let number = |calls: usize| i64::try_from(calls).unwrap_or(i64::MAX);
    match calls {
        [call] => {
            let late =
                lateness(call).map(|late| format!(", {} late", millis(late.num_milliseconds()))).unwrap_or_default();
            let message =
                call["message"].as_str().map(|message| format!(" The error was: {message}")).unwrap_or_default();
            format!("It was called at {}{late}.{message}", time(&call["at"]))
        }
        [first, ..] => {
            let failed =
                if failed > 0 { format!(" {} failed.", count(number(failed), "call", "calls")) } else { String::new() };
            let first = time(&first["at"]);
            format!(
                "It was called {} in this minute, first at {first}.{failed}",
                super::words::times(number(calls.len()))
            )
        }
        [] => String::new(),
    }
}
