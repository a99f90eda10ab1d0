mod calendars;
mod calls;
mod cleared;
mod copies;
mod crowd;
mod encodings;
mod errors;
mod holds;
mod keys;
mod levels;
mod many_stops;
mod met;
mod migrations;
mod oracle;
mod partitions;
mod races;
mod refusals;
mod remembered;
mod replaced;
mod rights;
mod silence;
mod stops;
mod sweeps;
mod tables;
mod tellings;
mod untold;
mod walks;
mod writes;

use awty_testkit::Cluster;
use awty_testkit::fixture::Shop;

const ORDERS: &str = "CREATE TABLE shop.orders (id bigint PRIMARY KEY, placed_at timestamptz DEFAULT now(),
    status text NOT NULL DEFAULT 'UNSHIPPED', note text)";
const LATE: &str = "now() - interval '4 hours'";

fn watched(more: &str) -> Shop {
    watched_on(Cluster::builder().start(), more)
}

fn watched_on(cluster: Cluster, more: &str) -> Shop {
    let shop = Shop::on(cluster);
    shop.run(ORDERS);
    watch(&shop, more);
    shop
}

#[track_caller]
fn watch(shop: &Shop, more: &str) {
    let comma = if more.is_empty() { "" } else { ", " };
    shop.run(&format!(
        "SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '3 hours'{comma}{more})"
    ));
    // Waits until awty has read the existing rows, because an earlier change of a row would add a check that some tests
    // do not expect.
    await_walked(shop);
}

/// Returns `late 1:2; pending 1 3` if row 1 has an open alert at level 2, and rows 1 and 3 have checks that are not
/// held.
fn state(shop: &Shop) -> String {
    state_in(shop, "postgres")
}

fn state_in(shop: &Shop, database: &str) -> String {
    shop.cluster.value(
        database,
        "SELECT 'late ' || coalesce((SELECT string_agg(entity_key || ':' || level, ' ' ORDER BY entity_key)
                            FROM awty.alert WHERE cleared_at IS NULL), '-')
            || '; pending ' || coalesce((SELECT string_agg(entity_key, ' ' ORDER BY entity_key)
                            FROM awty.future_job WHERE entity_name NOT LIKE 'awty.%' AND NOT held), '-')",
    )
}

#[track_caller]
fn await_state(shop: &Shop, wanted: &str) {
    await_state_in(shop, "postgres", wanted);
}

#[track_caller]
fn await_state_in(shop: &Shop, database: &str, wanted: &str) {
    shop.cluster.await_that(wanted, awty_testkit::PATIENCE, || match state_in(shop, database) {
        state if state == wanted => Ok(()),
        state => Err(state),
    });
}

#[track_caller]
fn expect(shop: &Shop, script: &str, wanted: &str) {
    shop.run(script);
    assert_eq!(state(shop), wanted, "after {script}");
}

#[track_caller]
fn refusal(shop: &Shop, role: &str, script: &str) -> (String, String) {
    match shop.cluster.client("postgres", role).batch_execute(script) {
        Ok(()) => panic!("not refused: {script}"),
        Err(error) => {
            let db = error.as_db_error().unwrap();
            (db.code().code().to_owned(), format!("{} {}", db.message(), db.detail().unwrap_or_default()))
        }
    }
}

#[track_caller]
fn await_walked(shop: &Shop) {
    shop.await_true(
        "the walk to end",
        "SELECT NOT EXISTS (SELECT FROM awty.future_job WHERE entity_name LIKE 'awty.%')",
    );
}
