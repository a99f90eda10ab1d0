//! Kills nodes, postmasters and workers while runs write on another node.

use crate::load::Load;
use crate::place::Place;
use awty_testkit::{Cluster, Signal};

const KILLS: usize = 10;

/// Returns whether a run on another node has an open transaction on this node.
const MIDDLE: &str =
    "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE usename = 'shop' AND application_name LIKE 'citus_internal%'
                      AND state = 'idle in transaction')";

/// Makes each run sleep between its write on the other node and its commit.
fn slow_down(place: &Place, seconds: f64) {
    let slower = format!(
        "CREATE OR REPLACE FUNCTION shop.tell(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$
         BEGIN INSERT INTO shop.outbox VALUES (-j.entity_key::bigint, j.job); PERFORM pg_sleep({seconds}); RETURN NULL; END $$"
    );
    place.shop().batch_execute(&slower).unwrap();
}

pub fn kills(place: &mut Place) -> String {
    slow_down(place, 0.01);
    let load = Load::start(place, "0 s");
    for kill in 0..KILLS {
        load.await_more(100);
        let (struck, other) = (kill % 2, 1 - kill % 2);
        place.nodes[other].await_sql("postgres", "a run on two nodes", MIDDLE);
        let node = &mut place.nodes[struck];
        match kill / 2 % 3 {
            0 => {
                crash(node);
                node.start();
            }
            1 => {
                kill_postmaster(node);
                node.start();
            }
            _ => {
                let workers = node.pids("awty worker");
                workers.iter().for_each(|pid| node.kill(Signal::KILL, *pid));
                node.await_that("the server to come back", awty_testkit::PATIENCE, || {
                    node.try_client("postgres", "postgres").map(|_| ()).map_err(|error| error.to_string())
                });
            }
        }
    }
    load.await_more(100);
    let orders = load.stop(place);
    place.await_none("prepared transactions to end", "SELECT count(*) FROM pg_prepared_xacts");
    place.await_all_ended();
    slow_down(place, 0.0);
    format!("{KILLS} kills of nodes, postmasters and workers, {orders} acknowledged orders: each had one effect")
}

/// The test kills only the postmaster, because all other processes of the server must end by themselves.
#[track_caller]
fn kill_postmaster(node: &mut Cluster) {
    let mut faults = node.new_faults();
    node.kill_server();
    // Ignores the ERROR that Citus raises if it notices the postmaster's death only after the commit.
    faults.extend(
        node.new_faults().into_iter().filter(|fault| !fault.ends_with("AbortTransaction while in COMMIT state")),
    );
    assert!(faults.is_empty(), "{faults:#?}");
}

/// Kills all processes of the server, as if its machine were lost. Stops the postmaster first, so that no new process
/// starts.
#[track_caller]
pub fn crash(node: &mut Cluster) {
    let pids = node.pids("");
    node.kill(Signal::STOP, node.postmaster_pid());
    pids.iter().for_each(|pid| node.kill(Signal::KILL, *pid));
    node.kill_server();
}
