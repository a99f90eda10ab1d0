use super::at;
use crate::client::{Answer, Client, encoded};
use crate::people::{self, is, open, problem};
use serde_json::json;

#[test]
fn endpoints_are_created_read_updated_and_deleted_over_http() {
    let (_shop, _gateway, client) = open();
    let made = client.ask("POST", "/v1/schedules", "{\"uri\": \"http://a.example/x\", \"every\": \"10 seconds\"}");
    let place = made.header("location");
    assert_eq!((made.status, client.get(&place).json()["every"].clone()), (201, json!("10s")));
    assert_eq!(client.ask("PUT", &place, "{\"every\": \"1 min\"}").json()["every"], json!("1m"));
    assert_eq!(client.get("/v1/schedules").json()["items"][0]["id"], made.json()["id"]);
    assert_eq!(client.ask("DELETE", &place, "").status, 204);
    assert_eq!(problem(&client.get(&place)), is(410, "deleted"));
    assert_eq!(client.get("/v1/schedules").json()["items"], json!([]));
}

#[test]
fn get_put_and_delete_by_url_and_period() {
    let (_shop, _gateway, client) = open();
    let at = |period: &str| at("http://a.example/x?y=z", period);
    assert_eq!(client.get(&at("10 seconds")).status, 404);
    assert_eq!(client.ask("PUT", &at("10 seconds"), "").status, 201);
    assert_eq!(client.get(&at("10 s")).json()["uri"], json!("http://a.example/x?y=z"));
    assert_eq!(client.get(&at("20 s")).status, 404);
    assert_eq!(client.ask("DELETE", &at("20 s"), "").status, 404);
    assert_eq!(client.ask("DELETE", &at("10 s"), "").status, 204);
}

fn at_once(clients: &[Client], ask: impl Fn(&Client, usize) -> Answer + Sync) -> Vec<Answer> {
    std::thread::scope(|scope| {
        let ask = &ask;
        let threads: Vec<_> =
            clients.iter().enumerate().map(|(number, client)| scope.spawn(move || ask(client, number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn the_same_uri_is_never_there_twice_even_for_another_period_and_at_once() {
    let (shop, gateway, _client) = open();
    let clients: Vec<Client> = (0..8).map(|_| people::client(&shop, &gateway, "app", "write")).collect();
    for round in 0..5 {
        let uri = format!("http://a.example/{round}");
        let answers =
            at_once(&clients, |client, number| client.ask("PUT", &at(&uri, &format!("{} min", number + 1)), ""));
        let made: Vec<_> = answers.iter().filter(|answer| answer.status == 201).collect();
        assert_eq!(made.len(), 1, "{:?}", answers.iter().map(|answer| answer.status).collect::<Vec<_>>());
        for answer in answers.iter().filter(|answer| answer.status != 201) {
            assert_eq!(problem(answer), is(409, "uri-already-scheduled"), "{}", answer.text);
        }
        let every = client_every(&clients[0], &uri);
        assert_eq!(json!(every), made[0].json()["every"], "what was answered is what is scheduled");
    }
    let again = clients[0].ask("PUT", &at("HTTP://A.example:80/x/../0", "1 h"), "");
    assert_eq!(problem(&again), is(409, "uri-already-scheduled"));
    assert_eq!(shop.text("SELECT count(*) FROM awty.future_job WHERE job = 'http.app'"), "5");
}

fn client_every(client: &Client, uri: &str) -> String {
    client.get(&format!("/v1/schedules?uri={}", encoded(uri))).json()["every"].as_str().unwrap().to_owned()
}

#[test]
fn scheduling_and_unscheduling_at_once_leave_one_call_or_none() {
    let (shop, gateway, _client) = open();
    let clients: Vec<Client> = (0..8).map(|_| people::client(&shop, &gateway, "app", "write")).collect();
    for round in 0..5 {
        let by_uri = format!("/v1/schedules?uri={}", encoded(&format!("http://a.example/{round}")));
        let answers = at_once(&clients, |client, number| match number % 2 {
            0 => client.ask("PUT", &by_uri, "{\"every\": \"1 h\"}"),
            _ => client.ask("DELETE", &by_uri, ""),
        });
        let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        assert!(statuses.iter().all(|status| [200, 201, 204, 404, 410].contains(status)), "{statuses:?}");
        let is_there = clients[0].get(&by_uri).status == 200;
        let pending = format!("SELECT count(*) FROM awty.future_job WHERE entity_key = '/{round}'");
        assert_eq!(shop.text(&pending), if is_there { "1" } else { "0" }, "{statuses:?}");
    }
}

#[test]
fn removal_looks_at_no_other_schedule() {
    let (shop, _gateway, client) = open();
    shop.app(
        "SELECT awty_http.schedule('http://many.example/' || n, every => '1 h') FROM generate_series(1, 2000) AS n",
    );
    shop.cluster.execute("postgres", &["ANALYZE"]);
    let scans = "SELECT pg_stat_force_next_flush()::text || sum(seq_tup_read) FROM pg_stat_all_tables
        WHERE relid IN ('awty_http_internal.endpoint'::regclass, 'awty.future_job'::regclass, 'awty_internal.repetition'::regclass)";
    let delete = |number: usize| {
        let path = format!("/v1/schedules?uri={}", encoded(&format!("http://many.example/{number}")));
        assert_eq!(client.ask("DELETE", &path, "").status, 204);
    };
    delete(1);
    let before: i64 = shop.text(scans).parse().unwrap();
    (2..30).for_each(delete);
    // Allows some sequential reads, because PostgreSQL reads small tables without an index.
    let after: i64 = shop.text(scans).parse().unwrap();
    assert!(after - before < 28 * 2_000, "{} rows were read one after the other", after - before);
}

#[test]
fn an_endpoint_is_data_and_no_function() {
    let (shop, _gateway, client) = open();
    assert_eq!(client.ask("PUT", &at("http://a.example/", "1 h"), "").status, 201);
    assert_eq!(shop.text("SELECT function_name IS NULL FROM awty.job WHERE job = 'http.app'"), "true");
    assert_eq!(shop.text("SELECT count(*) FROM awty.job WHERE job LIKE '%a.example%'"), "0");
}

#[test]
fn periods_are_written_in_words() {
    let (_shop, _gateway, client) = open();
    let rows = [
        ("10 seconds", "10s"),
        ("10s", "10s"),
        ("PT10S", "10s"),
        ("1h 30m", "1h 30m"),
        ("90 minutes", "1h 30m"),
        ("1 day, 2 hours", "1d 2h"),
        ("1500 ms", "2s"),
    ];
    for (number, (period, shown)) in rows.iter().enumerate() {
        let made = client.ask("PUT", &at(&format!("http://a.example/{number}"), period), "");
        assert_eq!((made.status, &made.json()["every"]), (201, &json!(shown)), "{period}: {}", made.text);
    }
    for (period, instead) in [
        ("10000", "10000 has no unit; write 10 s or 10000 ms"),
        ("1 month", "write 30 d"),
        ("-10 s", "write 10s"),
        ("0 s", "write for example 10 s"),
        ("soon", "write for example 10 s"),
    ] {
        let refused = client.ask("PUT", &at("http://a.example/", period), "");
        assert!(refused.status == 422 && refused.text.contains(instead), "{period}: {}", refused.text);
        assert!(refused.json()["errors"][0]["remedy"].is_string(), "{period}: {}", refused.text);
    }
}

#[test]
fn periods_have_a_shortest_and_a_longest_and_are_rounded_up() {
    let (shop, first, _client) = open();
    drop(first);
    let gateway = shop.gateway_with("gateway", &["--min-period", "5 s", "--max-period", "1 h"]);
    let client = people::client(&shop, &gateway, "app", "write");
    let status = client.get("/v1/status").json();
    assert_eq!((&status["min_period"], &status["max_period"]), (&json!("5s"), &json!("1h")));
    for period in ["4999 ms", "1 h 1 s", "366 d"] {
        let refused = client.ask("PUT", &at("http://a.example/", period), "");
        assert_eq!(problem(&refused), is(422, "period-out-of-range"), "{period}");
        assert!(refused.text.contains("write 5s to 1h"), "{}", refused.text);
    }
    for (number, (period, every, from)) in
        [("5 s", "5s", json!(null)), ("1 h", "1h", json!(null)), ("5001 ms", "6s", json!("5s 1ms"))].iter().enumerate()
    {
        let made = client.ask("PUT", &at(&format!("http://a.example/{number}"), period), "").json();
        assert_eq!((&made["every"], &made["rounded_from"]), (&json!(every), from), "{period}");
    }
}

#[test]
fn what_is_malformed_is_refused_with_what_to_write_instead() {
    let (_shop, _gateway, client) = open();
    let refused = |uri: &str| {
        let answer = client.ask("PUT", &at(uri, "10 s"), "");
        assert!(answer.status == 422 && answer.json()["errors"][0]["remedy"].is_string(), "{uri}: {}", answer.text);
        answer.problem()
    };
    for uri in [
        "nonsense",
        "ftp://a.example/",
        "http://",
        "http://a.example:99999/",
        "//a.example/",
        "javascript:alert(1)",
        "http://u:p@a.example/",
        "http://a.example/#x",
    ] {
        assert_eq!(refused(uri), "malformed-uri", "{uri}");
    }
    for uri in
        ["http://10.0.0.1/", "http://169.254.169.254/", "http://[fc00::1]/", "http://0xa000001/", "http://8.8.8.8:22/"]
    {
        let refused = client.ask("PUT", &at(uri, "10 s"), "");
        assert_eq!(problem(&refused), is(422, "address-not-allowed"), "{uri}");
    }
    for body in ["{", "[]", "\"x\"", "{\"uri\": 1}"] {
        assert!([400, 422].contains(&client.ask("POST", "/v1/schedules", body).status), "{body}");
    }
}
