//! Single calls: once with the caller's transaction.

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
        http.ask("app", "SELECT entity_key || ' ' || args FROM awty.future_job"),
        "/order#order-1 {\"body\": {\"n\": 1}, \"method\": \"POST\"}"
    );
    assert_eq!(refused(&mut app, &SEND.replace(": 1", ": 2")), "42710");
    // Without a key each is a new one.
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
    // As long as the attempt is there.
    http.cluster.execute("postgres", &[&format!("{forget}3 days')")]);
    assert_eq!(http.ask("app", SEND), id);
    http.cluster.execute("postgres", &["DELETE FROM awty_internal.attempt", &format!("{forget}3 days')")]);
    assert_ne!(http.ask("app", SEND), id);
}

/// Two transactions with one key: the second waits, and sends nothing.
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
