use super::*;
use serde_json::json;

fn at(time: &str) -> String {
    format!("2026-11-26T{time}Z")
}

fn late() -> Wait {
    Wait::of(&json!({"slot": at("10:00:00"), "at": at("10:00:35"), "attempt": 1})).unwrap()
}

fn missing() -> Wait {
    Wait { is_called: false, ..late() }
}

#[test]
fn a_late_call_tells_what_was_stopped() {
    let told = |others: i64, called: i64, near: i64, near_called: i64| {
        inferred(&json!({"others": others, "called": called, "near": near, "near_called": near_called}))
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
    let told = |name: &str, time: &str, called: i64| late().known(&json!({name: at(time), "called": called}));
    for (name, words) in ENDS {
        let sentence = told(name, "10:00:34", 0).unwrap();
        assert!(sentence.starts_with(words) && sentence.ends_with(" UTC."), "{sentence}");
        assert_eq!(told(name, "10:00:34", 1).is_some(), name == "schedule");
        assert_eq!(told(name, "10:00:00", 0), None);
        assert_eq!(told(name, "10:00:36", 0), None);
    }
    assert_eq!(late().known(&json!({"job": null, "called": 0})), None);
}

#[test]
fn a_block_that_has_ended_is_the_cause_if_the_call_fell_into_it() {
    let told = |wait: Wait, since: Value, until: &str, near_called: i64| {
        let block =
            json!({"target": "http://a.example", "since": since, "until": at(until), "by": "alice", "note": "repairs"});
        wait.known(&json!({"stops": {"block": block}, "near_called": near_called, "job": at("10:00:30")}))
            .filter(|told| told.starts_with("The target"))
    };
    let before = || json!(at("09:58:00"));
    let [since, until] =
        ["09:58:00", "10:00:34"].map(|time| absolute(moment(&at(time).into()).unwrap(), crate::clock::now()));
    let sentence = format!("The target http://a.example was blocked from {since} until {until} by alice: “repairs”.");
    assert_eq!(told(late(), before(), "10:00:34", 0), Some(sentence));
    assert!(told(late(), Value::Null, "10:00:34", 0).unwrap().contains(" was blocked until "));
    // The block was extended at 10:00:20, so its start is unknown.
    assert!(told(late(), json!(at("10:00:20")), "10:00:34", 0).unwrap().contains(" was blocked until "));
    assert_eq!(told(late(), json!(at("10:00:20")), "10:00:34", 1), None, "the target got a call before");
    assert_eq!(told(late(), json!(at("10:00:15")), "10:00:20", 0), None, "the call came long after the block");
    assert_eq!(told(late(), before(), "10:00:00", 0), None, "the block ended before the call was due");
    assert_eq!(told(late(), before(), "10:05:00", 0), None, "the call was made during the block");
    assert!(told(missing(), before(), "10:05:00", 0).is_some());
    assert_eq!(told(missing(), json!(at("10:02:00")), "10:05:00", 0), None, "the block began after the call was due");
}

#[test]
fn a_stop_that_lasts_is_the_cause_if_no_call_was_made() {
    let since = at("09:58:00");
    let told = |wait: Wait, name: &str, stop: Value| wait.known(&json!({"stops": {name: stop}}));
    let pause = || json!({"since": since, "until": null, "by": "alice", "note": null});
    let sentence = told(missing(), "pause", pause()).unwrap();
    assert!(sentence.starts_with("Its job is paused since ") && sentence.ends_with(" UTC by alice."), "{sentence}");
    assert_eq!(told(late(), "pause", pause()), None);
    assert_eq!(told(missing(), "pause", json!({"since": at("10:00:20")})), None);
    for (paused, words) in [(true, "This schedule is paused since "), (false, "This schedule is held since ")] {
        let sentence = told(missing(), "hold", json!({"since": since, "paused": paused, "note": "gone"})).unwrap();
        assert!(sentence.starts_with(words) && sentence.ends_with(" UTC: “gone”."), "{sentence}");
    }
    let block = json!({"target": null, "since": since, "until": "infinity", "by": "alice", "note": ""});
    let sentence = told(missing(), "block", block).unwrap();
    assert!(sentence.starts_with("Each target of its job is blocked since "), "{sentence}");
}
