use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Members of a result that the API and the page show. The gateway's own results have no other members.
const SHOWN: [&str; 10] =
    ["status", "fault", "duration", "lateness", "sent", "address", "location", "note", "body", "phases"];
const PHASES: [&str; 6] = ["queue", "name", "connect", "tls", "first_byte", "total"];

/// Reads a `result` of more than 16 KiB as NULL, so that 500 calls fit into the gateway's memory. The gateway's own
/// results are shorter, but an external worker may store 1 MiB.
macro_rules! result {
    ($call:literal) => {
        concat!("CASE WHEN pg_catalog.octet_length(", $call, ".result::text) <= 16384 THEN ", $call, ".result END")
    };
}
pub(super) use result;

macro_rules! attempt {
    () => {
        concat!(
            "pg_catalog.jsonb_build_object('slot', a.first_check_at, 'at', a.leased_at, 'ended_at', a.ended_at, 'attempt', a.attempt,
            'ok', a.ok, 'key', a.key, 'worker', a.worker, 'message', a.message, 'result', ",
            $crate::db::attempt::result!("a"),
            ")"
        )
    };
}
pub(super) use attempt;

pub(super) fn call(json: &str) -> Option<Value> {
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(json).ok()?;
    let read = |(name, member): (String, Box<RawValue>)| {
        let value = if name == "result" { shown(member.get(), &SHOWN) } else { scalar(member.get()) };
        (name, value)
    };
    Some(Value::Object(members.into_iter().map(read).collect()))
}

/// Reads the members of an object that have one of the names.
fn shown(json: &str, names: &[&str]) -> Value {
    let Ok(members) = serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(json) else { return Value::Null };
    let read = |(name, member): (String, Box<RawValue>)| {
        let value = if name == "phases" { shown(member.get(), &PHASES) } else { scalar(member.get()) };
        (name, value)
    };
    members.into_iter().filter(|(name, _)| names.contains(&name.as_str())).map(read).collect::<Map<_, _>>().into()
}

/// Reads an object or an array as null. An external worker may store nested values, whose [`Value`] needs a hundred
/// times the memory of their text.
fn scalar(json: &str) -> Value {
    if json.starts_with(['{', '[']) { Value::Null } else { serde_json::from_str(json).unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_is_read_also_where_its_result_is_too_deep() {
        let deep = format!("{}1{}", "[".repeat(2_000), "]".repeat(2_000));
        let read = call(&format!("{{\"ok\": true, \"result\": {deep}, \"key\": \"k\"}}"));
        assert_eq!(read, Some(json!({"ok": true, "result": null, "key": "k"})));
        let read = call("{\"ok\": false, \"result\": {\"status\": 404}}");
        assert_eq!(read, Some(json!({"ok": false, "result": {"status": 404}})));
        assert_eq!(call("null"), None);
    }

    #[test]
    fn a_result_is_read_without_nested_and_unknown_values() {
        let result = json!({"status": 200, "fault": "x", "duration": 0.5, "lateness": 1e-6, "sent": true, "address": "a",
            "location": "l", "note": "n", "body": "b",
            "phases": {"queue": 0, "name": 1, "connect": 2, "tls": 3, "first_byte": 4, "total": 5}});
        let read = |result: &Value| call(&json!({"ok": true, "result": result}).to_string()).unwrap()["result"].clone();
        assert_eq!(read(&result), result);
        let nested: Map<String, Value> = SHOWN.iter().map(|name| ((*name).into(), json!([{"": {}}]))).collect();
        let nulls: Map<String, Value> = SHOWN.iter().map(|name| ((*name).into(), Value::Null)).collect();
        assert_eq!(read(&nested.into()), Value::Object(nulls));
        let other = json!({"n": 1, "status": 1, "phases": {"n": 1, "phases": 1, "tls": {"n": 1}}});
        assert_eq!(read(&other), json!({"status": 1, "phases": {"tls": null}}));
    }
}
