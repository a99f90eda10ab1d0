//! Tests awty.watch(), awty.repeat() and external workers on a cluster, as docs/citus.md shows them.

use crate::place::Place;
use awty_testkit::fixture::refusal;

const GOODS: &[&str] = &[
    "CREATE TABLE shop.goods (id bigint PRIMARY KEY, placed_at timestamptz NOT NULL DEFAULT now(), shipped boolean NOT NULL DEFAULT false)",
    "SET citus.shard_count = 8",
    "SELECT create_distributed_table('shop.goods', 'id')",
];

const TERMS: &str =
    "since => 'placed_at', until => 'shipped', within => '1 second', existing => 'all', replace => true";

const LATE: &str = "
SELECT count(*), count(DISTINCT entity_key) FROM run_command_on_all_nodes($$SELECT coalesce(json_agg(l), '[]') FROM awty.late AS l$$)
CROSS JOIN LATERAL json_populate_recordset(NULL::awty.late, result::json)";

#[track_caller]
fn watch_goods(place: &Place) {
    let mut shop = place.shop();
    let refused = refusal(&mut shop, &format!("SELECT awty.watch('shop.goods', {TERMS})"));
    assert_eq!(refused.message, "cannot watch \"shop.goods\": it is a Citus table");
    let watch = refused.hint.strip_prefix("Watch its shards: ").unwrap().replace('…', TERMS);
    for row in shop.query(watch.trim_end_matches(';'), &[]).unwrap() {
        assert!(row.get::<_, bool>("success"), "{}", row.get::<_, String>("result"));
    }
}

#[track_caller]
fn await_late(place: &Place, late: i64) {
    let mut shop = place.shop();
    place.coordinator.await_that("the alerts", awty_testkit::PATIENCE, || {
        let row = shop.query_one(LATE, &[]).unwrap();
        let seen = (row.get::<_, i64>(0), row.get::<_, i64>(1));
        if seen == (late, late) { Ok(()) } else { Err(format!("{seen:?}")) }
    });
}

pub fn watches(place: &mut Place) -> String {
    let mut shop = place.shop();
    for statement in GOODS {
        shop.batch_execute(statement).unwrap();
    }
    watch_goods(place);
    shop.batch_execute("INSERT INTO shop.goods SELECT n FROM generate_series(1, 100) AS n").unwrap();
    await_late(place, 100);
    shop.batch_execute("UPDATE shop.goods SET shipped = true WHERE id <= 60").unwrap();
    await_late(place, 40);
    let findings = "SELECT coalesce(string_agg(finding, '; '), '') FROM awty.doctor() WHERE finding LIKE 'rule%'";
    let findings: String = place.nodes[0].value("postgres", findings);
    assert_eq!(findings, "");

    // Follows docs/citus.md: ends the shard's rule, moves the shard, and watches the shard again.
    let shard = place.shard_of("shop.goods", 100);
    let from = usize::from(place.node_of(shard) != place.address(0));
    place.nodes[from].run_as("shop", &format!("SELECT awty.unwatch('goods_{shard}')"));
    let (old, new) = (place.address(from), place.address(1 - from));
    place.admin(&format!("SELECT citus_move_shard_placement({shard}, '{old}', 5432, '{new}', 5432, 'force_logical')"));
    watch_goods(place);
    await_late(place, 40);
    let moved: i64 = place.nodes[1 - from]
        .value("postgres", &format!("SELECT count(*) FROM awty.late WHERE rule = 'goods_{shard}'"));
    assert!(moved > 0, "the new node has no alert of the shard");
    shop.batch_execute("UPDATE shop.goods SET shipped = true").unwrap();
    await_late(place, 0);
    place.admin("DROP TABLE shop.goods");
    format!(
        "the statement of the HINT watched all shards: 100 alerts, 60 cleared by updates, {moved} raised again after a move"
    )
}

pub fn schemas(place: &mut Place) -> String {
    place.admin("GRANT CREATE ON DATABASE postgres TO shop");
    let mut shop = place.shop();
    for statement in [
        "SET citus.enable_schema_based_sharding = on",
        "CREATE SCHEMA tenant",
        "CREATE TABLE tenant.orders (id bigint PRIMARY KEY)",
        "CREATE TABLE tenant.told (order_id text NOT NULL)",
        "CREATE FUNCTION tenant.placed() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN PERFORM awty.schedule('tenant.orders', NEW.id, 'tenant', after => '0 s'); RETURN NULL; END $$",
        "CREATE TRIGGER placed AFTER INSERT ON tenant.orders FOR EACH ROW EXECUTE FUNCTION tenant.placed()",
        "CREATE FUNCTION tenant.tell(j awty.future_job) RETURNS void LANGUAGE plpgsql AS $$
         BEGIN INSERT INTO tenant.told VALUES (j.entity_key); END $$",
    ] {
        shop.batch_execute(statement).unwrap();
    }
    place.on_all_as_shop("SELECT awty.register('tenant', 'tenant.tell')");
    shop.batch_execute("INSERT INTO tenant.orders SELECT n FROM generate_series(1, 40) AS n").unwrap();
    place.await_all_ended();
    let told: i64 = place.value("SELECT count(*) FROM (SELECT DISTINCT order_id FROM tenant.told) AS t");
    let rows: i64 = place.value("SELECT count(*) FROM tenant.told");
    assert_eq!((told, rows), (40, 40));
    let runs = place.on_all("SELECT count(*) FROM awty.future_job_history WHERE job = 'tenant' AND outcome = 'done'");
    assert_eq!(runs.iter().filter(|runs| *runs == "40").count(), 1, "{runs:?}");
    place.on_all_as_shop("SELECT awty.unregister('tenant')");
    place.admin("DROP SCHEMA tenant CASCADE");
    "schema-based sharding: the 40 checks of a tenant ran once each, all on one node".into()
}

pub fn repeats(place: &mut Place) -> String {
    let mut shop = place.shop();
    for statement in [
        "CREATE TABLE shop.beat (slot timestamptz NOT NULL)",
        "SELECT create_distributed_table('shop.beat', 'slot')",
        "CREATE FUNCTION shop.beat(j awty.future_job) RETURNS void LANGUAGE plpgsql AS $$
         BEGIN INSERT INTO shop.beat VALUES (j.next_check_at); END $$",
        "SELECT awty.register('beat', 'shop.beat')",
        "SELECT awty.repeat('beat', every => '1 s')",
    ] {
        shop.batch_execute(statement).unwrap();
    }
    place.coordinator.await_sql("postgres", "five beats", "SELECT count(*) >= 5 FROM shop.beat");
    shop.batch_execute("SELECT awty.unregister('beat')").unwrap();
    let twice: i64 = place.value("SELECT count(*) - count(DISTINCT slot) FROM shop.beat");
    assert_eq!(twice, 0, "a slot ran twice");
    let runs = place.sum("SELECT count(*) FROM awty.future_job_history WHERE job = 'beat' AND outcome = 'done'");
    let beats: i64 = place.value("SELECT count(*) FROM shop.beat");
    assert!(beats == runs, "{beats} beats of {runs} runs");
    place.admin("DROP TABLE shop.beat");
    format!("a repetition of the coordinator: {beats} slots, each once, with effects on the nodes")
}

pub fn workers(place: &mut Place) -> String {
    place.on_all_as_shop("SELECT awty.register('mail', replace => true)");
    place.shop().batch_execute("INSERT INTO shop.orders SELECT n, 'mail' FROM generate_series(1, 40) AS n").unwrap();
    let claim = "
        SELECT n.nodename::text, c.lease, c.entity_key
        FROM run_command_on_all_nodes($$SELECT coalesce(json_agg(c), '[]') FROM awty.claim('{mail}', 'worker-1', max => 7) AS c$$) AS r
        JOIN pg_dist_node AS n USING (nodeid)
        CROSS JOIN LATERAL json_populate_recordset(NULL::awty.leased, r.result::json) AS c";
    let mut claimed = 0;
    while claimed < 40 {
        let rows = place.coordinator.await_that("leases", awty_testkit::PATIENCE, || {
            let rows = place.shop().query(claim, &[]).map_err(|error| error.to_string())?;
            if rows.is_empty() { Err("none".into()) } else { Ok(rows) }
        });
        for row in rows {
            let (node, lease, key): (String, i64, String) = (row.get(0), row.get(1), row.get(2));
            let index = (0..place.nodes.len()).find(|index| place.address(*index) == node).unwrap();
            let mut client = place.nodes[index].client("postgres", "shop");
            let effect = format!(
                "BEGIN; INSERT INTO shop.outbox VALUES (-{key}, 'mail'); SELECT awty.complete({lease}); COMMIT"
            );
            client.batch_execute(&effect).unwrap();
            claimed += 1;
        }
    }
    place.await_all_ended();
    place.on_all_as_shop("SELECT awty.unregister('mail')");
    format!("one external worker claimed from all nodes in one query and answered {claimed} leases on their nodes")
}

pub fn triggers(place: &mut Place) -> String {
    let mut shop = place.shop();
    for statement in [
        "CREATE TABLE shop.country (id bigint PRIMARY KEY)",
        "CREATE TABLE shop.parcel (id bigint PRIMARY KEY)",
        "SELECT create_reference_table('shop.country')",
        "SELECT create_distributed_table('shop.parcel', 'id')",
        "CREATE FUNCTION shop.named() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN PERFORM awty.schedule(TG_TABLE_NAME, NEW.id, 'tell'); RETURN NULL; END $$",
        "CREATE TRIGGER each_node AFTER INSERT ON shop.country FOR EACH ROW EXECUTE FUNCTION shop.placed()",
        "CREATE TRIGGER shard_name AFTER INSERT ON shop.parcel FOR EACH ROW EXECUTE FUNCTION shop.named()",
    ] {
        shop.batch_execute(statement).unwrap();
    }
    let found = "SELECT coalesce(string_agg(finding, '; ' ORDER BY finding), '') FROM awty.doctor() WHERE finding LIKE 'trigger%'";
    let found: String = shop.query_one(found, &[]).unwrap().get(0);
    let expected = "trigger \"each_node\" of shop.country schedules on every node; \
                    trigger \"shard_name\" of shop.parcel schedules for the name of a shard";
    assert_eq!(found, expected);
    place.admin("DROP TABLE shop.country, shop.parcel");
    "doctor() found the trigger of a reference table, and the one that uses TG_TABLE_NAME".into()
}
