//! Compares awty's stops (periods in which a row's clock stands still) and the resulting due times with a computation
//! in SQL.

use super::{ORDERS, await_walked};
use awty_testkit::Cluster;
use awty_testkit::fixture::Shop;
use awty_testkit::postgres::Client;

/// Calculates the stops and due times in SQL, and uses awty's functions only for calculations with a calendar.
const ORACLE: &str = "
    CREATE TABLE shop.changed (waiting boolean, at timestamptz);
    -- awty merges the oldest of more than 1,000 stops into one stop.
    CREATE FUNCTION shop.stops() RETURNS tstzmultirange STABLE LANGUAGE sql AS $$
        SELECT range_agg(s.stop) FROM (
            SELECT tstzrange(min(begins), max(ends)) AS stop FROM (
                SELECT begins, ends, greatest(row_number() OVER (ORDER BY begins) - count(*) OVER () + 1000, 1) AS place FROM (
                    SELECT waiting, at AS begins, lead(at) OVER (ORDER BY at) AS ends FROM shop.changed) AS c
                WHERE waiting AND ends IS NOT NULL) AS p
            GROUP BY place) AS s $$;
    CREATE FUNCTION shop.moved(due timestamptz, calendar text) RETURNS timestamptz STABLE LANGUAGE plpgsql AS $$
    DECLARE
        stop tstzrange;
        length interval;
    BEGIN
        FOR stop IN SELECT s FROM unnest(shop.stops()) AS s ORDER BY s LOOP
            EXIT WHEN lower(stop) >= due;
            length := CASE WHEN calendar IS NULL THEN upper(stop) - lower(stop) ELSE awty.open_time(lower(stop), upper(stop), calendar) END;
            IF length > '0' THEN
                due := CASE WHEN calendar IS NULL THEN due + length ELSE awty.due(due, length, calendar) END;
            END IF;
        END LOOP;
        RETURN due;
    END $$";

/// Returns for each rule whether the stored stops of its clock are correct, whether its check is due at the correct
/// time, and the number of stops.
const COMPARED: &str = "
    SELECT string_agg(concat_ws(' ', f.job, s.stops = shop.stops(), f.next_check_at = awty.next_slot(due.at),
        (SELECT count(*) FROM unnest(s.stops))), ', ' ORDER BY f.job)
    FROM awty.future_job AS f JOIN awty_internal.stop AS s ON s.rule = f.job AND s.key = f.entity_key JOIN shop.orders AS o ON o.id::text = f.entity_key
    CROSS JOIN LATERAL (SELECT CASE f.job WHEN 'plain' THEN shop.moved(o.placed_at + interval '1500 hours', NULL)
        ELSE shop.moved(awty.due(o.placed_at, '500 hours', 'office'), 'office') END AS at) AS due";

fn stop_and_go(client: &mut Client, from: i32, to: i32) {
    let go = format!(
        "DO $$ BEGIN FOR n IN {from} .. {to} LOOP
             UPDATE shop.orders SET status = 'WAITING';
             INSERT INTO shop.changed VALUES (true, awty.now());
             PERFORM awty.travel((n * 37 % 101 + 1) * interval '1 minute');
             UPDATE shop.orders SET status = 'UNSHIPPED';
             INSERT INTO shop.changed VALUES (false, awty.now());
             PERFORM awty.travel((n * 53 % 89 + 1) * interval '1 minute');
         END LOOP; END $$"
    );
    client.batch_execute(&go).unwrap();
}

fn compared(client: &mut Client) -> String {
    client.query_one(COMPARED, &[]).unwrap().get(0)
}

#[test]
fn a_thousand_stops_move_the_due_time() {
    let shop = Shop::on(Cluster::builder().set("awty.time_travel", "on").start());
    shop.cluster.execute("postgres", &["GRANT USAGE ON SCHEMA awty_internal TO shop"]);
    shop.run(ORDERS);
    shop.run(ORACLE);
    shop.run(
        "SELECT awty.create_calendar('office', '{mon-fri 09:00-17:00}', 'UTC');
         SELECT awty.watch('shop.orders', rule => 'office', since => 'placed_at', until => $$status = 'SHIPPED'$$, within => '500 hours',
             calendar => 'office', stopped => $$status = 'WAITING'$$);
         SELECT awty.watch('shop.orders', rule => 'plain', since => 'placed_at', until => $$status = 'SHIPPED'$$, within => '1500 hours',
             stopped => $$status = 'WAITING'$$)",
    );
    await_walked(&shop);
    let mut client = shop.client();
    client.batch_execute("BEGIN; INSERT INTO shop.orders VALUES (1, awty.now())").unwrap();
    stop_and_go(&mut client, 1, 300);
    assert_eq!(compared(&mut client), "office t t 300, plain t t 300");
    stop_and_go(&mut client, 301, 1000);
    assert_eq!(compared(&mut client), "office t t 1000, plain t t 1000");
    stop_and_go(&mut client, 1001, 1010);
    assert_eq!(compared(&mut client), "office t t 1000, plain t t 1000");
    let late = "SELECT string_agg(concat_ws(' ', l.rule, l.due_at = CASE l.rule WHEN 'plain' THEN shop.moved(o.placed_at + interval '1500 hours', NULL)
            ELSE shop.moved(awty.due(o.placed_at, '500 hours', 'office'), 'office') END, l.raised_at - l.due_at < '2 min'), ', ' ORDER BY l.rule)
        FROM awty.alert AS l, shop.orders AS o";
    client.batch_execute("SELECT awty.travel('1 year')").unwrap();
    assert_eq!(client.query_one(late, &[]).unwrap().get::<_, String>(0), "office t t, plain t t");
}

#[test]
fn the_end_of_a_stop_reads_no_other_checks() {
    const ROWS: i64 = 1000;
    let shop = Shop::open();
    shop.run(ORDERS);
    shop.run("SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status = 'SHIPPED'$$, within => '3 hours', stopped => $$status = 'WAITING'$$)");
    await_walked(&shop);
    shop.run(&format!("INSERT INTO shop.orders SELECT n, now() FROM generate_series(1, {ROWS}) AS n"));
    shop.cluster.execute("postgres", &["VACUUM ANALYZE awty.future_job"]);
    shop.run("UPDATE shop.orders SET status = 'WAITING'");
    let mut client = shop.client();
    let end = format!(
        "DO $$ BEGIN FOR n IN 1 .. {ROWS} LOOP UPDATE shop.orders SET status = 'UNSHIPPED' WHERE id = n; END LOOP; END $$"
    );
    client.batch_execute(&format!("{end}; SELECT pg_stat_force_next_flush()")).unwrap();
    client.batch_execute("SELECT 1").unwrap();
    let read = "SELECT (SELECT sum(idx_tup_read) FROM pg_stat_all_indexes WHERE schemaname = 'awty' AND relname = 'future_job')::bigint
        + (SELECT sum(seq_tup_read) FROM pg_stat_all_tables WHERE schemaname = 'awty' AND relname = 'future_job')::bigint";
    let read: i64 = shop.cluster.value("postgres", read);
    assert!((ROWS..20 * ROWS).contains(&read), "{read} checks were read");
}

#[test]
fn a_forecast_counts_the_daily_check_of_a_stopped_row() {
    let shop = Shop::open();
    shop.run(ORDERS);
    shop.run("SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status = 'SHIPPED'$$, within => '3 hours', escalate => '{6 hours}',
        every => '1 hour', stopped => $$status = 'WAITING'$$)");
    await_walked(&shop);
    shop.run("INSERT INTO shop.orders VALUES (1, now() - interval '4 hours', 'WAITING'), (2, now(), 'UNSHIPPED')");
    let forecast = "SELECT coalesce(string_agg(concat_ws(' ', f.job, f.checks, o.id), ', ' ORDER BY f.slot), '-') FROM awty.forecast('2 days') AS f
        LEFT JOIN (awty.future_job AS j JOIN shop.orders AS o ON o.id::text = j.entity_key) ON j.next_check_at = f.slot";
    shop.await_true(
        "the check to find the row stopped",
        "SELECT check_count = 1 AND next_check_at > now() + interval '23 hours' FROM awty.future_job WHERE entity_key = '1'",
    );
    assert_eq!(shop.cluster.value::<String>("postgres", forecast), "orders 1 2, orders 1 1");
}
