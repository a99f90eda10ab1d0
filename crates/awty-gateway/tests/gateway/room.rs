use crate::shop::{Shop, until};
use awty_testkit::receiver::{accept, answer, requests};

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
