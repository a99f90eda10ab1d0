use awty_testkit::fixture::Shop;
use awty_testkit::postgres::Client;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

const TIMES: u32 = 6;

/// SQLSTATEs for a missing schema, function, table, right or job.
const REFUSED: [&str; 5] = ["3F000", "42883", "42P01", "42501", "42704"];

fn client(shop: &Shop, name: &'static str, over: &Arc<AtomicBool>) -> JoinHandle<(Vec<String>, BTreeSet<String>)> {
    let (mut client, over): (Client, _) = (shop.client(), Arc::clone(over));
    std::thread::spawn(move || {
        let (mut accepted, mut told) = (Vec::new(), BTreeSet::new());
        for order in 0.. {
            if over.load(Ordering::Relaxed) {
                break;
            }
            let key = format!("{name}{order}");
            match client.execute("SELECT awty.schedule('orders', $1, 'note', after => '0')", &[&key]) {
                Ok(_) => accepted.push(key),
                Err(error) => drop(told.insert(error.code().map_or(error.to_string(), |code| code.code().into()))),
            }
        }
        (accepted, told)
    })
}

fn register(shop: &Shop, time: u32) {
    let body =
        "BEGIN INSERT INTO shop.note (entity_key, what) VALUES (j.entity_key, 'TIME:' || j.id); RETURN NULL; END";
    shop.job("note", &body.replace("TIME", &time.to_string()), "");
}

#[test]
fn the_extension_can_be_dropped_and_created_again_and_again() {
    let shop = Shop::open();
    shop.run("CREATE TABLE shop.archive (time text, id bigint, entity_key text, outcome text)");
    register(&shop, 0);
    let over = Arc::new(AtomicBool::new(false));
    let workers = ["a", "b"].map(|name| client(&shop, name, &over));
    let mut dba = shop.cluster.superuser("postgres");
    dba.batch_execute("SET statement_timeout = '90s'; SET client_min_messages = warning").unwrap();
    let mut act = |script: &str| dba.batch_execute(script).unwrap_or_else(|error| panic!("{script}: {error:?}"));
    for time in 0..TIMES {
        shop.await_true("runs", &format!("SELECT EXISTS (SELECT FROM shop.note WHERE what LIKE '{time}:%')"));
        if time % 2 == 0 {
            act("DROP EXTENSION awty CASCADE");
        } else {
            act(&format!(
                "BEGIN;
                 LOCK TABLE awty.future_job IN ACCESS EXCLUSIVE MODE;
                 INSERT INTO shop.archive SELECT '{time}', id, entity_key, outcome FROM awty.future_job_history;
                 DROP EXTENSION awty CASCADE;
                 COMMIT"
            ));
        }
        act("CREATE EXTENSION awty");
        act("GRANT USAGE ON SCHEMA awty TO shop");
        register(&shop, time + 1);
    }
    shop.await_true("runs", &format!("SELECT EXISTS (SELECT FROM shop.note WHERE what LIKE '{TIMES}:%')"));
    over.store(true, Ordering::Relaxed);
    let mut accepted = Vec::new();
    for worker in workers {
        let (keys, told) = worker.join().unwrap();
        assert!(told.iter().all(|code| REFUSED.contains(&code.as_str())), "a client was told {told:?}");
        accepted.extend(keys);
    }
    shop.await_all_ended();
    act(&format!("INSERT INTO shop.archive SELECT '{TIMES}', id, entity_key, outcome FROM awty.future_job_history"));
    let wrong = "SELECT time, id, entity_key, outcome, effects FROM shop.archive
                 FULL JOIN (SELECT split_part(what, ':', 1) AS time, split_part(what, ':', 2)::bigint AS id, entity_key,
                                   count(*) AS effects
                            FROM shop.note GROUP BY 1, 2, 3) AS e USING (time, id, entity_key)
                 WHERE (outcome, effects) IS DISTINCT FROM ('done', 1) AND time IN (SELECT time FROM shop.archive)
                 UNION ALL
                 SELECT NULL, NULL, entity_key, 'orders with more than one effect', count(*) FROM shop.note
                 GROUP BY entity_key HAVING count(*) > 1
                 LIMIT 5";
    assert_eq!(shop.cluster.psql("postgres", wrong), "");
    let unknown = "SELECT count(*) FROM shop.note WHERE entity_key <> ALL ($1::text[])";
    let unknown: i64 = shop.cluster.superuser("postgres").query_one(unknown, &[&accepted]).unwrap().get(0);
    assert_eq!(unknown, 0, "an effect of an order that was not accepted");
    shop.run(
        "CREATE OR REPLACE FUNCTION shop.note(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS
              $$ INSERT INTO shop.note (entity_key, what) VALUES (j.entity_key, 'after'); SELECT NULL::timestamptz $$",
    );
    shop.schedule("last", "note", "after => '0'");
    assert_eq!((shop.end_of("last").why(), shop.notes("last")), (("done", None), 1));
    let log = shop.cluster.log_since(0);
    let bad = ["deadlock detected", "PANIC", "XX000", "cache lookup failed", "could not open relation"];
    let bad: Vec<&str> = log.lines().filter(|line| bad.iter().any(|bad| line.contains(bad))).collect();
    assert!(bad.is_empty(), "{bad:#?}");
}
