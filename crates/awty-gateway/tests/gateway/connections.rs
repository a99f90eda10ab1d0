use crate::client::Client;
use crate::people;
use crate::receiver::Receiver;
use crate::shop::{Gateway, Shop};
use crate::visitor::Browser;

fn gateway_with_three_connections() -> (Shop, Gateway) {
    let shop = Shop::open();
    let limit = "ALTER ROLE gateway CONNECTION LIMIT 3 NOINHERIT";
    shop.cluster.execute("postgres", &[limit, "GRANT app TO gateway", "GRANT CREATE ON SCHEMA public TO app"]);
    let gateway = shop.gateway("one");
    (shop, gateway)
}

#[test]
fn with_three_connections_all_is_answered_and_booked() {
    let ((shop, gateway), receiver) = (gateway_with_three_connections(), Receiver::start());
    shop.app(&format!(
        "SELECT awty_http.schedule('{}/' || n, '1 s') FROM generate_series(1, 20) AS n",
        receiver.origin()
    ));
    let client = people::client(&shop, &gateway, "app", "read");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let answer = client.get("/v1/schedules");
                    assert_eq!(answer.status, 200, "{}", answer.text);
                }
            });
        }
    });
    shop.await_text("SELECT count(*) >= 60 FROM awty.attempt WHERE ok", "true");
    assert_eq!(shop.text("SELECT count(*) FROM awty.attempt WHERE NOT ok"), "0");
}

/// Each trial closes its session. The server counts the session until its process has ended.
#[test]
fn with_three_connections_a_trial_delays_no_later_request() {
    let (shop, gateway) = gateway_with_three_connections();
    shop.app(
        "CREATE FUNCTION works(j awty.future_job) RETURNS void LANGUAGE sql AS 'SELECT';
         SELECT awty.register('works', 'works'), awty.schedule('orders', '1', 'works', after => '1 day')",
    );
    let (browser, client) =
        (Browser::of(&shop, &gateway, "app", "write"), people::client(&shop, &gateway, "app", "read"));
    for _ in 0..20 {
        assert_eq!(browser.post("/entity?name=orders&key=1", &[("job", "works")]).status, 200);
        let answer = client.get("/v1/schedules");
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
}

#[test]
fn calls_wait_for_no_standby() {
    let (mut shop, receiver) = (Shop::open(), Receiver::start());
    shop.app(&format!("SELECT awty_http.schedule('{}/', '1 s')", receiver.origin()));
    shop.cluster.configure("synchronous_standby_names = 'away'");
    shop.cluster.restart();
    let _gateway = shop.gateway("one");
    shop.await_text("SELECT count(*) >= 5 FROM awty.attempt WHERE ok", "true");
}

/// PostgreSQL does not cancel a COMMIT that waits for a standby. A session in the pool would keep such a COMMIT without
/// end, and each later request would wait for it.
#[test]
fn a_change_that_waits_for_a_standby_keeps_no_session() {
    let mut shop = Shop::open();
    shop.app("SELECT awty_http.schedule('http://127.0.0.1:1099/x', every => '1 h')");
    let place = format!("/v1/schedules/{}", shop.text("SELECT id FROM awty_http.endpoint"));
    let token = shop.token("app", "write");
    shop.cluster.configure("synchronous_standby_names = 'away'");
    shop.cluster.restart();
    let gateway = shop.gateway("one");
    let client = Client { address: gateway.address(), token };
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'gateway' AND wait_event = 'SyncRep'";
    for change in ["pause", "resume"] {
        assert_eq!(client.ask("POST", &format!("{place}/{change}"), "").status, 504, "{change}");
        shop.await_text(waiting, "0");
    }
    assert_eq!(client.get(&place).status, 200);
}
