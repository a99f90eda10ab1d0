//! No check may be lost when an external worker dies or answers late (promise P14).

mod answers;
mod breaker;
mod claims;
mod crashes;
mod cut;
mod meanwhile;
mod order;
mod seen;
mod targets;
mod wire;

use awty_testkit::fixture::Shop;
use awty_testkit::postgres::Client;

#[derive(Debug, Clone)]
struct Leased {
    lease: i64,
    entity_key: String,
    attempt: i32,
    key: String,
}

/// The job `mail` has no function, so external workers run it.
fn shop_with(options: &str, checks: i32) -> Shop {
    let shop = Shop::open();
    register(&shop, options, checks);
    shop
}

fn register(shop: &Shop, options: &str, checks: i32) {
    shop.run(&format!("SELECT awty.register('mail'{options})"));
    shop.run(&format!(
        "SELECT awty.schedule('orders', n::text, 'mail', after => '0') FROM generate_series(1, {checks}) AS n"
    ));
    if checks > 0 {
        let is_open = "awty.next_claim_in('{mail}') = '0'";
        shop.await_true("the checks to be claimable", &format!("SELECT {DUE} = {checks} AND {is_open}"));
    }
}

const DUE: &str = "(SELECT count(*) FROM awty.future_job WHERE next_check_at <= clock_timestamp())";

fn claim(client: &mut Client, max: i32) -> Vec<Leased> {
    let sql = "SELECT lease, entity_key, attempt, key FROM awty.claim('{mail}', 'tester', $1)";
    let rows = client.query(sql, &[&max]).unwrap();
    let leased = |row: &awty_testkit::postgres::Row| Leased {
        lease: row.get(0),
        entity_key: row.get(1),
        attempt: row.get(2),
        key: row.get(3),
    };
    rows.iter().map(leased).collect()
}

/// Makes all leases expire, except leases that an open transaction has locked.
const EXPIRE: &str = "UPDATE awty_internal.lease SET expires_at = leased_at + interval '1 us'
    WHERE id IN (SELECT id FROM awty_internal.lease FOR UPDATE SKIP LOCKED)";

fn expire(shop: &Shop) {
    shop.cluster.execute("postgres", &[EXPIRE]);
}

#[track_caller]
fn await_claim(shop: &Shop, max: i32) -> Vec<Leased> {
    let patience = std::time::Duration::from_secs(60);
    shop.cluster.await_that("something to claim", patience, || {
        let mut client = shop.cluster.try_client("postgres", "shop").map_err(|error| error.to_string())?;
        let leased = claim(&mut client, max);
        if leased.is_empty() { Err("nothing".into()) } else { Ok(leased) }
    })
}

#[track_caller]
fn claim_one(shop: &Shop) -> Leased {
    await_claim(shop, 1).remove(0)
}

#[track_caller]
fn say(client: &mut Client, call: &str, lease: i64) -> String {
    client.query_one(&format!("SELECT awty.{call}"), &[&lease]).unwrap_or_else(|e| panic!("{call}: {e:?}")).get(0)
}
