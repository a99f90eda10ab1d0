//! Tests the examples of docs/citus.md: queries over all nodes, and a gateway that makes the HTTP calls of all nodes.

use crate::place::Place;
use awty_testkit::gateway::{Gateway, create_credentials};
use awty_testkit::postgres::Row;
use awty_testkit::receiver::{accept, answer, requests};
use awty_testkit::{PATIENCE, checkout};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

const ORDERS: i64 = 40;

const NAME_OF_NODE: &str =
    "SELECT nodename FROM pg_dist_node WHERE groupid = (SELECT groupid FROM pg_dist_local_group)";

#[track_caller]
fn documented(part: &str) -> String {
    let page = std::fs::read_to_string(checkout().join("docs/citus.md")).unwrap();
    let block = page.split("```").skip(1).step_by(2).find(|block| block.contains(part));
    block.unwrap_or_else(|| panic!("no block of docs/citus.md contains {part}")).trim_start_matches("text").to_owned()
}

pub fn overview(place: &mut Place) -> String {
    let nodes = |rows: &[Row]| rows.iter().map(|row| row.get::<_, i32>(0)).collect::<BTreeSet<_>>();
    let query =
        |sql: &str| place.coordinator.superuser("postgres").query(sql.trim().trim_end_matches(';'), &[]).unwrap();
    let rows = query(&documented("awty.late AS l").replace("awty.late", "awty.status"));
    assert_eq!(nodes(&rows).len(), place.nodes.len() + 1, "a node is missing");
    assert!(rows.iter().all(|row| row.get::<_, bool>("enabled")));

    let doctor = documented("awty.doctor() AS d");
    place.nodes[1].run_as("shop", "SELECT awty.pause('wait'), awty.schedule('orders', -1, 'wait', after => '0 s')");
    let paused = "job \"wait\" is paused while checks are due";
    let found = place.coordinator.await_that("the finding", PATIENCE, || {
        let rows = query(&doctor);
        let found: Vec<Row> = rows.into_iter().filter(|row| row.get::<_, String>("finding") == paused).collect();
        if found.is_empty() { Err("none".into()) } else { Ok(found) }
    });
    let node: i32 = place.value(&format!("SELECT nodeid FROM pg_dist_node WHERE nodename = '{}'", place.address(1)));
    assert_eq!(nodes(&found), BTreeSet::from([node]));
    place.nodes[1].run_as("shop", "SELECT awty.cancel('orders', -1, 'wait'), awty.resume('wait')");
    "the status of all nodes in one query, and a finding of one node with the number of the node".into()
}

pub fn gateway(place: &mut Place) -> String {
    for statement in [
        "CREATE EXTENSION awty_http",
        "CREATE ROLE gateway LOGIN NOINHERIT",
        "GRANT shop TO gateway",
        "SELECT * FROM run_command_on_all_nodes('GRANT USAGE ON SCHEMA awty, awty_http TO shop, gateway')",
        "SELECT awty_http.add_tenant('shop')",
    ] {
        place.admin(statement);
    }
    let arrivals = Arc::<Mutex<Vec<(String, String)>>>::default();
    let kept = Arc::clone(&arrivals);
    let address = accept("127.0.0.1:0", move |stream| {
        requests(stream, |request| {
            let (body, node) =
                (String::from_utf8_lossy(&request.body).into_owned(), request.header("x-node").to_owned());
            kept.lock().unwrap().push((node, body));
            answer(stream, "200", "", "").map(|()| true)
        })
    });
    let mut shop = place.shop();
    shop.batch_execute("SET search_path = shop").unwrap();
    for statement in documented("CREATE TABLE outgoing").split_inclusive(";\n") {
        shop.batch_execute(statement).unwrap();
    }
    let call = format!(
        "CREATE FUNCTION shop.call(j awty.future_job) RETURNS void LANGUAGE plpgsql AS $$
         DECLARE node text := ({NAME_OF_NODE});
         BEGIN
           INSERT INTO shop.outbox VALUES (-j.entity_key::bigint, j.job);
           INSERT INTO shop.outgoing
           VALUES (j.entity_key, node, 'http://{address}/', jsonb_build_object('order', j.entity_key));
         END $$"
    );
    shop.batch_execute(&call).unwrap();
    place.on_all_as_shop("SELECT awty.register('call', 'shop.call')");
    let program = PathBuf::from(std::env::var("AWTY_GATEWAY").unwrap());
    let credentials = place.coordinator.socket_directory().join("credentials");
    create_credentials(&program, &credentials);
    let gateway = Gateway::start(&program, &place.coordinator.url("gateway"), &credentials, &[]);
    shop.batch_execute(&format!("INSERT INTO shop.orders SELECT n, 'call' FROM generate_series(1, {ORDERS}) AS n"))
        .unwrap();
    place.coordinator.await_that("the calls", PATIENCE, || {
        let count = arrivals.lock().unwrap().len() as i64;
        if count >= ORDERS { Ok(()) } else { Err(format!("{count}: {}", gateway.log())) }
    });
    // Ignores `awty_http.roll_up`, because this recurring job always has a pending check.
    place.await_none("the runs to end", "SELECT count(*) FROM awty.future_job WHERE job <> 'awty_http.roll_up'");
    drop(gateway);
    let arrivals = arrivals.lock().unwrap();
    let (nodes, orders): (BTreeSet<&str>, BTreeSet<&str>) =
        arrivals.iter().map(|(node, body)| (&**node, &**body)).unzip();
    assert_eq!((arrivals.len() as i64, orders.len() as i64), (ORDERS, ORDERS));
    let all: Vec<String> = (0..place.nodes.len()).map(|node| place.address(node)).collect();
    assert_eq!(nodes, all.iter().map(String::as_str).collect());
    place.on_all_as_shop("SELECT awty.unregister('call')");
    place.admin("SELECT awty_http.drop_tenant('shop')");
    place.on_all("SELECT awty.unregister('awty_http.roll_up')");
    place.admin("DROP EXTENSION awty_http");
    place.admin("DROP TABLE shop.outgoing");
    format!("one gateway made the {ORDERS} calls of all nodes once each, and each call named its node")
}
