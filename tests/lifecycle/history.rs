use awty_testkit::Cluster;
use awty_testkit::fixture::{NOTE, Shop};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

#[test]
fn the_coming_days_have_their_partitions() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    let ahead = "SELECT count(*) = 8 FROM generate_series(0, 7) AS n
                 WHERE to_regclass('awty_internal.future_job_history_' || to_char((now() AT TIME ZONE 'UTC')::date + n::integer, 'YYYYMMDD'))
                       IS NOT NULL";
    shop.await_true("a week of partitions", ahead);
    shop.schedule("1", "note", "after => '0'");
    shop.end_of("1");
    let place: bool = shop.cluster.value(
        "postgres",
        "SELECT tableoid::regclass::text = 'awty_internal.future_job_history_' || to_char(finished_at AT TIME ZONE 'UTC', 'YYYYMMDD')
         FROM awty.future_job_history",
    );
    assert!(place, "it is not in its day's partition");
    let open: i64 = shop.cluster.value(
        "postgres",
        "SELECT count(*) FROM pg_class WHERE relname LIKE 'future_job_history_2%' AND relacl::text LIKE '%=%/%'
            AND has_table_privilege('shop', oid, 'SELECT')",
    );
    assert_eq!(open, 0, "a partition can be read past the policies of its parent");
}

#[test]
fn a_day_that_is_too_old_is_dropped_as_a_whole() {
    let shop = Shop::on(Cluster::builder().set("awty.history_retention", "2d").start());
    shop.job("note", NOTE, "");
    shop.schedule("1", "note", "after => '0'");
    shop.end_of("1");
    let days = "SELECT t.old, to_char(t.old, 'YYYYMMDD') FROM (SELECT (now() AT TIME ZONE 'UTC')::date - n FROM unnest(ARRAY[1, 40]) AS n) AS t (old)";
    shop.cluster.execute(
        "postgres",
        &[&format!(
            "DO $$ DECLARE d date; name text; BEGIN
               FOR d, name IN {days} LOOP
                 EXECUTE format('CREATE TABLE awty_internal.future_job_history_%s PARTITION OF awty.future_job_history
                                 FOR VALUES FROM (%L) TO (%L)', name, d || ' 00:00+00', d + 1 || ' 00:00+00');
                 INSERT INTO awty.future_job_history
                   SELECT id + 1, job, entity_name, name, args, first_check_at, next_check_at, scheduled_by, scheduled_at,
                          NULL, d + time '12:00', run_time, lateness, check_count, attempts, outcome, sqlstate, message, role
                   FROM awty.future_job_history WHERE entity_key = '1';
               END LOOP;
               ASSERT (SELECT count(*) FROM awty.future_job_history) = 3; -- the maintainer may drop a day after the commit
             END $$"
        )],
    );
    shop.run("SELECT awty.pause('note'), awty.resume('note')");
    shop.await_true("the old day to be dropped", "SELECT count(*) = 2 FROM awty.future_job_history");
    let old = "SELECT count(*) FROM pg_class WHERE relname =
                   'future_job_history_' || to_char((now() AT TIME ZONE 'UTC')::date - 40, 'YYYYMMDD')";
    assert_eq!(shop.cluster.value::<i64>("postgres", old), 0);
    shop.await_workers_gone();
    let deleted =
        "SELECT coalesce(sum(n_tup_del), 0)::bigint FROM pg_stat_all_tables WHERE relname LIKE 'future_job_history%'";
    assert_eq!(shop.cluster.value::<i64>("postgres", deleted), 0);
}

#[test]
fn a_reader_of_an_old_day_does_not_keep_new_days_from_being_made() {
    // Keeps the history for a year at first. Otherwise, awty could drop the oldest partition before the reader has
    // locked the partition.
    let mut shop = Shop::on(Cluster::builder().set("awty.history_retention", "365d").start());
    shop.job("note", NOTE, "");
    let day = |days: i32| -> String {
        let sql = format!(
            "SELECT 'awty_internal.future_job_history_' || to_char((now() AT TIME ZONE 'UTC')::date + {days}, 'YYYYMMDD')"
        );
        shop.cluster.value("postgres", &sql)
    };
    let (old, last) = (day(-40), day(7));
    let there = |table: &str| format!("SELECT to_regclass('{table}') IS NOT NULL");
    shop.await_true("a week of partitions", &there(&last));
    shop.cluster.execute(
        "postgres",
        &[
            &format!("DROP TABLE {last}"),
            &format!("CREATE TABLE {old} PARTITION OF awty.future_job_history FOR VALUES FROM ('-infinity') TO ('2020-01-01')"),
        ],
    );
    let mut reader = shop.cluster.superuser("postgres");
    reader.batch_execute(&format!("BEGIN; SELECT count(*) FROM {old}")).unwrap();
    shop.cluster.execute("postgres", &["ALTER SYSTEM SET awty.history_retention = '2d'", "SELECT pg_reload_conf()"]);
    shop.await_true("two days of retention", "SELECT current_setting('awty.history_retention') = '2d'");
    shop.run("SELECT awty.pause('note'), awty.resume('note')");
    shop.await_true("the missing day", &there(&last));
    assert!(shop.cluster.value::<bool>("postgres", &there(&old)));
    shop.schedule("1", "note", "after => '0'");
    assert_eq!(shop.end_of("1").outcome, "done");
    let began = Instant::now();
    for id in 1..=5 {
        let hold = format!(
            "INSERT INTO awty_internal.hold (check_id, job, held_by, held_at) VALUES (-{id}, 'note', 'postgres', now())"
        );
        shop.cluster.execute("postgres", &[&hold]);
        shop.run("SELECT awty.pause('note'), awty.resume('note')");
        shop.await_true(
            "an inspection to remove the hold of no check",
            "SELECT NOT EXISTS (SELECT FROM awty_internal.hold)",
        );
    }
    let tries = shop.cluster.log_since(0).matches("due to lock timeout").count() as u64;
    assert!(tries <= 2 + began.elapsed().as_secs() / 60, "each inspection tries to drop the day: {tries}");
    reader.batch_execute("COMMIT").unwrap();
    shop.cluster.restart(); // awty tries again at once
    shop.await_true("the old day to be gone", &format!("SELECT to_regclass('{old}') IS NULL"));
}

#[test]
fn what_an_administrator_adds_to_the_history_is_honoured() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    shop.set_job("notes", "BEGIN RETURN array_fill(NULL::timestamptz, ARRAY[cardinality(j)]); END", "");
    let run = |keys: [&str; 3]| {
        shop.schedule(keys[0], "note", "after => '0'");
        shop.run(&format!(
            "SELECT awty.schedule('orders', k, 'notes', after => '0', args => '[1]') FROM unnest(ARRAY['{}', '{}']) AS k",
            keys[1], keys[2]
        ));
        shop.await_all_ended();
    };
    run(["1", "2", "3"]);
    shop.cluster.execute(
        "postgres",
        &[
            "CREATE TABLE public.seen (entity_key text); GRANT INSERT ON public.seen TO PUBLIC",
            "CREATE FUNCTION public.see() RETURNS trigger LANGUAGE plpgsql AS
               $$ BEGIN INSERT INTO public.seen VALUES (NEW.entity_key); RETURN NULL; END $$",
            "CREATE TRIGGER see AFTER INSERT ON awty.future_job_history FOR EACH ROW EXECUTE FUNCTION public.see()",
        ],
    );
    run(["4", "5", "6"]);
    let seen = "SELECT string_agg(entity_key, ' ' ORDER BY entity_key) FROM public.seen";
    assert_eq!(shop.cluster.value::<String>("postgres", seen), "4 5 6");
    shop.cluster.execute(
        "postgres",
        &[
            "DROP TRIGGER see ON awty.future_job_history",
            "CREATE INDEX by_expression ON awty.future_job_history ((entity_key || '!'))",
        ],
    );
    run(["7", "8", "9"]);
    let found = "SET enable_seqscan = off; SET enable_bitmapscan = off;
                 SELECT count(*) FROM awty.future_job_history WHERE entity_key || '!' IN ('7!', '8!', '9!')";
    assert_eq!(shop.cluster.psql("postgres", found).lines().last(), Some("3"));
    shop.cluster.execute(
        "postgres",
        &[
            "DROP INDEX awty.by_expression",
            "DO $$ DECLARE day date := (now() AT TIME ZONE 'UTC')::date; name text := to_char(day, 'YYYYMMDD');
                    next text := to_char(day + 1, 'YYYYMMDD'); BEGIN
               EXECUTE format('DROP TABLE awty_internal.future_job_history_%s, awty_internal.future_job_history_%s', name, next);
               CREATE TABLE awty.turned (context text, role regrole, message text, sqlstate text COLLATE \"C\");
               EXECUTE (SELECT 'ALTER TABLE awty.turned ' || string_agg(format('ADD COLUMN %I %s %s %s', attname,
                            format_type(atttypid, atttypmod), CASE attcollation WHEN 950 THEN 'COLLATE \"C\"' ELSE '' END,
                            CASE WHEN attnotnull THEN 'NOT NULL' ELSE '' END), ', ' ORDER BY attnum)
                        FROM pg_attribute WHERE attrelid = 'awty.future_job_history'::regclass AND attnum BETWEEN 1 AND 16);
               EXECUTE format('ALTER TABLE awty.future_job_history ATTACH PARTITION awty.turned
                               FOR VALUES FROM (%L) TO (%L)', day || ' 00:00+00', day + 2 || ' 00:00+00');
             END $$",
        ],
    );
    run(["10", "11", "12"]);
    let turned =
        "SELECT string_agg(entity_key || ' ' || outcome || ' ' || check_count || ' ' || attempts || ' ' || role, ', '
                             ORDER BY id) FROM awty.turned";
    assert_eq!(
        shop.cluster.value::<String>("postgres", turned),
        "10 done 1 1 shop, 11 done 1 1 shop, 12 done 1 1 shop"
    );
}

/// If the history has a trigger, awty archives with an ordinary INSERT.
#[test]
fn every_way_to_archive_says_the_same() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    let say = "SELECT (to_jsonb(h) - 'id' - 'entity_key' - 'first_check_at' - 'next_check_at' - 'scheduled_at'
                       - 'started_at' - 'finished_at' - 'run_time' - 'lateness' || jsonb_build_object(
                           'in order', started_at <= finished_at AND scheduled_at <= started_at AND first_check_at = next_check_at,
                           'lateness', lateness = started_at - next_check_at, 'run_time', run_time > '0'))::text
               FROM (SELECT * FROM awty.future_job_history WHERE entity_key = ";
    let said = |key: &str| shop.cluster.value::<String>("postgres", &format!("{say} '{key}') AS h"));
    shop.schedule("1", "note", "after => '0', args => '{\"a\": [1, null]}'");
    shop.end_of("1");
    shop.cluster.execute(
        "postgres",
        &[
            "CREATE FUNCTION public.pass() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
            "CREATE TRIGGER pass AFTER INSERT ON awty.future_job_history FOR EACH ROW EXECUTE FUNCTION public.pass()",
        ],
    );
    shop.schedule("2", "note", "after => '0', args => '{\"a\": [1, null]}'");
    shop.end_of("2");
    assert_eq!(said("1"), said("2"));
    assert!(said("1").contains("\"run_time\": true") && !said("1").contains("false"), "{}", said("1"));
}

const STRAYS: &str = "SELECT EXISTS (SELECT FROM awty_internal.future_job_history_default)";

fn archive_in_default(shop: &Shop) -> String {
    shop.job("note", NOTE, "");
    let today: String = shop.cluster.value("postgres", "SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')");
    shop.await_true(
        "partitions",
        &format!("SELECT to_regclass('awty_internal.future_job_history_{today}') IS NOT NULL"),
    );
    set_enabled(shop, "off");
    shop.await_true(
        "inspections to end",
        "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'awty maintainer')",
    );
    let mut client = shop.cluster.superuser("postgres");
    client
        .batch_execute(&format!(
            "BEGIN; DROP TABLE awty_internal.future_job_history_{today}; SET LOCAL ROLE shop;
             SELECT awty.schedule('order', '1', 'note', after => '1 h'); SELECT awty.cancel('order', '1', 'note'); RESET ROLE"
        ))
        .unwrap();
    assert!(client.query_one(STRAYS, &[]).unwrap().get::<_, bool>(0));
    client.batch_execute("COMMIT").unwrap();
    format!("awty_internal.future_job_history_{today}")
}

fn set_enabled(shop: &Shop, value: &str) {
    shop.cluster.execute("postgres", &[&format!("ALTER SYSTEM SET awty.enabled = {value}"), "SELECT pg_reload_conf()"]);
}

#[test]
fn the_first_rows_of_a_day_move_into_its_partition() {
    let shop = Shop::open();
    let partition = archive_in_default(&shop);
    set_enabled(&shop, "on");
    shop.await_true("the rows to move", &format!("SELECT NOT ({STRAYS})"));
    let moved = format!("SELECT outcome FROM {partition} WHERE entity_key = '1'");
    assert_eq!(shop.cluster.value::<String>("postgres", &moved), "cancelled");
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty.doctor()"), 0);
}

#[test]
fn a_reader_misses_no_row_that_moves_into_its_partition() {
    const READ: &str = "SELECT count(*) FROM awty.future_job_history";
    let shop = Shop::open();
    let partition = archive_in_default(&shop);
    let mut writer = shop.cluster.superuser("postgres");
    writer.batch_execute("BEGIN; LOCK TABLE ONLY awty.future_job_history IN ROW EXCLUSIVE MODE").unwrap();
    let mut reader = shop.cluster.superuser("postgres");
    let pid: i32 = reader.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    let stop = Arc::new(AtomicBool::new(false));
    let stopping = stop.clone();
    let reading = std::thread::spawn(move || {
        let mut counts = BTreeSet::new();
        while !stopping.load(Ordering::Relaxed) {
            counts.insert(reader.query_one(READ, &[]).unwrap().get::<_, i64>(0));
        }
        counts
    });
    set_enabled(&shop, "on");
    // Sends the loop and COMMIT in one batch, so that no round trip delays COMMIT. awty's maintainer waits for the
    // writer's lock for only 200 ms.
    let commit = format!(
        "DO $$ BEGIN
             WHILE NOT EXISTS (SELECT FROM pg_locks WHERE pid = {pid} AND NOT granted) AND to_regclass('{partition}') IS NULL
             LOOP PERFORM pg_sleep(0.005); END LOOP; END $$;
         COMMIT"
    );
    writer.batch_execute(&commit).unwrap();
    shop.await_true("the rows to move", &format!("SELECT NOT ({STRAYS})"));
    stop.store(true, Ordering::Relaxed);
    assert_eq!(reading.join().unwrap(), BTreeSet::from([1]));
}
