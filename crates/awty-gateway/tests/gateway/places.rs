use crate::client::encoded;
use crate::people::{is, open, problem};
use crate::receiver::Receiver;
use crate::shop::Shop;
use serde_json::json;

fn schedule(shop: &Shop, name: &str, key: &str) {
    shop.app(&format!("SELECT awty.schedule('{name}', '{key}', {}, after => '0', args => '{{}}')", shop.job()));
}

#[test]
fn a_uri_that_is_split_at_another_place_is_never_called() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let _gateway = shop.gateway("one");
    let origin = receiver.origin();
    let (start, end) = origin.split_at(origin.len() - 1);
    let split = [(start, format!("{end}/a#1")), (&format!("{origin}/a"), "/../b#1".into())];
    for (name, key) in &split {
        schedule(&shop, name, key);
    }
    schedule(&shop, &origin, "/well#1");
    receiver.called("/well", 1);
    let failed = "SELECT count(*) FROM awty.attempt WHERE NOT ok AND message LIKE '%is no target%'";
    shop.await_text(failed, "2");
    shop.await_text(&format!("SELECT count(*) FROM awty.future_job WHERE job = {}", shop.job()), "0");
    assert_eq!(shop.text("SELECT count(*) FROM awty.attempt WHERE NOT ok"), "2");
    assert!(receiver.seen("/a").is_empty() && receiver.seen("/b").is_empty());
}

#[test]
fn a_denied_network_stays_closed_whatever_opens_it() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let (denied, host) = (receiver.origin(), Receiver::start_on("127.0.0.2"));
    let flags = ["--deny-networks", "127.0.0.1/32", "--allow-networks", "127.0.0.0/8"];
    let gateway = shop.gateway_with("gateway", &flags);
    schedule(&shop, &denied, "/ok#1");
    schedule(&shop, &host.origin(), "/ok#1");
    host.called("/ok", 1);
    shop.await_text("SELECT count(*) FROM awty.attempt WHERE message LIKE '%deny_networks%'", "1");
    shop.await_text(&format!("SELECT count(*) FROM awty.future_job WHERE job = {}", shop.job()), "0");
    assert!(receiver.seen("/ok").is_empty());
    assert!(gateway.get("/metrics").1.contains("awty_gateway_blocked_addresses_total 1\n"));
}

#[test]
fn a_port_that_is_never_called_is_refused_to_names_as_to_addresses() {
    let (_shop, _gateway, client) = open();
    for uri in ["http://8.8.8.8:22/", "http://a.example:22/", "https://a.example:25/"] {
        let put =
            client.ask("PUT", &format!("/v1/schedules?uri={}", encoded(uri)), &json!({"every": "1 h"}).to_string());
        assert_eq!(problem(&put), is(422, "address-not-allowed"), "{uri}: {}", put.text);
    }
}
