use crate::receiver::Receiver;
use crate::shop::Shop;

fn with_bob(shop: &Shop) {
    shop.cluster.execute(
        "postgres",
        &["CREATE ROLE bob LOGIN", "GRANT bob TO gateway", "GRANT USAGE ON SCHEMA awty, awty_http TO bob"],
    );
}

fn as_bob(shop: &Shop, sql: &str) {
    shop.cluster.client("postgres", "bob").batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

#[test]
fn a_role_does_not_become_a_tenant_by_the_name_of_its_job() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    with_bob(&shop);
    as_bob(
        &shop,
        &format!(
            "SELECT awty.register('http.bobs', heartbeat => '15 s', max_attempts => 0); SELECT awty.allow('http.bobs', 'gateway', 'claim');
             SELECT awty.schedule('{}', '/loot#1', 'http.bobs', after => '0', args => '{{\"headers\": {{\"X\": \"{{{{secret:TOKEN}}}}\"}}}}')",
            receiver.origin()
        ),
    );
    shop.await_text("SELECT overdue FROM awty.job_status WHERE job = 'http.bobs'", "1");
    let _gateway = shop.gateway("one");
    shop.app(&format!("SELECT awty_http.schedule('{}', every => '1 s', jitter => '0')", receiver.uri("/ok")));
    receiver.called("/ok", 3);
    assert!(receiver.seen("/loot").is_empty());
    assert_eq!(shop.text("SELECT count(*) FROM awty.attempt WHERE job = 'http.bobs'"), "0");
    assert_eq!(shop.text("SELECT count(*) FROM awty.future_job WHERE job = 'http.bobs'"), "1");
}

#[test]
fn ten_thousand_jobs_with_names_of_tenants_stop_no_call() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    with_bob(&shop);
    as_bob(
        &shop,
        "SELECT awty.register('http.m', heartbeat => '15 s'); SELECT awty.allow('http.m', 'gateway', 'claim')",
    );
    let many = "INSERT INTO awty.job SELECT (jsonb_populate_record(j, jsonb_build_object('job', 'http.m' || n))).*
        FROM awty.job AS j, generate_series(1, 10000) AS n WHERE j.job = 'http.m'";
    shop.cluster.execute("postgres", &[many]);
    let gateway = shop.gateway("one");
    shop.app(&format!("SELECT awty_http.schedule('{}', every => '1 s', jitter => '0')", receiver.uri("/ok")));
    receiver.called("/ok", 3);
    assert!(!gateway.log().contains("http.m"), "{}", gateway.log());
}

/// add_tenant does not restart schedules that drop_tenant has ended.
#[test]
fn a_tenant_that_is_dropped_is_called_no_more() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let _gateway = shop.gateway("one");
    for path in ["/ok", "/ok?other"] {
        shop.app(&format!("SELECT awty_http.schedule('{}', every => '1 s', jitter => '0')", receiver.uri(path)));
    }
    receiver.called("/ok", 1);
    shop.cluster.execute("postgres", &["SELECT awty_http.drop_tenant('app')"]);
    assert_eq!(shop.text("SELECT count(*) FROM awty.future_job WHERE job = 'http.app'"), "0");
    let id = shop.text("SELECT id FROM awty_http.endpoint WHERE entity_key = '/ok'");
    shop.cluster.execute("postgres", &["SELECT awty_http.add_tenant('app')"]);
    shop.app(&format!("SELECT awty_http.schedule('{}', every => '1 s', jitter => '0')", receiver.uri("/ok")));
    let seen = receiver.seen("/ok").len();
    let last = receiver.called("/ok", seen + 1).pop().unwrap();
    assert_eq!(last.headers["awty-schedule"], id);
}
