//! Invariant: control characters in an endpoint's text are escaped before it is stored. The gateway stores at most
//! [`KEPT`] bytes of an answer's body or of a redirect's location.

use crate::net::report::{KEPT, Phases, Report};
use serde_json::{Map, Value, json};
use std::time::Duration;

pub struct Facts<'a> {
    pub lateness: f64,
    pub queue: Duration,
    pub fault: Option<&'static str>,
    pub keep_body: bool,
    pub note: Option<&'a str>,
}

pub fn of_call(report: &Report, said: &Facts<'_>) -> Value {
    let mut all = Map::new();
    all.insert("lateness".into(), json!(said.lateness));
    all.insert("duration".into(), json!(seconds(report.phases.total)));
    all.insert("sent".into(), json!(report.sent));
    all.insert("phases".into(), phases(&report.phases, said.queue));
    let mut add = |name: &str, value: Option<Value>| drop(value.map(|value| all.insert(name.into(), value)));
    add("address", report.address.map(|address| json!(address.to_string())));
    add("fault", said.fault.map(Value::from));
    add("note", said.note.map(Value::from));
    if let Ok(answer) = &report.outcome {
        let location = answer.headers.get("location").filter(|_| (300..400).contains(&answer.status));
        add("status", Some(json!(answer.status)));
        add("location", location.map(|location| json!(escaped(location.as_bytes()))));
        add("body", (said.keep_body && !answer.body.is_empty()).then(|| json!(escaped(&answer.body))));
    }
    Value::Object(all)
}

pub fn of_none(lateness: f64, fault: &'static str) -> Value {
    json!({"lateness": lateness, "duration": 0, "sent": false, "fault": fault})
}

fn seconds(length: Duration) -> f64 {
    (length.as_secs_f64() * 1e6).round() / 1e6
}

fn phases(phases: &Phases, queue: Duration) -> Value {
    let parts = [
        ("queue", Some(queue)),
        ("name", phases.name),
        ("connect", phases.connect),
        ("tls", phases.tls),
        ("first_byte", phases.first_byte),
        ("total", Some(phases.total)),
    ];
    parts
        .iter()
        .filter_map(|(name, length)| Some(((*name).to_owned(), json!(seconds((*length)?)))))
        .collect::<Map<_, _>>()
        .into()
}

fn escaped(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(KEPT)]);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::fault::{Failure, Fault};
    use crate::net::report::Answer;
    use bytes::Bytes;
    use hyper::header::{HeaderMap, HeaderName, HeaderValue};

    fn report(outcome: Result<Answer, Failure>) -> Report {
        let phases = Phases { total: Duration::from_micros(1_234_567), ..Phases::default() };
        Report { address: Some("1.2.3.4:443".parse().unwrap()), sent: true, phases, outcome }
    }

    fn answer(status: u16, body: &[u8]) -> Answer {
        let location = (HeaderName::from_static("location"), HeaderValue::from_static("https://b.example/"));
        Answer { status, headers: HeaderMap::from_iter([location]), body: Bytes::copy_from_slice(body) }
    }

    fn said(keep_body: bool) -> Facts<'static> {
        Facts { lateness: 0.25, queue: Duration::ZERO, fault: None, keep_body, note: None }
    }

    #[test]
    fn lateness_and_duration_are_seconds() {
        let found = of_call(&report(Ok(answer(200, b"body"))), &said(false));
        assert_eq!(
            (&found["lateness"], &found["duration"], &found["status"]),
            (&json!(0.25), &json!(1.234567), &json!(200))
        );
        assert_eq!((found.get("body"), found.get("location")), (None, None));
        assert_eq!(found["phases"]["total"], json!(1.234567));
    }

    #[test]
    fn a_body_is_cut_and_escaped() {
        let hostile = [b"\0\x1b[31m<script>\xff".as_slice(), &[b'a'; 2_000]].concat();
        let found = of_call(&report(Ok(answer(500, &hostile))), &said(true));
        let body = found["body"].as_str().unwrap();
        assert!(body.starts_with("\\u{0}\\u{1b}[31m<script>\u{fffd}a") && body.len() < 2 * KEPT, "{body}");
    }

    #[test]
    fn a_redirect_says_where_to_and_a_fault_has_no_status() {
        assert_eq!(of_call(&report(Ok(answer(302, b""))), &said(true))["location"], json!("https://b.example/"));
        let found =
            of_call(&report(Err(Failure::new(Fault::Timeout, "x"))), &Facts { fault: Some("timeout"), ..said(true) });
        assert_eq!((found.get("status"), &found["fault"]), (None, &json!("timeout")));
    }
}
