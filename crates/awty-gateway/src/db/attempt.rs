use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Reads a `result` of more than 16 KiB as NULL, so that 500 calls fit into the gateway's memory. The gateway's own
/// results are shorter, but an external worker may store 1 MiB.
macro_rules! attempt {
    () => {
        "pg_catalog.jsonb_build_object('slot', a.first_check_at, 'at', a.leased_at, 'ended_at', a.ended_at, 'attempt', a.attempt,
            'ok', a.ok, 'key', a.key, 'worker', a.worker, 'message', a.message,
            'result', CASE WHEN pg_catalog.octet_length(a.result::text) <= 16384 THEN a.result END)"
    };
}
pub(super) use attempt;

/// Reads each member separately, because an external worker may store values that are nested too deeply for serde_json.
pub(super) fn call(json: &str) -> Option<Value> {
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(json).ok()?;
    let read = |(name, member): (String, Box<RawValue>)| {
        (name, serde_json::from_str::<Value>(member.get()).unwrap_or_default())
    };
    Some(Value::Object(members.into_iter().map(read).collect::<Map<_, _>>()))
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
}
