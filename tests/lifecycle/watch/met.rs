use super::{LATE, await_state, state, watched};
use awty_testkit::fixture::Shop;

fn outcomes(shop: &Shop) -> String {
    shop.cluster.value(
        "postgres",
        "SELECT coalesce(string_agg(entity_key || ' ' || outcome, ', ' ORDER BY entity_key), '-')
         FROM awty.future_job_history WHERE entity_name = 'orders'",
    )
}

#[track_caller]
fn await_counts(shop: &Shop, met: i64, late: i64) {
    let counted = format!("SELECT (met, late) = ({met}, {late}) FROM awty.job_status WHERE job = 'orders'");
    shop.await_true(&format!("{met} met, {late} late"), &counted);
}

#[test]
fn a_check_of_a_row_that_is_there_in_time_ends_as_met() {
    let shop = watched("escalate => '{1 day}'");
    shop.run("INSERT INTO shop.orders (id) SELECT generate_series(1, 6)");
    shop.run("UPDATE shop.orders SET status = 'SHIPPED' WHERE id = 1; DELETE FROM shop.orders WHERE id = 2; UPDATE shop.orders SET placed_at = NULL WHERE id = 3");
    assert_eq!(outcomes(&shop), "1 met, 2 cancelled, 3 cancelled");
    await_counts(&shop, 1, 0);
    shop.cluster.execute(
        "postgres",
        &["SET session_replication_role = replica; UPDATE shop.orders SET status = 'SHIPPED' WHERE id = 4;
           DELETE FROM shop.orders WHERE id = 5; UPDATE shop.orders SET placed_at = NULL WHERE id = 6"],
    );
    shop.run("SELECT awty.check_now('orders', n) FROM generate_series(4, 6) AS n");
    await_state(&shop, "late -; pending -");
    assert_eq!(outcomes(&shop), "1 met, 2 cancelled, 3 cancelled, 4 met, 5 done, 6 done");
    await_counts(&shop, 2, 0);
    let problems = "SELECT other = 0 AND last_failure_at IS NULL FROM awty.job_status WHERE job = 'orders'";
    assert!(shop.cluster.value::<bool>("postgres", problems));
}

#[test]
fn a_late_row_is_counted_once() {
    let shop = watched("escalate => '{200 min, 1 day}'");
    shop.run(&format!("INSERT INTO shop.orders SELECT n, {LATE} FROM generate_series(1, 3) AS n"));
    await_state(&shop, "late 1:2 2:2 3:2; pending 1 2 3");
    shop.run(
        "UPDATE shop.orders SET status = 'SHIPPED' WHERE id < 3; UPDATE shop.orders SET placed_at = now() WHERE id = 3",
    );
    assert_eq!((outcomes(&shop), state(&shop)), ("1 cancelled, 2 cancelled".into(), "late -; pending 3".into()));
    shop.run("UPDATE shop.orders SET status = 'SHIPPED' WHERE id = 3");
    assert_eq!(outcomes(&shop), "1 cancelled, 2 cancelled, 3 met");
    await_counts(&shop, 1, 3);
}

#[test]
fn rows_count_at_the_commit() {
    let shop = watched("");
    shop.run("INSERT INTO shop.orders (id) SELECT generate_series(1, 4)");
    let ship = |id: i32| format!("UPDATE shop.orders SET status = 'SHIPPED' WHERE id = {id}");
    shop.run(&format!("BEGIN; {}; ROLLBACK", ship(1)));
    shop.run(&format!(
        "BEGIN; {}; SAVEPOINT a; {}; SAVEPOINT b; {}; RELEASE b; ROLLBACK TO a; {}; COMMIT",
        ship(1),
        ship(2),
        ship(3),
        ship(4)
    ));
    assert_eq!(outcomes(&shop), "1 met, 4 met");
    await_counts(&shop, 2, 0);
}
