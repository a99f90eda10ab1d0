use super::{LATE, ORDERS, await_state, await_walked, expect, state, watch, watched};
use awty_testkit::fixture::Shop;

const WATCH: &str = "SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '3 hours', existing => 'all')";

#[test]
fn a_walk_takes_in_no_silenced_row() {
    let shop = Shop::open();
    shop.run(ORDERS);
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE}, DEFAULT), (2, {LATE}, DEFAULT), (3, {LATE}, 'SHIPPED'), (4, {LATE}, DEFAULT)"));
    shop.run(&format!(
        "BEGIN; {WATCH}; SELECT awty.cancel('orders', 2, 'orders'), awty.cancel_many('orders', '{{3,4,5}}', 'orders'); COMMIT"
    ));
    await_walked(&shop);
    await_state(&shop, "late 1:1; pending -");
    shop.run(&WATCH.replace("existing", "replace => true, escalate => '{1 day}', existing"));
    await_walked(&shop);
    await_state(&shop, "late 1:1; pending 1");
    shop.run("UPDATE shop.orders SET placed_at = placed_at - interval '1 min' WHERE id = 2");
    await_state(&shop, "late 1:1 2:1; pending 1 2");
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty_internal.hold"), 1);
}

#[test]
fn a_silenced_row_is_shown() {
    let shop = watched("");
    shop.run("INSERT INTO shop.orders (id) VALUES (1)");
    let cancelled = "SELECT awty.cancel('orders', 1, 'orders')";
    assert_eq!(shop.cluster.value::<i64>("postgres", cancelled), 1);
    assert_eq!(shop.cluster.value::<i64>("postgres", cancelled), 0, "it is silenced already");
    assert_eq!(state(&shop), "late -; pending -");
    let shown: String =
        shop.cluster.value("postgres", "SELECT detail FROM awty.explain('orders', 1) WHERE event = 'waiting'");
    assert!(
        shown.starts_with("the row is silenced since ")
            && shown.contains(
                " by postgres; a change of its since, due or key, or of whether it meets the condition, ends that"
            ),
        "{shown}"
    );
    let counted: bool = shop.cluster.value(
        "postgres",
        "SELECT s.held_checks = 0 AND j.held = 0 FROM awty.status AS s, awty.job_status AS j WHERE j.job = 'orders'",
    );
    assert!(counted);
    expect(&shop, "UPDATE shop.orders SET placed_at = placed_at - interval '1 min'", "late -; pending 1");
}

#[test]
fn a_silenced_row_may_end() {
    let shop = watched("");
    shop.run(
        "INSERT INTO shop.orders (id) VALUES (1), (2), (3); SELECT awty.cancel_many('orders', '{1,2,3}', 'orders')",
    );
    expect(&shop, "DELETE FROM shop.orders WHERE id = 1; INSERT INTO shop.orders (id) VALUES (1)", "late -; pending 1");
    expect(&shop, "UPDATE shop.orders SET status = 'SHIPPED' WHERE id = 2", "late -; pending 1");
    expect(&shop, "UPDATE shop.orders SET status = 'UNSHIPPED' WHERE id = 2", "late -; pending 1 2");
    watch(&shop, "");
    expect(&shop, "SELECT awty.unwatch('orders')", "late -; pending -");
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty.future_job"), 0);
}
