use crate::kills::crash;
use crate::load::Load;
use crate::place::{JOBS, NODE, Place};
use awty_testkit::{Signal, checkout};

const MOVE: &str = "SELECT awty_citus.move_shard('shop.orders', $1, $2, 5432, ARRAY['orders'], 'force_logical')";

pub fn joins(place: &mut Place) -> String {
    place.add_node();
    let missing = place.findings();
    assert!(missing.contains("job \"tell\""), "doctor() does not report that the new node has no jobs: {missing}");
    place.on_all(NODE);
    place.on_all_as_shop(JOBS);
    let missing = place.findings();
    assert_eq!(missing, "");
    let new = place.nodes.len() - 1;
    place.nodes[new]
        .execute("postgres", &["SET citus.enable_ddl_propagation = off; REVOKE USAGE ON SCHEMA awty FROM shop"]);
    let missing = place.findings();
    assert_eq!(missing, format!("role shop may not use awty on node {}:5432", place.address(new)));
    place.admin(&place.value::<String>("SELECT fix FROM awty.doctor() WHERE finding LIKE 'role shop%'"));
    assert_eq!(place.findings(), "");
    let load = Load::start(place, "0 s");
    load.await_more(50);
    place.install_moves();
    let shard = place.shard_of("shop.orders", 1);
    place.move_shard(shard, new);
    load.await_more(100);
    let orders = load.stop(place);
    place.await_all_ended();
    let runs: i64 = place.nodes[new]
        .value("postgres", "SELECT count(*) FROM awty.future_job_history WHERE job = 'tell' AND outcome = 'done'");
    assert!(runs > 0, "the new node has run nothing");
    format!("{orders} orders, {runs} of them on the new node")
}

pub fn moves(place: &mut Place) -> String {
    place.install_moves();
    let shard = place.shard_of("shop.orders", 1);
    let load = Load::start(place, "4 s");
    load.await_more(100);
    place.shop().batch_execute("INSERT INTO shop.orders VALUES (-1, 'wait', '1 hour')").unwrap();
    let shard_of_late = place.shard_of("shop.orders", -1);
    let mut moved = 0;
    for shard in [shard, shard_of_late, shard, shard_of_late] {
        let target = usize::from(place.node_of(shard) == place.address(0));
        moved += place.move_shard(shard, target);
        load.await_more(50);
    }
    assert!(moved > 0, "no check has moved");
    // The order's check has moved with the order's shard. The trigger on the new node replaces this check.
    place.shop().batch_execute("UPDATE shop.orders SET after = '0 s' WHERE id = -1").unwrap();
    let orders = load.stop(place);
    place.await_all_ended();
    format!("four moves of shards took {moved} checks along, {orders} orders: each had one effect")
}

pub fn standby(place: &mut Place) -> String {
    let standby = place.nodes[0].standby();
    standby.configure(&format!("citus.local_hostname = '{}'", standby.socket_directory().display()));
    place.nodes[0].configure("synchronous_standby_names = '*'\nawty.synchronous_commit = on");
    place.nodes[0].reload();
    place.nodes[0].await_sql("postgres", "the standby", "SELECT bool_or(sync_state = 'sync') FROM pg_stat_replication");
    let load = Load::start(place, "2 s");
    load.await_more(200);
    // Freezes the standby's WAL receiver, so that the standby lacks the primary's last commits when it is promoted.
    let receivers = standby.pids("walreceiver");
    receivers.iter().for_each(|pid| standby.kill(Signal::STOP, *pid));
    let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'awty worker' AND wait_event = 'SyncRep')
                    AND EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'client backend' AND wait_event = 'SyncRep')";
    place.nodes[0].await_sql("postgres", "a worker and a client to wait for the standby", waits);
    crash(&mut place.nodes[0]);
    receivers.iter().for_each(|pid| standby.kill(Signal::CONT, *pid));
    let mut standby = standby;
    standby.promote();
    standby.restart();
    place.moved(0, &standby);
    place.nodes[0] = standby;
    load.await_more(100);
    let orders = load.stop(place);
    place.await_none("prepared transactions to end", "SELECT count(*) FROM pg_prepared_xacts");
    place.await_all_ended();
    format!("{orders} acknowledged orders beside a promotion: each had one effect")
}

impl Place {
    fn install_moves(&self) {
        let mut psql = self.coordinator.tool("psql");
        psql.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", "postgres", "-f"])
            .arg(checkout().join("examples/citus/move_shard.sql"));
        let output = psql.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn move_shard(&self, shard: i64, node: usize) -> i64 {
        let row = self.coordinator.superuser("postgres").query_one(MOVE, &[&shard, &self.address(node)]);
        row.unwrap().get(0)
    }

    pub fn shard_of(&self, table: &str, key: i64) -> i64 {
        self.value(&format!("SELECT get_shard_id_for_distribution_column('{table}', {key})"))
    }

    pub fn node_of(&self, shard: i64) -> String {
        self.value(&format!(
            "SELECT n.nodename::text FROM pg_dist_placement AS p JOIN pg_dist_node AS n USING (groupid) WHERE p.shardid = {shard}"
        ))
    }

    fn findings(&self) -> String {
        self.value("SELECT coalesce(string_agg(finding, '; '), '') FROM awty.doctor() WHERE finding LIKE '%node%'")
    }
}
