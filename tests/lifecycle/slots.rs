use awty_testkit::Cluster;
use awty_testkit::fixture::{NOTE, Shop};
use awty_testkit::postgres::Client;
use chrono::{DateTime, Utc};

fn shop() -> (Cluster, Client) {
    let cluster = Cluster::builder().start();
    cluster.create_extension("postgres");
    cluster.create_user("postgres", "shop");
    let mut shop = cluster.client("postgres", "shop");
    shop.batch_execute(
        "CREATE TABLE shop.seen (entity_key text, session_role text);
         CREATE FUNCTION shop.seen(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS
           $$ INSERT INTO shop.seen VALUES (j.entity_key, current_user); SELECT NULL::timestamptz $$;
         SELECT awty.register('seen', 'shop.seen')",
    )
    .unwrap();
    (cluster, shop)
}

#[test]
fn a_check_runs_at_its_slot_and_is_archived_as_done() {
    let (cluster, mut shop) = shop();
    shop.execute("SELECT awty.schedule('orders', '42', 'seen', after => '1 second')", &[]).unwrap();

    cluster.await_sql(
        "postgres",
        "order 42 in the history",
        "SELECT EXISTS (SELECT FROM awty.future_job_history WHERE entity_name = 'orders' AND entity_key = '42')",
    );

    let row = shop
        .query_one("SELECT outcome::text, next_check_at, started_at, check_count FROM awty.future_job_history", &[]);
    let row = row.unwrap();
    let (slot, started): (DateTime<Utc>, DateTime<Utc>) = (row.get("next_check_at"), row.get("started_at"));
    assert_eq!(row.get::<_, &str>("outcome"), "done");
    assert_eq!(row.get::<_, i32>("check_count"), 1);
    assert!(started >= slot, "started at {started}, before its slot {slot}");
    assert_eq!(cluster.psql("postgres", "SELECT * FROM shop.seen").trim(), "42|shop");
    assert_eq!(cluster.psql("postgres", "SELECT count(*) FROM awty.future_job").trim(), "0");
}

#[test]
fn every_check_starts_in_its_slot_and_never_early() {
    let shop = Shop::open();
    shop.job("fine", NOTE, "");
    shop.job("coarse", NOTE, ", slot => '2 s'");
    let schedule = "WITH due AS (SELECT n, now() + n * interval '37 ms' AS at FROM generate_series(1, 150) AS n)
                    SELECT awty.schedule('orders', job || ' ' || n, job, at => at, args => to_jsonb(at))
                    FROM due, unnest(ARRAY['fine', 'coarse']) AS job";
    shop.run(schedule);
    shop.await_all_ended();
    let wrong = shop.cluster.psql(
        "postgres",
        "SELECT entity_key, args, next_check_at, started_at FROM awty.future_job_history
         WHERE started_at < next_check_at OR outcome <> 'done' OR first_check_at <> next_check_at
            OR next_check_at < (args #>> '{}')::timestamptz AND scheduled_at < (args #>> '{}')::timestamptz
            OR next_check_at - greatest((args #>> '{}')::timestamptz, scheduled_at) >= CASE job WHEN 'coarse' THEN interval '2 s' ELSE '1 s' END
            OR extract(epoch FROM next_check_at) % CASE job WHEN 'coarse' THEN 2 ELSE 1 END <> 0",
    );
    assert_eq!(wrong.trim(), "");
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM shop.note"), 300);
}
