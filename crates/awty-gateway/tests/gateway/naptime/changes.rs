use super::at;
use crate::people::{is, open, problem};
use crate::shop::until;
use serde_json::json;

const URI: &str = "http://a.example/x";
/// This statement has the same effect as an answer with the header `Awty-Stop`.
const CANCEL: &str = "SELECT awty.cancel('http://a.example', '/x', 'http.app')";

#[test]
fn what_has_ended_goes_on_when_it_is_put_again() {
    let (shop, _gateway, client) = open();
    let place = at(URI, "1 h");
    let put = |headers: &str| client.ask_with("PUT", &place, "", headers);
    assert_eq!(put("").status, 201);
    shop.app(CANCEL);
    let ended = client.get(&place);
    assert_eq!(ended.json()["state"], json!("ended"), "{}", ended.text);
    for condition in ["If-None-Match: *\r\n", "If-Match: \"0-0\"\r\n"] {
        assert_eq!(problem(&put(condition)), is(412, "precondition-failed"), "{condition}");
    }
    assert_eq!(problem(&client.ask("PUT", &at(URI, "2 h"), "")), is(409, "uri-already-scheduled"));
    assert_eq!(client.get(&place).json()["state"], json!("ended"));
    let again = put(&format!("If-Match: {}\r\n", ended.header("etag")));
    assert_eq!((again.status, &again.json()["state"]), (200, &json!("active")), "{}", again.text);
    assert_eq!(shop.text("SELECT count(*) FROM awty.future_job WHERE job = 'http.app'"), "1");
    let over = "UPDATE awty_http_internal.endpoint SET ends = now() - interval '1 s'";
    shop.cluster.execute("postgres", &[over, CANCEL]);
    let anew = put("").json();
    assert_eq!((&anew["state"], &anew["ends"]), (&json!("active"), &json!(null)), "{anew}");
    let schedule = format!("/v1/schedules/{}", anew["id"].as_str().unwrap());
    assert_eq!(client.ask("POST", &format!("{schedule}/pause"), "").status, 200);
    assert_eq!(put("").json()["state"], json!("paused"));
}

#[test]
fn a_delete_spares_a_period_that_came_meanwhile() {
    let (shop, _gateway, client) = open();
    let (old, new) = (at(URI, "1 h"), at(URI, "2 h"));
    assert_eq!(client.ask("PUT", &old, "").status, 201);
    let mut other = shop.cluster.client("postgres", "app");
    other.batch_execute(&format!("BEGIN; SELECT awty_http.schedule('{URI}', '2 h')")).unwrap();
    let answer = std::thread::scope(|scope| {
        let asked = scope.spawn(|| client.ask("DELETE", &old, ""));
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'gateway' AND wait_event_type = 'Lock'";
        until("the DELETE to wait", || {
            let count = shop.text(waits);
            if count == "1" || asked.is_finished() { Ok(()) } else { Err(count) }
        });
        other.batch_execute("COMMIT").unwrap();
        asked.join().unwrap()
    });
    // The status may be 504, because the DELETE waits only one second for the lock, and the machine may pause that
    // long.
    assert!([is(404, "not-found"), is(504, "timed-out")].contains(&problem(&answer)), "{}", answer.text);
    assert_eq!(client.get(&new).json()["every"], json!("2h"));
}
