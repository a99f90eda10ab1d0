use super::{ORDERS, await_walked};
use awty_testkit::Cluster;
use awty_testkit::fixture::Shop;
use awty_testkit::postgres::Transaction;

const SET_UP: &str = "CREATE TABLE shop.told (key text, level integer, told bigint, at timestamptz DEFAULT awty.now());
    CREATE FUNCTION shop.tell(a awty.alert) RETURNS void LANGUAGE sql AS
        $$ INSERT INTO shop.told VALUES (a.entity_key, a.level, a.told) $$;
    SELECT awty.create_calendar('office', '{mon-fri 09:00-17:00}', 'UTC')";
const FRIDAY: &str = "(date_trunc('week', now() AT TIME ZONE 'UTC') + interval '11 days 12 hours') AT TIME ZONE 'UTC'";

fn shop(rule: &str) -> Shop {
    let shop = Shop::on(Cluster::builder().set("awty.time_travel", "on").start());
    shop.run(ORDERS);
    shop.run(SET_UP);
    shop.run(&format!(
        "SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, call => 'shop.tell', {rule})"
    ));
    await_walked(&shop);
    shop
}

fn told(journey: &mut Transaction) -> String {
    let sql = "SELECT coalesce(string_agg(level || ' ' || to_char(at AT TIME ZONE 'UTC', 'Dy HH24:MI'), ', ' ORDER BY at), '-') FROM shop.told";
    journey.query_one(sql, &[]).unwrap().get(0)
}

fn travel(journey: &mut Transaction, ahead: &str) {
    journey.execute(&format!("SELECT awty.travel('{ahead}')"), &[]).unwrap();
}

#[test]
fn a_rule_reminds_tells_and_repeats_in_open_time() {
    let shop = shop(
        "calendar => 'office', within => '8 hours', remind => '{1 day, 2 hours}', escalate => '{2 days}', every => '1 day'",
    );
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {FRIDAY})"));
    let mut client = shop.client();
    let mut journey = client.transaction().unwrap();
    travel(&mut journey, "22 days");
    let tellings = told(&mut journey);
    assert!(
        tellings.starts_with(
            "0 Fri 12:00, 0 Mon 10:00, 1 Mon 12:00, 2 Tue 12:00, 2 Wed 12:00, 2 Thu 12:00, 2 Fri 12:00, 2 Mon 12:00"
        ),
        "{tellings}"
    );
    let alert = "SELECT level = 2 AND told = (SELECT count(*) FROM shop.told) AND reminded_at < raised_at AND raised_at < escalated_at
        FROM awty.alert";
    assert!(journey.query_one(alert, &[]).unwrap().get::<_, bool>(0));
    journey.batch_execute("SELECT awty.check_now('orders', 1, 'orders')").unwrap();
    travel(&mut journey, "1 second");
    assert_eq!(told(&mut journey), tellings, "a check before the time tells nothing");
    journey.batch_execute("UPDATE shop.orders SET status = 'SHIPPED'; DELETE FROM shop.told").unwrap();
    travel(&mut journey, "7 days");
    assert_eq!(told(&mut journey), "-", "a cleared alert is told no more");
}

#[test]
fn a_reminded_row_may_be_met_in_time() {
    let shop = shop("within => '10 hours', remind => '{4 hours}'");
    shop.run("INSERT INTO shop.orders VALUES (1, now()), (2, now() - interval '7 hours')");
    let mut client = shop.client();
    let mut journey = client.transaction().unwrap();
    travel(&mut journey, "7 hours");
    let state = "SELECT string_agg(concat_ws(' ', entity_key, level, told, raised_at IS NULL, cleared_at IS NULL), ', ' ORDER BY entity_key) FROM awty.alert";
    let seen = |journey: &mut Transaction| journey.query_one(state, &[]).unwrap().get::<_, String>(0);
    assert_eq!(seen(&mut journey), "1 0 1 t t, 2 1 1 f t", "the reminder of order 2 had passed when it came");
    journey.batch_execute("UPDATE shop.orders SET status = 'SHIPPED'").unwrap();
    assert_eq!(seen(&mut journey), "1 0 1 t f, 2 1 1 f f");
    let ends = "SELECT string_agg(entity_key || ' ' || outcome, ', ' ORDER BY entity_key) FROM awty.future_job_history WHERE entity_name = 'orders'";
    assert_eq!(journey.query_one(ends, &[]).unwrap().get::<_, String>(0), "1 met, 2 done");
}

#[test]
fn a_hold_silences_reminders_and_repetitions() {
    let shop = shop("within => '10 hours', remind => '{4 hours}', every => '1 hour'");
    shop.run("INSERT INTO shop.orders VALUES (1, now()); SELECT awty.hold('orders', 1, held_until => now() + interval '13 hours')");
    let mut client = shop.client();
    let mut journey = client.transaction().unwrap();
    travel(&mut journey, "7 hours");
    let reminded = "SELECT reminded_at IS NOT NULL AND told = 0 AND level = 0 FROM awty.alert";
    assert!(journey.query_one(reminded, &[]).unwrap().get::<_, bool>(0));
    travel(&mut journey, "5 hours");
    assert_eq!(told(&mut journey), "-");
    travel(&mut journey, "3 hours 30 minutes");
    let counts = "SELECT array_agg(level ORDER BY at) = '{1,1,1}' FROM shop.told";
    assert!(journey.query_one(counts, &[]).unwrap().get::<_, bool>(0), "{}", told(&mut journey));
}

#[test]
fn no_telling_is_committed_without_its_alert() {
    let shop = shop("within => '1 hour', escalate => '{2 hours}'");
    shop.run(
        "CREATE SEQUENCE shop.calls;
         CREATE FUNCTION shop.count(a awty.alert) RETURNS void LANGUAGE sql AS
             $$ SELECT nextval('shop.calls'); INSERT INTO shop.told VALUES (a.entity_key, a.level, a.told) $$;
         INSERT INTO shop.orders VALUES (1, now() - interval '90 min')",
    );
    shop.await_true("level 1", "SELECT count(*) = 1 FROM awty.late");
    let mut client = shop.cluster.superuser("postgres");
    let mut locks = client.transaction().unwrap();
    locks.batch_execute("SELECT FROM awty.alert FOR UPDATE").unwrap();
    shop.run(
        "SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, call => 'shop.count',
             within => '1 hour', escalate => '{80 min}', replace => true)",
    );
    shop.await_true("a run at level 2", "SELECT is_called FROM shop.calls");
    locks.commit().unwrap();
    shop.await_true("level 2", "SELECT count(*) = 1 FROM awty.late WHERE level = 2");
    let counted = "SELECT told = 2 AND told = (SELECT count(*) FROM shop.told) FROM awty.alert";
    assert!(shop.cluster.value::<bool>("postgres", counted));
}
