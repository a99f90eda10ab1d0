//! Kills nodes and workers in the middle of runs that write on another node.

use crate::load::Load;
use crate::place::Place;
use awty_testkit::{Cluster, Signal};

const KILLS: usize = 10;

/// A run holds a transaction open on this node for a run of another node.
const MIDDLE: &str =
    "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE usename = 'shop' AND application_name LIKE 'citus_internal%'
                      AND state = 'idle in transaction')";

pub fn kills(place: &mut Place) -> String {
    let load = Load::start(place, "0 s");
    for kill in 0..KILLS {
        load.await_more(100);
        let (struck, other) = (kill % 2, 1 - kill % 2);
        place.nodes[other].await_sql("postgres", "a run on two nodes", MIDDLE);
        let node = &mut place.nodes[struck];
        if kill / 2 % 2 == 0 {
            crash(node);
            node.start();
        } else {
            let workers = node.pids("awty worker");
            workers.iter().for_each(|pid| node.kill(Signal::KILL, *pid));
            node.await_that("the server to come back", awty_testkit::PATIENCE, || {
                node.try_client("postgres", "postgres").map(|_| ()).map_err(|error| error.to_string())
            });
        }
    }
    load.await_more(100);
    let orders = load.stop(place);
    place.await_none("prepared transactions to end", "SELECT count(*) FROM pg_prepared_xacts");
    place.await_all_ended();
    format!("{KILLS} kills of nodes and workers, {orders} acknowledged orders: each had one effect")
}

/// Kills all processes of the server, as the loss of its machine does. The stopped server starts no other process.
#[track_caller]
pub fn crash(node: &mut Cluster) {
    let pids = node.pids("");
    node.kill(Signal::STOP, node.postmaster_pid());
    pids.iter().for_each(|pid| node.kill(Signal::KILL, *pid));
    node.kill_server();
}
