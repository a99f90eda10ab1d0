use super::*;
use serde_json::json;

fn time(text: &str) -> DateTime<Utc> {
    moment(&json!(format!("2026-11-26T{text}Z"))).unwrap()
}

fn call(slot: &str, at: &str, ended: &str, attempt: i64) -> Value {
    let [slot, at, ended] = [slot, at, ended].map(|text| time(text).to_rfc3339());
    json!({"slot": slot, "at": at, "ended_at": ended, "attempt": attempt, "ok": true})
}

fn told(calls: &[Value], facts: Value) -> String {
    let calls: Vec<&Value> = calls.iter().collect();
    format!("{:?}", answer(time("10:00:00"), time("12:00:00"), &calls, &facts))
}

#[test]
fn each_reason_for_no_call_has_its_answer() {
    let facts =
        |planned: &str| json!({"created": "2026-11-01T00:00:00Z", "planned": time(planned).to_rfc3339(), "jitter": 0});
    let planned = facts("10:00:00");
    let before = call("09:50:00", "09:50:00", "09:50:01", 1);
    let after = call("10:10:00", "10:10:00", "10:10:01", 1);
    let late = call("10:00:00", "10:05:00", "10:05:01", 1);
    let long = call("09:50:00", "09:50:00", "10:03:00", 1);
    let on_time = call("10:00:00", "10:00:30", "10:00:31", 1);
    let mut dropped = on_time.clone();
    dropped["ok"] = false.into();
    dropped["message"] = "dropped: 30 s late".into();
    let retry = call("10:00:00", "10:05:00", "10:05:01", 2);
    for (calls, facts, answer) in [
        (vec![before.clone(), on_time.clone()], planned.clone(), "Called {"),
        (vec![before.clone(), late.clone()], planned.clone(), "Late("),
        (vec![on_time.clone(), late], planned.clone(), "Called { calls: [Object"),
        (vec![before.clone(), dropped], planned.clone(), "Late("),
        (vec![long, after.clone()], planned.clone(), "Running("),
        (vec![before.clone(), after.clone()], planned.clone(), "Gap(Some("),
        (vec![before.clone(), retry], planned.clone(), "Gap(Some("),
        (vec![], planned.clone(), "Gap(None, None)"),
        (vec![before, after], facts("10:10:00"), "NotPlanned(Some("),
        (vec![], json!({"planned": null}), "NotPlanned(None)"),
        (vec![], json!({"planned": planned["planned"], "kept": time("11:00:00").to_rfc3339()}), "Forgotten"),
        (vec![], json!({"created": time("11:00:00").to_rfc3339()}), "NotThereYet("),
        (vec![], json!({"ended": [{"slot": time("10:00:00").to_rfc3339(), "outcome": "expired"}]}), "Ended("),
    ] {
        let told = told(&calls, facts);
        assert!(told.starts_with(answer), "{answer}: {told}");
    }
    let calls = [call("10:00:00", "10:00:30", "10:00:31", 1), call("10:00:40", "10:05:00", "10:05:01", 1)];
    assert!(told(&calls, planned.clone()).contains("late: Some(Object"), "one of two calls came late");
    let within_the_minute = [call("10:00:00", "10:00:42", "10:00:43", 1)];
    assert!(told(&within_the_minute, planned.clone()).contains("late: Some(Object"), "the call came 42 s late");
    assert_eq!(answer(time("12:00:01"), time("12:00:00"), &[], &planned), Answer::ToCome);
}

#[test]
fn a_call_with_jitter_belongs_to_its_planned_time() {
    let jittered = call("10:01:30", "10:01:31", "10:01:32", 1);
    let facts = |jitter: i64| json!({"planned": time("10:00:00").to_rfc3339(), "jitter": jitter});
    assert!(told(std::slice::from_ref(&jittered), facts(60_000)).starts_with("Called {"));
    assert!(told(std::slice::from_ref(&jittered), facts(0)).starts_with("Gap("));
}
