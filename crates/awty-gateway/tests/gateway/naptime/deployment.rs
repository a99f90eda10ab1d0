use super::at;
use crate::people::{self, open, until_answer};
use crate::receiver::Receiver;
use crate::shop::{Shop, free_port, until};
use awty_testkit::Stop;
use serde_json::json;

#[test]
fn after_a_total_restart_all_goes_on_and_nothing_is_lost() {
    let (mut shop, gateway, client) = open();
    let receiver = Receiver::start();
    for number in 0..10 {
        assert_eq!(client.ask("PUT", &at(&receiver.uri(&format!("/ok/{number}")), "1 s"), "").status, 201);
    }
    until_answer(&client, "/v1/schedules", |list| {
        list["items"].as_array().unwrap().iter().all(|one| one["counts"]["ok"] != json!(0))
    });
    gateway.signal("KILL");
    shop.cluster.stop(Stop::Immediate);
    let before: Vec<usize> = (0..10).map(|number| receiver.seen(&format!("/ok/{number}")).len()).collect();
    shop.cluster.start();
    let gateway = shop.gateway("two");
    let client = people::client(&shop, &gateway, "app", "read");
    assert_eq!(client.get("/v1/schedules").json()["items"].as_array().unwrap().len(), 10);
    for (number, before) in before.iter().enumerate() {
        until("each to be called again", || {
            let calls = receiver.seen(&format!("/ok/{number}")).len();
            if calls > *before { Ok(()) } else { Err(format!("number {number}: {calls}")) }
        });
    }
}

#[test]
fn a_crashed_workers_call_is_made_by_another_and_workers_have_names() {
    let (shop, one, _client) = open();
    let receiver = Receiver::start();
    shop.cluster.execute("postgres", &["SELECT awty.alter('http.app', heartbeat => '2 s')"]);
    shop.app(&format!("SELECT awty_http.send('{}', key => 'k')", receiver.uri("/hang")));
    shop.await_text("SELECT string_agg(worker, ',') FROM awty.lease", "one");
    let two = shop.gateway("two");
    one.signal("KILL");
    shop.await_text("SELECT string_agg(worker, ',') FROM awty.lease", "two");
    let client = people::client(&shop, &two, "app", "read");
    until_answer(&client, "/v1/status", |status| status["gateways"][0]["name"] == json!("two"));
    let keys: Vec<_> = receiver.called("/hang", 2).iter().map(|seen| seen.headers["webhook-id"].clone()).collect();
    assert_eq!(keys[0], keys[1]);
}

#[test]
fn the_environment_alone_is_enough_to_deploy_it() {
    let shop = Shop::open();
    let port = free_port();
    let gateway = shop.gateway_by_environment(&[
        ("DATABASE_URL", &shop.url("gateway")),
        ("PORT", &port.to_string()),
        ("AWTY_BEHIND_PROXY", "true"),
    ]);
    until("readiness", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
        Some(gateway.get_at(&format!("127.0.0.1:{port}"), "/readyz"))
            .filter(|ready| ready.0 == 200)
            .ok_or_else(|| gateway.log())
    });
}
