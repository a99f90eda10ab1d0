//! Settings of roles and sessions apply to a job's statements, but not to awty's own statements.

use awty_testkit::Cluster;
use awty_testkit::fixture::{GATE, Shop};

#[test]
fn a_role_that_plans_anew_does_not_slow_awtys_own_statements() {
    let server = Cluster::builder()
        .set("shared_preload_libraries", "awty,pg_stat_statements")
        .set("pg_stat_statements.track_planning", "on")
        .set("awty.batch_size", "1")
        .set("awty.max_workers_per_role", "1");
    let shop = Shop::on(server.start());
    shop.cluster.execute(
        "postgres",
        &["CREATE EXTENSION pg_stat_statements", "ALTER ROLE shop SET plan_cache_mode = force_custom_plan"],
    );
    let note =
        "BEGIN INSERT INTO shop.note (entity_key, what) VALUES (j.entity_key, current_setting('plan_cache_mode'));
                RETURN NULL; END";
    shop.job("note", note, "");
    let count = "SELECT calls, plans, query FROM pg_stat_statements
                 WHERE query ~ 'awty\\.' AND query !~ '^SELECT NOT EXISTS' AND calls > 100 ORDER BY calls DESC";
    shop.run(
        "SELECT count(awty.schedule('orders', n::text, 'note', after => '1 s')) FROM generate_series(1, 300) AS n",
    );
    shop.await_all_ended();
    let statements = shop.cluster.superuser("postgres").query(count, &[]).unwrap();
    assert!(!statements.is_empty(), "awty has run no statement often");
    for row in statements {
        let (calls, plans, query): (i64, i64, String) = (row.get(0), row.get(1), row.get(2));
        assert!(plans * 4 < calls, "{calls} calls, {plans} plans: {query}");
    }
    let modes = "SELECT string_agg(DISTINCT what, ' ') FROM shop.note";
    assert_eq!(shop.cluster.value::<String>("postgres", modes), "force_custom_plan");
}

/// A restore or a subscription changes `awty.job` without firing ordinary triggers.
#[test]
fn a_job_that_a_replica_changes_is_taken_as_it_is() {
    // While the first check waits, no second worker may run the second check.
    let shop = Shop::on(Cluster::builder().set("awty.max_workers_per_role", "1").start());
    let gated = format!(
        "BEGIN IF j.entity_key = '1' THEN {GATE} END IF;
         INSERT INTO shop.note (entity_key) VALUES (j.entity_key); RETURN NULL; END"
    );
    shop.job("gated", &gated, "");
    let replica = |change: &str| {
        let script = format!("SET session_replication_role = replica; UPDATE awty.job SET {change}");
        shop.cluster.superuser("postgres").batch_execute(&script).unwrap();
    };
    let gate = shop.close_gate();
    shop.run("SELECT awty.schedule('orders', n::text, 'gated', after => '1 s') FROM generate_series(1, 2) AS n");
    shop.await_at_gate();
    replica("paused = true");
    drop(gate);
    assert_eq!(shop.end_of("1").why(), ("done", None));
    shop.await_workers_gone();
    assert_eq!((shop.notes("2"), shop.ends("2").len()), (0, 0), "a paused job has run");

    let mut client = shop.client();
    let schedule = "SELECT awty.schedule('orders', 'far', 'gated', after => '2 h')";
    client.batch_execute(schedule).unwrap();
    replica("max_horizon = '1 h'");
    let refusal =
        client.batch_execute(schedule).err().and_then(|error| error.as_db_error().map(|db| db.message().to_owned()));
    assert!(refusal.as_ref().is_some_and(|message| message.contains("too far ahead")), "{refusal:?}");
}
