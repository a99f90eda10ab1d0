use crate::receiver::Receiver;
use crate::shop::{Gateway, Shop, until};
use awty_testkit::postgres::Client;

#[track_caller]
fn hanging(shop: &Shop, receiver: &Receiver) {
    let uri = receiver.uri("/hang");
    shop.app(&format!("SELECT awty_http.schedule('{uri}', after => '0', timeout => '10 min')"));
    receiver.called("/hang", 1);
}

#[track_caller]
fn until_ready(gateway: &Gateway) {
    until("readiness", || if gateway.get("/readyz").0 == 200 { Ok(()) } else { Err(gateway.get("/readyz").1) });
}

#[track_caller]
fn stop(gateway: &Gateway) {
    gateway.signal("TERM");
    until("the reason", || match gateway.get("/readyz") {
        (503, body) if body.contains("it is stopping") => Ok(()),
        (status, body) => Err(format!("{status} {body}")),
    });
}

#[track_caller]
fn three_that_wait(shop: &Shop, receiver: &Receiver, gateway: &Gateway) -> Client {
    shop.cluster.execute("postgres", &["SELECT awty.alter('http.app', heartbeat => '10 min')"]);
    until_ready(gateway);
    let mut holder = shop.cluster.client("postgres", "postgres");
    holder.batch_execute("BEGIN; LOCK TABLE awty_http_internal.endpoint IN ACCESS EXCLUSIVE MODE").unwrap();
    shop.app(&format!("SELECT awty_http.send('{}') FROM generate_series(1, 3)", receiver.uri("/ok")));
    shop.await_text("SELECT count(*) FROM awty.lease", "3");
    holder
}

#[track_caller]
fn the_next_one_calls_them(shop: &Shop, receiver: &Receiver) {
    let _next = shop.gateway("next");
    let seen = receiver.called("/ok", 3);
    assert!(seen.iter().all(|seen| seen.headers["awty-attempt"] == "1/3"), "{seen:?}");
    shop.await_text("SELECT string_agg(concat_ws(' ', worker, ok), ',') FROM awty.attempt", "next t,next t,next t");
}

#[test]
fn while_it_drains_it_is_not_ready_and_claims_nothing() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let gateway = shop.gateway_with("gateway", &["--drain", "10 min"]);
    hanging(&shop, &receiver);
    until_ready(&gateway);
    stop(&gateway);
    assert_eq!(gateway.get("/livez").0, 200);
    shop.app(&format!("SELECT awty_http.send('{}')", receiver.uri("/ok")));
    let late =
        "SELECT count(*) FROM awty.future_job WHERE entity_key ^@ '/ok' AND next_check_at < now() - interval '3 s'";
    shop.await_text(late, "1");
    assert_eq!(shop.text("SELECT string_agg(entity_key, ',') FROM awty.lease"), "/hang");
    let _next = shop.gateway("next");
    shop.await_text("SELECT string_agg(worker, ',') FROM awty.attempt WHERE ok", "next");
    assert_eq!(receiver.seen("/hang").len(), 1, "what has begun was given back");
}

#[test]
fn what_is_claimed_while_it_stops_is_given_back_and_not_called() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let mut gateway = shop.gateway("one");
    let mut holder = three_that_wait(&shop, &receiver, &gateway);
    stop(&gateway);
    holder.batch_execute("ROLLBACK").unwrap();
    assert_eq!(gateway.ended(), Some(0));
    assert_eq!((shop.text("SELECT count(*) FROM awty.lease"), receiver.seen("/ok").len()), ("0".to_owned(), 0));
    the_next_one_calls_them(&shop, &receiver);
}

#[test]
fn what_has_not_begun_when_time_is_up_is_given_back() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let mut gateway = shop.gateway_with("gateway", &["--drain", "1 s"]);
    let mut holder = three_that_wait(&shop, &receiver, &gateway);
    gateway.signal("TERM");
    assert_eq!(gateway.ended(), Some(0));
    assert_eq!(shop.text("SELECT count(*) FROM awty.lease"), "0");
    holder.batch_execute("ROLLBACK").unwrap();
    the_next_one_calls_them(&shop, &receiver);
}

#[test]
fn what_hangs_is_waited_for_no_longer_than_drain_and_called_again_with_its_key() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    shop.cluster.execute("postgres", &["SELECT awty.alter('http.app', heartbeat => '10 s')"]);
    let mut gateway = shop.gateway_with("gateway", &["--drain", "1 s"]);
    hanging(&shop, &receiver);
    gateway.signal("TERM");
    assert_eq!(gateway.ended(), Some(0));
    assert_eq!(shop.text("SELECT string_agg(worker, ',') FROM awty.lease"), "other");
    let _next = shop.gateway("next");
    let seen = receiver.called("/hang", 2);
    assert_eq!(seen[0].headers["webhook-id"], seen[1].headers["webhook-id"]);
    shop.await_text("SELECT string_agg(worker, ',') FROM awty.lease", "next");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let mut gateway = shop.gateway_with("gateway", &["--drain", "10 min"]);
    hanging(&shop, &receiver);
    stop(&gateway);
    gateway.signal("TERM");
    assert_eq!(gateway.ended(), Some(0));
    until("its last words", || if gateway.log().contains("stopped at once") { Ok(()) } else { Err(gateway.log()) });
    assert_eq!(shop.text("SELECT string_agg(worker, ',') FROM awty.lease"), "other");
}
