use super::{Http, refused};

const SEND: &str = "SELECT awty_http.send('https://api.example.com/order', '{\"n\": 1}', 'order-1')";
const SENT: &str = "SELECT count(*) FROM awty.future_job";

#[test]
fn a_send_goes_with_the_transaction_and_its_key_is_sent_once() {
    let http = Http::open();
    let mut app = http.client("app");
    app.batch_execute(&format!("BEGIN; {SEND}; ROLLBACK")).unwrap();
    assert_eq!(http.ask("app", SENT), "0");
    app.batch_execute(&format!(
        "BEGIN; {SEND}; SAVEPOINT s; SELECT awty_http.send('https://api.example.com/x'); ROLLBACK TO s; COMMIT"
    ))
    .unwrap();
    assert_eq!(http.ask("app", SENT), "1");
    assert_eq!(http.ask("app", SEND), http.ask("app", SEND));
    assert_eq!(http.ask("app", SENT), "1");
    assert_eq!(
        http.ask("app", "SELECT entity_key || ' ' || content FROM awty_http_internal.content"),
        "/order#app/order-1 {\"body\": {\"n\": 1}, \"method\": \"POST\"}"
    );
    assert_eq!(refused(&mut app, &SEND.replace(": 1", ": 2")), "42710");
    for _ in 0..2 {
        http.ask("app", "SELECT awty_http.send('https://api.example.com/order')");
    }
    assert_eq!(http.ask("app", SENT), "3");
}

#[test]
fn a_key_is_remembered_when_its_call_is_over() {
    let http = Http::open();
    let id = http.ask("app", SEND);
    let lease = http.claim()[0];
    http.ask("gateway", &format!("SELECT awty.complete({lease})"));
    assert_eq!(http.ask("app", SEND), id);
    assert_eq!(http.ask("app", SENT), "0");
    let forget = "SELECT awty_http_internal.roll_up(now() + interval '";
    http.cluster.execute("postgres", &[&format!("{forget}20 h')")]);
    assert_eq!(http.ask("app", SEND), id);
    // awty_http recognizes a repeated key only while `awty_internal.attempt` still contains the first call with this
    // key.
    http.cluster.execute("postgres", &[&format!("{forget}3 days')")]);
    assert_eq!(http.ask("app", SEND), id);
    http.cluster.execute("postgres", &["DELETE FROM awty_internal.attempt", &format!("{forget}3 days')")]);
    assert_ne!(http.ask("app", SEND), id);
}

#[test]
fn two_transactions_with_one_key_send_once() {
    let http = Http::open();
    let mut first = http.client("app");
    first.batch_execute(&format!("BEGIN; {SEND}")).unwrap();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| http.ask("app", SEND));
        http.cluster.await_sql(
            "postgres",
            "the second to wait",
            "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)",
        );
        first.batch_execute("COMMIT").unwrap();
        let id = second.join().unwrap();
        assert_eq!(id, http.ask("app", "SELECT id FROM awty.future_job"));
    });
    assert_eq!(http.ask("app", SENT), "1");
}

#[test]
fn equal_keys_of_two_roles_are_two_sends() {
    let http = Http::open();
    http.cluster.execute(
        "postgres",
        &[
            "CREATE ROLE web LOGIN",
            "CREATE ROLE \"w/b\" LOGIN",
            "GRANT USAGE ON SCHEMA awty, awty_http TO web, \"w/b\"",
            "SELECT awty.allow('http.app', 'web'), awty.allow('http.app', 'w/b')",
            "ALTER ROLE web SET awty_http.tenant = 'app'",
            "ALTER ROLE \"w/b\" SET awty_http.tenant = 'app'",
        ],
    );
    let first = http.ask("web", &SEND.replace(": 1", ": 2"));
    let ids = [first, http.ask("app", SEND), http.ask("w/b", SEND)];
    assert!(ids.iter().all(|id| !id.is_empty()) && ids[0] != ids[1] && ids[1] != ids[2], "{ids:?}");
    assert_eq!(
        http.ask("app", "SELECT entity_key FROM awty.future_job ORDER BY entity_key"),
        "/order#app/order-1 /order#w%2Fb/order-1 /order#web/order-1"
    );
    let keys = "SELECT string_agg(DISTINCT awty_http_internal.key_of(entity_key), ' ') FROM awty.future_job";
    assert_eq!(http.ask("app", keys), "order-1");
    assert_eq!(http.ask("web", "SELECT awty_http_internal.cancel_send('order-1')"), "true");
    assert_eq!(http.ask("app", SENT), "2");
}

#[test]
fn the_content_of_a_send_goes_with_it() {
    let http = Http::open();
    let content = "SELECT string_agg(awty_http_internal.key_of(entity_key), ' ' ORDER BY entity_key) FROM awty_http_internal.content";
    let all =
        "SELECT count(awty_http.send('https://api.example.com/x', '1', k)) FROM unnest('{bad,gone,good}'::text[]) AS k";
    http.ask("app", all);
    http.claim_at_least(3);
    http.ask("gateway", "SELECT awty.complete(lease) FROM awty.lease WHERE entity_key LIKE '%/good'");
    http.ask("gateway", "SELECT awty.fail(lease, 'no', final => true) FROM awty.lease WHERE entity_key LIKE '%/bad'");
    let well = "SELECT awty_http_internal.sent_well('{http.app,http.app,http.app}', array_fill('https://api.example.com'::text, '{3}'),
        '{/x#app/good,/x#app/gone,/x#app/bad}')";
    http.ask("other", well);
    assert_eq!(http.ask("app", content), "bad gone good");
    http.cluster.execute("postgres", &["SELECT awty.allow('http.app', 'other', 'claim')"]);
    http.ask("other", &well.replace("gone,/x#app/bad", "gone,/x#app/gone"));
    assert_eq!(http.ask("app", content), "bad gone");
    http.ask("app", "SELECT awty_http_internal.cancel_send('gone')");
    http.cluster.execute("postgres", &["SELECT awty_http_internal.roll_up(now())"]);
    assert_eq!(http.ask("app", content), "bad");
    http.cluster
        .execute("postgres", &["DELETE FROM awty.future_job_history", "SELECT awty_http_internal.roll_up(now())"]);
    assert_eq!(http.ask("app", content), "");
}

#[test]
fn the_content_of_a_send_that_is_locked_stays_and_holds_up_no_answer() {
    let http = Http::open();
    http.ask("app", SEND);
    let lease = http.claim()[0];
    http.ask("gateway", &format!("SELECT awty.fail({lease}, 'no', final => true)"));
    let well = "SELECT awty_http_internal.sent_well('{http.app}', '{https://api.example.com}', '{/order#app/order-1}')";
    let mut app = http.client("app");
    app.batch_execute(&format!("BEGIN; {well}")).unwrap();
    let mut gateway = http.client("gateway");
    gateway.batch_execute(&format!("SET lock_timeout = '30 s'; {well}")).unwrap();
    app.batch_execute("ROLLBACK").unwrap();
    let contents = "SELECT count(*) FROM awty_http_internal.content";
    assert_eq!(http.ask("app", contents), "1");
    http.ask("gateway", well);
    assert_eq!(http.ask("app", contents), "0");
}
