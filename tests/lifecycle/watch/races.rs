use super::{LATE, await_state, refusal, state, stops, watched};

#[test]
fn an_update_that_is_open_when_the_row_becomes_late_decides() {
    let shop = watched("");
    for (id, end) in [(1, "COMMIT"), (2, "ROLLBACK")] {
        shop.run(&format!("SELECT awty.pause('orders'); INSERT INTO shop.orders VALUES ({id}, {LATE})"));
        let slot = shop.slot_of(&id.to_string());
        let mut client = shop.client();
        client.batch_execute(&format!("BEGIN; UPDATE shop.orders SET status = 'SHIPPED' WHERE id = {id}")).unwrap();
        shop.run("SELECT awty.resume('orders')");
        shop.await_time(slot, 2);
        assert_eq!(state(&shop), format!("late -; pending {id}"));
        client.batch_execute(end).unwrap();
        await_state(&shop, if id == 1 { "late -; pending -" } else { "late 2:1; pending -" });
    }
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty.alert"), 1);
}

#[test]
fn a_writer_with_one_snapshot_leaves_no_alert_open() {
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        let shop = watched("");
        for (key, write) in [
            (1, "UPDATE shop.orders SET status = 'SHIPPED'"),
            (2, "DELETE FROM shop.orders"),
            (3, "UPDATE shop.orders SET placed_at = now()"),
            (4, "UPDATE shop.orders SET placed_at = NULL"),
        ] {
            shop.run(&format!("SELECT awty.pause('orders'); INSERT INTO shop.orders VALUES ({key}, {LATE})"));
            let mut client = shop.client();
            client.batch_execute(&format!("BEGIN ISOLATION LEVEL {level}; SELECT count(*) FROM shop.orders")).unwrap();
            shop.run("SELECT awty.resume('orders')");
            await_state(&shop, &format!("late {key}:1; pending -"));
            let failed = client.batch_execute(&format!("{write} WHERE id = {key}; COMMIT")).unwrap_err();
            assert_eq!(failed.code().map(|code| code.code()), Some("40001"), "{level} {write}: {failed:?}");
            client.batch_execute("ROLLBACK").unwrap();
            assert_eq!(state(&shop), format!("late {key}:1; pending -"));
            client.batch_execute(&format!("BEGIN ISOLATION LEVEL {level}; {write} WHERE id = {key}; COMMIT")).unwrap();
            let pending = if key == 3 { "3" } else { "-" };
            assert_eq!(state(&shop), format!("late -; pending {pending}"));
            shop.run("DELETE FROM shop.orders");
        }
    }
}

#[test]
fn a_writer_with_one_snapshot_sees_what_the_walk_has_written() {
    let shop = awty_testkit::fixture::Shop::open();
    shop.run(super::ORDERS);
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
    shop.run("SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '3 hours', existing => 'none')");
    let mut clients = [shop.client(), shop.client()];
    for client in &mut clients {
        client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM shop.orders").unwrap();
    }
    shop.run("SELECT awty.schedule('orders', '1', 'orders', after => '0')");
    await_state(&shop, "late 1:1; pending -");
    for (client, placed_at) in clients.iter_mut().zip(["now()", "placed_at - interval '1 hour'"]) {
        let write = format!("UPDATE shop.orders SET placed_at = {placed_at}; COMMIT");
        let failed = client.batch_execute(&write).unwrap_err();
        assert_eq!(failed.code().map(|code| code.code()), Some("40001"), "{placed_at}: {failed:?}");
        client.batch_execute("ROLLBACK").unwrap();
    }
    assert_eq!(refusal(&shop, "shop", "BEGIN; UPDATE shop.orders SET placed_at = now(); SELECT 1 / 0").0, "22012");
    assert_eq!(state(&shop), "late 1:1; pending -");
}

#[test]
fn a_writer_with_one_snapshot_knows_the_rule_that_is_there_now() {
    let shop = awty_testkit::fixture::Shop::open();
    shop.run(super::ORDERS);
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM awty.rule";
    let watch = |within: &str| {
        shop.run(&format!(
            "SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '{within}', replace => true)"
        ));
        super::await_walked(&shop);
    };
    let mut client = shop.client();
    client.batch_execute(begin).unwrap();
    watch("1 day");
    client.batch_execute(&format!("INSERT INTO shop.orders VALUES (1, {LATE}); COMMIT")).unwrap();
    assert_eq!(state(&shop), "late -; pending 1");
    client.batch_execute(begin).unwrap();
    watch("3 hours");
    client.batch_execute(&format!("INSERT INTO shop.orders VALUES (2, {LATE}); COMMIT")).unwrap();
    await_state(&shop, "late 1:1 2:1; pending -");
}

#[test]
fn no_alert_outlives_its_table_or_rule_for_want_of_a_snapshot() {
    let shop = watched("");
    let mut client = shop.client();
    for end in ["TRUNCATE shop.orders", "SELECT awty.unwatch('orders')"] {
        client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM awty.alert").unwrap();
        shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
        await_state(&shop, "late 1:1; pending -");
        let failed = client.batch_execute(&format!("{end}; COMMIT")).unwrap_err();
        assert_eq!(failed.code().map(|code| code.code()), Some("40001"), "{end}: {failed:?}");
        client.batch_execute("ROLLBACK").unwrap();
        assert_eq!(state(&shop), "late 1:1; pending -");
        super::expect(&shop, end, "late -; pending -");
    }
}

#[test]
fn a_client_that_replaces_a_rule_does_not_deadlock_with_its_walk() {
    // The log then also has the deadlocks that PostgreSQL ends by an error of a worker.
    let shop = super::watched_on(awty_testkit::Cluster::builder().set("log_lock_waits", "on").start(), "");
    shop.run("INSERT INTO shop.orders VALUES (1)");
    let replace = |hours: u32| {
        format!(
            "SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '{hours} hours', replace => true)"
        )
    };
    shop.run(&format!("SELECT awty.pause('orders'); {}", replace(4)));
    // The walk has found the table, and waits for the rule.
    let mut holder = shop.cluster.superuser("postgres");
    holder.batch_execute("BEGIN; SELECT FROM awty.rule FOR UPDATE").unwrap();
    shop.run("SELECT awty.resume('orders')");
    let waits =
        "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'awty worker' AND wait_event_type = 'Lock'";
    shop.await_true("the walk to wait", waits);
    let mut client = shop.client();
    let script = format!("BEGIN; LOCK TABLE shop.orders; {}; COMMIT", replace(5));
    let written = std::thread::spawn(move || client.batch_execute(&script));
    let locked =
        "SELECT count(*) = 1 FROM pg_locks WHERE relation = 'shop.orders'::regclass AND mode = 'AccessExclusiveLock'";
    shop.await_true("the client to lock the table, or to wait for it", locked);
    holder.batch_execute("COMMIT").unwrap();
    let written = written.join().unwrap();
    assert!(written.is_ok(), "{written:?}");
    super::await_walked(&shop);
    shop.await_true("the check to move", "SELECT next_check_at - now() > interval '4 hours' FROM awty.future_job");
    let log = shop.cluster.log_since(0);
    assert!(!log.contains("deadlock"), "{log}");
}

#[test]
fn a_prepared_write_decides_when_it_is_committed() {
    let shop =
        awty_testkit::fixture::Shop::on(awty_testkit::Cluster::builder().set("max_prepared_transactions", "2").start());
    shop.run(super::ORDERS);
    super::watch(&shop, "");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
    await_state(&shop, "late 1:1; pending -");
    shop.run("BEGIN; UPDATE shop.orders SET status = 'SHIPPED'; PREPARE TRANSACTION 'p'");
    assert_eq!(state(&shop), "late 1:1; pending -");
    shop.run("COMMIT PREPARED 'p'");
    assert_eq!(state(&shop), "late -; pending -");
}

/// One run handles two rows. While the run stores that the clock of row 2 is stopped, a client commits a change that
/// stops the clock of row 1.
#[test]
fn a_stop_that_commits_at_the_end_of_a_run_undoes_the_run() {
    let shop = stops::shop();
    shop.run(
        "CREATE FUNCTION shop.slow(a awty.alert) RETURNS void LANGUAGE sql AS
        $$ INSERT INTO shop.told VALUES (a.entity_key, a.level); SELECT pg_advisory_xact_lock_shared(1) $$",
    );
    let stopped = stops::STOPPED;
    stops::watch(&shop, &format!("since => 'placed_at', within => '1 hour', call => 'shop.slow', {stopped}"));
    let (mut call, mut stop, mut client) = (shop.client(), shop.client(), shop.client());
    call.batch_execute("SELECT pg_advisory_lock(1)").unwrap();
    stop.batch_execute("SELECT pg_advisory_lock(2)").unwrap();
    shop.run(
        "SELECT awty.pause('orders');
        INSERT INTO shop.orders SELECT n, now() - interval '2 hours' FROM generate_series(1, 2) AS n",
    );
    shop.cluster.execute(
        "postgres",
        &[
            "CREATE FUNCTION shop.wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock_shared(2); RETURN NULL; END $$",
            "CREATE TRIGGER waits AFTER INSERT ON awty_internal.stop FOR EACH ROW WHEN (NEW.key = '2') EXECUTE FUNCTION shop.wait()",
            "SET session_replication_role = replica; UPDATE shop.orders SET status = 'WAITING' WHERE id = 2",
        ],
    );
    shop.run("SELECT awty.resume('orders')");
    let locked = |lock: i32, granted: &str| {
        format!("EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = {lock} AND {granted})")
    };
    shop.await_true("the call", &format!("SELECT {}", locked(1, "NOT granted")));
    client.batch_execute("BEGIN; UPDATE shop.orders SET status = 'WAITING' WHERE id = 1").unwrap();
    call.batch_execute("SELECT pg_advisory_unlock(1)").unwrap();
    let run_is_over = format!("NOT {}", locked(1, "true"));
    shop.await_true("the end of the run", &format!("SELECT {} OR {run_is_over}", locked(2, "NOT granted")));
    client.batch_execute("COMMIT").unwrap();
    stop.batch_execute("SELECT pg_advisory_unlock(2)").unwrap();
    shop.await_true("the end of the transaction", &format!("SELECT {run_is_over}"));
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM shop.told"), 0);
    await_state(&shop, "late -; pending 1 2");
}

#[test]
fn an_update_ends_a_stop_beside_the_walk() {
    for (moment, waits) in [("before", "until"), ("during", "until"), ("after", "stop")] {
        let shop = stops::shop();
        shop.cluster.execute("postgres", &[stops::MINUTES]);
        shop.run(
            "CREATE FUNCTION shop.wait() RETURNS boolean LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$ BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN false; END $$;
            INSERT INTO shop.orders VALUES (1, now() - interval '1 hour', 'WAITING'), (2, now(), 'SLOW')",
        );
        let mut barrier = shop.client();
        barrier.batch_execute("SELECT pg_advisory_lock(1)").unwrap();
        if waits == "stop" {
            shop.cluster.execute(
                "postgres",
                &[
                    "CREATE FUNCTION shop.waits() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM shop.wait(); RETURN NULL; END $$",
                    "CREATE TRIGGER waits AFTER INSERT ON awty_internal.stop FOR EACH ROW WHEN (NEW.stopped_since IS NOT NULL) EXECUTE FUNCTION shop.waits()",
                ],
            );
        }
        let until = if waits == "until" { "CASE WHEN status = 'SLOW' THEN shop.wait() END" } else { "false" };
        let stopped = stops::STOPPED;
        shop.run(&format!("SELECT awty.watch('shop.orders', since => 'placed_at', until => $${until}$$, within => '3 hours', {stopped})"));
        let waiting = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)";
        shop.await_true("the walk", waiting);
        let mut client = shop.client();
        client.batch_execute("BEGIN").unwrap();
        let end = "UPDATE shop.orders SET status = 'UNSHIPPED' WHERE id = 1";
        let commit = |client: &mut awty_testkit::postgres::Client| client.batch_execute("COMMIT").unwrap();
        match moment {
            "before" => {
                client.batch_execute(end).unwrap();
                commit(&mut client);
                barrier.batch_execute("SELECT pg_advisory_unlock(1)").unwrap();
            }
            "during" => {
                client.batch_execute(end).unwrap();
                barrier.batch_execute("SELECT pg_advisory_unlock(1)").unwrap();
                let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND locktype = 'transactionid') OR NOT EXISTS (SELECT FROM awty.future_job WHERE entity_name LIKE 'awty.%')";
                shop.await_true("the walk to wait or to end", waits);
                commit(&mut client);
            }
            _ => {
                let updating = std::thread::spawn(move || {
                    client.batch_execute(end).unwrap();
                    commit(&mut client);
                });
                let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND locktype = 'transactionid') OR (SELECT status = 'UNSHIPPED' FROM shop.orders WHERE id = 1)";
                shop.await_true("the update to wait or to end", waits);
                barrier.batch_execute("SELECT pg_advisory_unlock(1)").unwrap();
                updating.join().unwrap();
            }
        }
        super::await_walked(&shop);
        assert_eq!(stops::stops(&shop, 1), "0-60", "{moment}");
        assert_eq!(state(&shop), "late -; pending 1 2", "{moment}");
    }
}

/// `awty.unwatch()` locks the rule's checks and then waits for a run that reads the table. The run must not wait for
/// the checks, because that would be a deadlock.
#[test]
fn a_walk_and_the_end_of_its_rule_do_not_wait_for_each_other() {
    let shop = watched("");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE}); INSERT INTO shop.orders (id) VALUES (2)"));
    await_state(&shop, "late 1:1; pending 2");
    shop.run(
        "CREATE FUNCTION shop.gate(id bigint) RETURNS boolean STABLE LANGUAGE plpgsql AS
             $$ BEGIN PERFORM pg_advisory_lock_shared(1); PERFORM pg_advisory_unlock_shared(1); RETURN true; END $$;
         SELECT awty.pause('orders');
         SELECT awty.watch('shop.orders', since => 'placed_at', until => $$shop.gate(id) AND status <> 'UNSHIPPED'$$, within => '3 hours', replace => true);
         SELECT awty.hold('awty.sweep', 'orders', 'orders')",
    );
    let (mut gate, mut ends) = (shop.client(), shop.client());
    gate.batch_execute("SELECT pg_advisory_lock(1)").unwrap();
    shop.run("SELECT awty.resume('orders')");
    shop.await_true(
        "the walk at the gate",
        "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)",
    );
    let ended = std::thread::spawn(move || ends.batch_execute("SELECT awty.unwatch('orders')"));
    shop.await_true(
        "the end of the rule to wait for the walk",
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE '%unwatch%' AND wait_event_type = 'Lock')",
    );
    gate.batch_execute("SELECT pg_advisory_unlock(1)").unwrap();
    ended.join().unwrap().unwrap();
    assert!(!shop.cluster.log_since(0).contains("deadlock detected"));
}
