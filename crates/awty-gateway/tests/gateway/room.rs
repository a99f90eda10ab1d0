use crate::receiver::Receiver;
use crate::shop::{Shop, until};
use awty_testkit::receiver::{accept, answer, hang, requests};

const CALLS: usize = 1_000;
const BYTES: usize = 250_000;
const MOST: u64 = 400 * 1024;

#[test]
fn large_bodies_that_are_due_at_once_do_not_fill_the_memory() {
    let shop = Shop::open();
    shop.cluster.execute("postgres", &["SELECT awty.alter_target('http.app', concurrency => 1000)"]);
    let gateway = shop.gateway("one");
    let sink = accept("127.0.0.1:0", |stream| requests(stream, |_| answer(stream, "200", "", "").map(|()| true)));
    until("readiness", || if gateway.get("/readyz").0 == 200 { Ok(()) } else { Err(gateway.get("/readyz").1) });
    let args = format!("jsonb_build_object('body', repeat('a', {BYTES}), 'sign', false)");
    shop.app(&format!(
        "SELECT awty.schedule('http://{sink}', '/#' || n, 'http.app', after => '0', args => {args}) FROM generate_series(1, {CALLS}) AS n"
    ));
    for done in (100..=CALLS).step_by(100) {
        shop.await_text(&format!("SELECT count(*) >= {done} FROM awty.attempt WHERE ok"), "true");
    }
    assert_eq!(shop.text("SELECT count(*) FROM awty.attempt WHERE ok"), CALLS.to_string());
    let most = gateway.most_memory();
    assert!(most < MOST, "it has held {most} KiB");
    assert_eq!(gateway.get("/readyz").0, 200);
}

/// The HTTP library keeps the headers of a call until the call ends. 1,000 short headers take 133 KiB, so three
/// sixteenths of 128 MiB are enough for 185 such calls.
#[test]
fn headers_of_calls_that_hang_use_the_memory_of_their_tenant() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    shop.add_tenant("bob");
    shop.cluster.execute("postgres", &["SELECT awty.alter_target('http.app', concurrency => 1000)"]);
    let _gateway = shop.gateway_with("gateway", &["--timeout", "10 min"]);
    let silent = accept("127.0.0.1:0", hang);
    let headers = "(SELECT jsonb_object_agg('x' || n, '') FROM generate_series(1, 1000) AS n)";
    let send = format!("awty_http.send('http://{silent}/', headers => {headers})");
    shop.app(&format!("SELECT {send} FROM generate_series(1, 300)"));
    shop.await_text("SELECT count(*) >= 150 FROM awty.lease WHERE job = 'http.app'", "true");
    for done in 1..=20 {
        let send = format!("SELECT awty_http.send('{}')", receiver.uri("/ok"));
        shop.cluster.client("postgres", "bob").batch_execute(&send).unwrap();
        shop.await_text("SELECT count(*) FROM awty.attempt WHERE ok AND job = 'http.bob'", &done.to_string());
    }
    let leases: usize = shop.text("SELECT count(*) FROM awty.lease WHERE job = 'http.app'").parse().unwrap();
    assert!(leases < 290, "{leases} of 300 calls are under way");
}
