use super::*;
use crate::net::report::Phases;
use bytes::Bytes;
use chrono::TimeDelta;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use serde_json::json;
use serde_json::value::to_raw_value;

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn in_seconds(seconds: i64) -> Option<DateTime<Utc>> {
    Some(now() + TimeDelta::seconds(seconds))
}

fn delivery(attempt: u32) -> Delivery {
    let slot = now() - TimeDelta::seconds(2);
    Delivery {
        job: "http.app".into(),
        tenant: 7,
        entity_name: "https://a.example".into(),
        entity_key: "/".into(),
        attempt,
        check_count: 0,
        first_check_at: slot,
        next_check_at: slot,
        key: "K".into(),
    }
}

fn report(outcome: Result<Answer, Failure>, sent: bool) -> Report {
    Report { address: None, sent, phases: Phases::default(), outcome }
}

fn answered(status: u16, headers: &[(&'static str, &str)]) -> Verdict {
    let pairs = headers
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap()));
    let answer = Answer { status, headers: HeaderMap::from_iter(pairs), body: Bytes::new() };
    verdict(&delivery(1), &Definition::default(), &report(Ok(answer), true), now(), 0.0)
}

fn failed(status: u16, headers: &[(&'static str, &str)]) -> Failed {
    match answered(status, headers) {
        Verdict::Failed(failed) => failed,
        Verdict::Done { .. } => panic!("{status} was a success"),
    }
}

fn unanswered(fault: Fault, sent: bool, attempt: u32) -> Failed {
    let report = report(Err(Failure::new(fault, "why")), sent);
    match verdict(&delivery(attempt), &Definition::default(), &report, now(), 0.0) {
        Verdict::Failed(failed) => failed,
        Verdict::Done { .. } => panic!("no answer was a success"),
    }
}

#[test]
fn each_status_has_its_verdict() {
    for status in 200..600_u16 {
        let retried = matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504 | 507);
        match answered(status, &[]) {
            Verdict::Done { again, stop, note } => {
                assert!((200..300).contains(&status), "{status}");
                assert_eq!((again, stop, note), (None, None, None));
            }
            Verdict::Failed(failed) => {
                assert!(status >= 300, "{status}");
                assert_eq!(failed.retry_at, in_seconds(10).filter(|_| retried), "{status}");
                assert_eq!(failed.target_down, matches!(status, 502..=504), "{status}");
                assert_eq!(failed.gone, status == 410, "{status}");
                assert!(
                    !failed.not_started
                        && failed.block_until.is_none()
                        && failed.message.starts_with(&status.to_string())
                );
            }
        }
    }
}

#[test]
fn an_endpoint_asks_again_and_stops_as_a_job_function_would() {
    let done = |again, stop: Option<&str>| Verdict::Done { again, stop: stop.map(Into::into), note: None };
    assert_eq!(answered(200, &[("awty-again", "5 min")]), done(in_seconds(300), None));
    assert_eq!(answered(204, &[("awty-again", "2027-01-15T08:01:00Z")]), done(in_seconds(60), None));
    assert_eq!(answered(200, &[("awty-stop", " it was paid ")]), done(None, Some("it was paid")));
    assert_eq!(answered(200, &[("awty-stop", "")]), done(None, Some("the endpoint asks for no more calls")));
    let Verdict::Done { again: None, note: Some(note), .. } = answered(200, &[("awty-again", "soon")]) else {
        panic!()
    };
    assert!(note.contains("soon"));
}

#[test]
fn retry_after_puts_off_and_on_429_and_503_blocks_the_target() {
    for (status, blocks) in [(429, true), (503, true), (500, false), (408, false)] {
        let failed = failed(status, &[("retry-after", "120")]);
        assert_eq!(
            (failed.retry_at, failed.block_until),
            (in_seconds(120), in_seconds(120).filter(|_| blocks)),
            "{status}"
        );
    }
    assert_eq!(failed(404, &[("retry-after", "120")]).retry_at, None);
    assert_eq!(failed(429, &[("retry-after", "9999999")]).block_until, in_seconds(3_600));
}

#[test]
fn a_redirect_is_shown_and_not_followed() {
    let failed = failed(302, &[("location", "https://b.example/\u{9b}[31m")]);
    assert_eq!((failed.fault, failed.retry_at), ("redirect", None));
    assert!(
        failed.message.contains("https://b.example/ [31m") && !failed.message.contains('\u{9b}'),
        "{}",
        failed.message
    );
}

#[test]
fn what_provably_never_left_is_untouched() {
    let timeout = unanswered(Fault::Timeout, true, 1);
    assert!(!timeout.not_started && timeout.target_down && timeout.message.ends_with("(sent, no answer)"));
    let timeout = unanswered(Fault::Timeout, false, 1);
    assert!(timeout.not_started && timeout.message.ends_with("(not sent)"));
    assert!(unanswered(Fault::Name, false, 1).not_started);
}

#[test]
fn no_answer_is_retried_until_the_attempts_are_used_up_and_a_blocked_address_never() {
    assert_eq!(unanswered(Fault::Connect, false, 2).retry_at, in_seconds(20));
    assert_eq!(unanswered(Fault::Connect, false, 3).retry_at, None);
    let blocked = unanswered(Fault::BlockedAddress, false, 1);
    assert_eq!((blocked.retry_at, blocked.target_down, blocked.fault), (None, false, "blocked-address"));
}

#[test]
fn a_call_that_is_too_late_is_dropped() {
    let with = |text: &str| Definition::of_args(Some(&to_raw_value(&json!({"max_lateness": text})).unwrap())).unwrap();
    assert_eq!(dropped(&delivery(1), &Definition::default(), now()), None);
    assert_eq!(dropped(&delivery(1), &with("2 s"), now()), None);
    let Some(Verdict::Failed(failed)) = dropped(&delivery(1), &with("1 s"), now()) else { panic!() };
    assert_eq!((failed.message.as_str(), failed.not_started, failed.retry_at), ("dropped: 2 s late", true, None));
}

proptest! {
    #[test]
    fn no_answer_upsets_it(status in 100_u16..1_000, name in 0_usize..4, value in prop::collection::vec(any::<u8>(), 0..300)) {
        let name = ["awty-again", "awty-stop", "retry-after", "location"][name];
        let Ok(value) = HeaderValue::from_bytes(&value) else { return Ok(()) };
        let headers = HeaderMap::from_iter([(HeaderName::from_static(name), value)]);
        let answer = Answer { status, headers, body: Bytes::new() };
        match verdict(&delivery(1), &Definition::default(), &report(Ok(answer), true), now(), 0.5) {
            Verdict::Done { stop, note, .. } => {
                let texts = [stop, note];
                prop_assert!(texts.iter().flatten().all(|text| text.len() < 1_200 && !text.chars().any(char::is_control)));
            }
            Verdict::Failed(failed) => prop_assert!(failed.message.len() < 1_200 && !failed.message.chars().any(char::is_control)),
        }
    }
}
