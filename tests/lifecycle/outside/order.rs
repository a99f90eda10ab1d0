use super::{claim, register};
use awty_testkit::fixture::Shop;
use awty_testkit::postgres::Client;

fn leased(client: &mut Client, claims: usize, max: i32) -> Vec<String> {
    let leased: Vec<_> = (0..claims).flat_map(|_| claim(client, max)).collect();
    let leases: Vec<i64> = leased.iter().map(|one| one.lease).collect();
    let given_back: i64 = client.query_one("SELECT awty.requeue($1)", &[&leases]).unwrap().get(0);
    assert_eq!(given_back as usize, leases.len());
    leased.into_iter().map(|one| one.entity_key).collect()
}

#[test]
fn within_a_target_the_earliest_slot_is_leased_first_and_then_the_lowest_id() {
    let shop = Shop::open();
    register(&shop, "", 0);
    let names = "unnest('{eve, tim, zoe, amy}'::text[], '{4, 3, 2, 3}'::integer[]) AS g (name, slot)";
    shop.run(&format!("SELECT awty.schedule('orders', g.name, 'mail', after => '1 h') FROM {names}"));
    let due = format!(
        "UPDATE awty.future_job SET next_check_at = date_trunc('second', now()) + (g.slot - 4) * interval '1 s'
         FROM {names} WHERE entity_key = g.name"
    );
    shop.cluster.execute("postgres", &[&due]);
    let slots =
        "SELECT string_agg(entity_key, ' ' ORDER BY id) || ' ' || count(DISTINCT next_check_at) FROM awty.future_job";
    assert_eq!(shop.cluster.psql("postgres", slots).trim(), "eve tim zoe amy 3");
    shop.await_true(
        "all of them to be claimable",
        "SELECT max(next_check_at) <= clock_timestamp() AND awty.next_claim_in('{mail}') = '0' FROM awty.future_job",
    );
    let mut client = shop.client();
    let order = ["zoe", "tim", "amy", "eve"];
    assert_eq!(leased(&mut client, 4, 1), order, "one at a time");
    assert_eq!(leased(&mut client, 2, 2), order, "two at a time");
    assert_eq!(leased(&mut client, 1, 10), order, "all at once");
    shop.run(
        "SELECT awty.schedule('blocked', n::text, 'mail', after => '0') FROM generate_series(1, 9) AS n;
         SELECT awty.alter_target('mail', 'blocked', blocked_until => 'infinity')",
    );
    let older =
        "UPDATE awty.future_job SET next_check_at = next_check_at - interval '1 h' WHERE entity_name = 'blocked'";
    shop.cluster.execute("postgres", &[older]);
    assert_eq!(leased(&mut client, 4, 1), order, "one at a time, behind others");
    assert_eq!(leased(&mut client, 2, 2), order, "two at a time, behind others");
}
