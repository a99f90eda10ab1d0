use super::{LATE, await_state, state, watch, watched};
use awty_testkit::PATIENCE;
use awty_testkit::fixture::{GATE, Shop};
use awty_testkit::postgres::fallible_iterator::FallibleIterator;

const TELL: &str = "CREATE TABLE shop.told (alert bigint, key text, level integer, who name, path text, security text);
    CREATE TABLE shop.bad (key text);
    CREATE FUNCTION shop.tell(a awty.alert) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO shop.told VALUES (a.id, a.entity_key, a.level, current_user, current_setting('search_path'), current_setting('row_security'));
        IF EXISTS (SELECT FROM shop.bad WHERE key = a.entity_key) THEN RAISE EXCEPTION 'cannot tell of %', a.entity_key; END IF;
    END $$";

#[test]
fn a_failing_call_is_undone_alone_and_tried_again() {
    let shop = watched("");
    shop.run(TELL);
    watch(&shop, "call => 'shop.tell', notify => 'late orders', replace => true");
    shop.run("SELECT awty.alter('orders', retry_after => '1 ms')");
    let mut listener = shop.client();
    listener.batch_execute("LISTEN \"late orders\"").unwrap();
    shop.run(&format!(
        "INSERT INTO shop.bad VALUES (2); INSERT INTO shop.orders SELECT n, {LATE} FROM generate_series(1, 4) AS n"
    ));
    await_state(&shop, "late 1:1 2:1 3:1 4:1; pending 2");
    shop.await_true("it to be tried again", "SELECT attempt > 2 FROM awty.future_job WHERE entity_key = '2'");
    let failing: String = shop.cluster.value("postgres", "SELECT message FROM awty.failing");
    assert!(failing.contains("cannot tell of 2"), "{failing}");
    shop.run("TRUNCATE shop.bad");
    await_state(&shop, "late 1:1 2:1 3:1 4:1; pending -");
    let told: String = shop.cluster.value(
        "postgres",
        "SELECT string_agg(concat_ws(' ', t.key, t.level, t.who, t.security), ', ' ORDER BY t.key)
         FROM shop.told AS t JOIN awty.alert AS a ON a.id = t.alert AND a.entity_key = t.key",
    );
    assert_eq!(told, "1 1 shop off, 2 1 shop off, 3 1 shop off, 4 1 shop off");
    let alerts: Vec<i64> = shop
        .client()
        .query("SELECT id FROM awty.alert ORDER BY id", &[])
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    let mut ids = Vec::new();
    let mut notes = listener.notifications();
    while ids.len() < alerts.len() {
        let note = notes.timeout_iter(PATIENCE).next().unwrap().expect("a notification");
        ids.push(note.payload().parse::<i64>().unwrap());
    }
    let more = notes.iter().next().unwrap();
    assert!(more.is_none(), "{more:?}");
    ids.sort_unstable();
    assert_eq!(ids, alerts);
}

fn gated() -> Shop {
    let shop = watched("");
    shop.run(&format!(
        "CREATE FUNCTION shop.tell(a awty.alert) RETURNS void LANGUAGE plpgsql AS $$ BEGIN {GATE} END $$"
    ));
    watch(&shop, "call => 'shop.tell', replace => true");
    shop
}

#[track_caller]
fn ship_while_raised(shop: &Shop, late: &str) {
    let gate = shop.close_gate();
    shop.run(late);
    shop.await_at_gate();
    shop.run("SET lock_timeout = '30 s'; UPDATE shop.orders SET status = 'SHIPPED'");
    drop(gate);
    shop.await_workers_gone();
    assert_eq!(state(shop), "late -; pending -");
}

#[test]
fn an_update_that_commits_while_the_alert_is_raised_undoes_it() {
    let shop = gated();
    ship_while_raised(&shop, &format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty.alert"), 0);
}

#[test]
fn an_update_that_commits_while_a_level_is_raised_undoes_it() {
    let shop = gated();
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
    await_state(&shop, "late 1:1; pending -");
    ship_while_raised(
        &shop,
        "SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '3 hours',
             escalate => '{200 min}', call => 'shop.tell', replace => true)",
    );
    assert_eq!(shop.cluster.value::<i32>("postgres", "SELECT level FROM awty.alert"), 1);
}
