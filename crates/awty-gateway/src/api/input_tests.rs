use super::*;
use crate::api::problem::{MAX_FAULTS, Problem};
use crate::api::unchanged::restore;
use serde_json::{Map, Value, json};

const PERIODS: Periods = Periods { min: Length::seconds(1), max: Length::seconds(366 * 86_400), is_slot: false };

fn object(value: &Value) -> Object {
    serde_json::from_str(&value.to_string()).unwrap()
}

fn read(value: Value) -> Result<Arguments, String> {
    let read = schedule(object(&value), None, PERIODS).map(|(_, arguments)| arguments);
    read.map_err(|refusal| match refusal {
        Refusal::Fields(faults) => {
            faults.iter().map(|fault| format!("{} {}", fault.pointer, fault.reason)).collect::<Vec<_>>().join("; ")
        }
        Refusal::Uri(fault) | Refusal::Period(fault) => format!("{} {}", fault.pointer, fault.reason),
    })
}

#[test]
fn a_schedule_becomes_arguments() {
    let found = read(
        json!({"uri": "HTTPS://a.example", "every": "1h 30m", "jitter": "0 s", "retries": {"first_delay": "5 s", "max_attempts": 2}, "sign": null,
        "body": null, "labels": ["x"]}),
    );
    let expected = vec![
        ("uri", Argument::Text("https://a.example/".into())),
        ("every", Argument::Interval("5400000 milliseconds".into())),
        ("jitter", Argument::Interval("0 milliseconds".into())),
        ("body", Argument::JsonText("null".into())),
        ("retries", Argument::Json(json!({"first_delay": "5000 milliseconds", "max_attempts": 2}))),
        ("labels", Argument::Texts(vec!["x".into()])),
    ];
    assert_eq!(found.unwrap(), expected);
}

#[test]
fn a_period_below_a_slot_says_which_setting_allows_it() {
    let ask = |is_slot, every: &str| {
        let fields = object(&json!({"uri": "http://a/", "every": every}));
        let periods = Periods { min: Length::seconds(60), is_slot, ..PERIODS };
        let Err(Refusal::Period(fault)) = schedule(fields, None, periods) else { panic!("{every} was taken") };
        fault.reason
    };
    assert!(ask(true, "10 s").ends_with(
        "write 1m to 52w 2d, or let a superuser run ALTER SYSTEM SET awty.slot = '1s' and SELECT pg_reload_conf()"
    ));
    let shorter = |millis| {
        let fields = object(&json!({"uri": "http://a/", "every": "500 ms"}));
        let periods = Periods { min: Length::millis(millis), is_slot: true, ..PERIODS };
        let Err(Refusal::Period(fault)) = schedule(fields, None, periods) else { panic!("it was taken") };
        fault.reason
    };
    assert!(shorter(1_000).ends_with("write 1s to 52w 2d"), "the slot is 1 s already");
    assert!(ask(true, "400 d").ends_with("write 1m to 52w 2d") && ask(false, "10 s").ends_with("write 1m to 52w 2d"));
}

/// The names would be copied several times before the database refuses their number.
#[test]
fn more_headers_than_a_call_can_have_are_refused_at_once() {
    let headers: Map<String, Value> = (0..1_001).map(|n| (format!("a{n}"), "".into())).collect();
    let refused = read(json!({"uri": "http://a/", "every": "1 h", "headers": headers})).unwrap_err();
    assert_eq!(refused, "/headers has more than 1000 headers; send fewer headers");
}

/// Each fault becomes an object of the answer, so a body of 512 KiB must not have as many faults as names.
#[test]
fn a_body_with_thousands_of_wrong_names_gets_few_faults() {
    let names =
        |prefix: &str, count: usize| (0..count).map(|n| (format!("{prefix}{n}"), json!("•••"))).collect::<Map<_, _>>();
    let with = |name: &str, value: Value| object(&json!({"uri": "http://a/", "every": "1 s", name: value}));
    let unknown = with("x", 1.into()).into_iter().chain(object(&names("x", 5_000).into())).collect();
    for fields in [unknown, with("headers", names("x y", 1_000).into()), with("retries", names("x", 5_000).into())] {
        let Err(Refusal::Fields(faults)) = schedule(fields, None, PERIODS) else { panic!("it was taken") };
        assert_eq!(faults.len(), MAX_FAULTS);
    }
    let long = json!({format!("{}é", "\x7f".repeat(100_000)): 1});
    let Err(Refusal::Fields(faults)) = schedule(with("headers", long), None, PERIODS) else { panic!("it was taken") };
    let answer = Problem::fields("invalid-field", &faults).body().to_string();
    assert!(answer.len() < 5_000 && answer.contains("write for example X-From"), "{}", answer.len());
    let (_, mut arguments) = schedule(with("headers", names("x", 1_000).into()), None, PERIODS).unwrap();
    assert_eq!(restore(&mut arguments, None).unwrap_err().len(), MAX_FAULTS, "no value is stored for a hidden one");
}

#[test]
fn each_fault_is_named() {
    let refused = |value| read(value).unwrap_err();
    assert!(refused(json!({"every": "10 s"})).starts_with("/uri is missing"));
    assert!(refused(json!({"uri": "x", "every": "10 s"})).starts_with("/uri is malformed"));
    assert!(
        refused(json!({"uri": "http://a/", "every": 10_000}))
            .contains("/every 10000 has no unit; write 10 s or 10000 ms")
    );
    assert!(refused(json!({"uri": "http://a/", "every": "100 ms"})).contains("/every is 100ms; write 1s to"));
    assert!(refused(json!({"uri": "http://a/"})).contains("exactly one"));
    assert!(refused(json!({"uri": "http://a/", "every": "0 s"})).contains("/every is zero"));
    assert!(refused(json!({"uri": "http://a/", "every": "1 s", "timeout": "0 s"})).contains("/timeout is zero"));
    assert!(refused(json!({"uri": "http://a/", "every": "1 s", "cron": "* * * * *"})).contains("exactly one"));
    let long = json!({"uri": "http://a/", "every": "1 s", "body": [serde_json::from_str::<Value>("1e1001").unwrap()]});
    assert!(refused(long).contains("/body has a number of more than 1000 characters"));
    let both = refused(
        json!({"uri": "http://a/", "every": "1 s", "tiemout": 1, "retries": {"max_attempts": 0, "x": 1}, "headers": {"Host": "x"}}),
    );
    for part in [
        "/tiemout is not a field",
        "/retries/max_attempts is out of range",
        "/retries/x is no",
        "/headers the header Host",
    ] {
        assert!(both.contains(part), "{part}: {both}");
    }
}
