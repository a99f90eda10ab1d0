//! Invariant: a failed call is made again only if a new attempt may succeed. A call is marked `not_started` only if no
//! byte of its request was sent.

use super::definition::Definition;
use super::request::Delivery;
use super::retry;
use crate::duration::{self, Length};
use crate::net::fault::{Failure, Fault};
use crate::net::report::{Answer, Report};
use chrono::{DateTime, Utc};
use hyper::StatusCode;

const LONGEST_NOTE: usize = 200;

#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Done { again: Option<DateTime<Utc>>, stop: Option<String>, note: Option<String> },
    Failed(Failed),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Failed {
    pub message: String,
    pub fault: &'static str,
    /// `None` means that this call is not attempted again.
    pub retry_at: Option<DateTime<Utc>>,
    pub not_started: bool,
    pub target_down: bool,
    pub block_until: Option<DateTime<Utc>>,
    pub gone: bool,
}

pub fn dropped(delivery: &Delivery, definition: &Definition, now: DateTime<Utc>) -> Option<Verdict> {
    let late = now - delivery.next_check_at;
    (late > definition.max_lateness?.delta()).then(|| {
        let message = format!("dropped: {} s late", late.num_seconds());
        Verdict::Failed(Failed { message, fault: "dropped", not_started: true, ..Failed::default() })
    })
}

pub fn verdict(
    delivery: &Delivery,
    definition: &Definition,
    report: &Report,
    now: DateTime<Utc>,
    spread: f64,
) -> Verdict {
    let retry = |asked| retry::next(&definition.retries, delivery.attempt, now, asked, spread);
    match &report.outcome {
        Ok(answer) if definition.success.contains(answer.status) => done(answer, now),
        Ok(answer) => Verdict::Failed(refused(answer, now, &retry)),
        Err(failure) => Verdict::Failed(unanswered(failure, report.sent, &retry)),
    }
}

fn done(answer: &Answer, now: DateTime<Utc>) -> Verdict {
    let stop = answer.headers.contains_key("awty-stop");
    let stop =
        stop.then(|| header(answer, "awty-stop").unwrap_or_else(|| "the endpoint asks for no more calls".into()));
    let (again, note) = match header(answer, "awty-again").map(|text| (again(&text, now), text)) {
        Some((Some(at), _)) => (Some(at), None),
        Some((None, text)) => (None, Some(format!("Awty-Again is neither a duration nor a time: {text}"))),
        None => (None, None),
    };
    Verdict::Done { again, stop, note }
}

fn again(text: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let length = duration::parse(text).ok().and_then(|length: Length| now.checked_add_signed(length.delta()));
    length.or_else(|| DateTime::parse_from_rfc3339(text).ok().map(|at| at.to_utc()))
}

type Retry<'a> = dyn Fn(Option<DateTime<Utc>>) -> Option<DateTime<Utc>> + 'a;

fn refused(answer: &Answer, now: DateTime<Utc>, retry: &Retry<'_>) -> Failed {
    let status = answer.status;
    let reason = StatusCode::from_u16(status).ok().and_then(|code| code.canonical_reason()).unwrap_or("unknown");
    let mut failed = Failed { message: format!("{status} {reason}"), fault: "status", ..Failed::default() };
    match status {
        300..400 => {
            failed.fault = "redirect";
            if let Some(to) = header(answer, "location") {
                failed.message.push_str(&format!(": not followed to {to}"));
            }
        }
        408 | 425 | 429 | 500 | 502..=504 | 507 => {
            let asked = header(answer, "retry-after").and_then(|text| retry::asked(&text, now));
            failed.retry_at = retry(asked);
            failed.block_until = asked.filter(|_| matches!(status, 429 | 503));
            failed.target_down = matches!(status, 502..=504);
        }
        410 => failed.gone = true,
        _ => {}
    }
    failed
}

fn unanswered(failure: &Failure, sent: bool, retry: &Retry<'_>) -> Failed {
    let is_final = failure.fault == Fault::BlockedAddress;
    let how = match (failure.fault, sent) {
        (Fault::Timeout, true) => " (sent, no answer)",
        (_, false) => " (not sent)",
        _ => "",
    };
    Failed {
        message: format!("{}{how}", cut(&failure.to_string())),
        fault: failure.fault.name(),
        retry_at: if is_final { None } else { retry(None) },
        not_started: !sent,
        target_down: failure.fault.is_target_down(),
        ..Failed::default()
    }
}

fn header(answer: &Answer, name: &str) -> Option<String> {
    let value = answer.headers.get(name)?;
    let text = cut(&String::from_utf8_lossy(value.as_bytes()));
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn cut(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST_NOTE).collect()
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
