//! The history's partitions: there ahead of time, and gone when they are too old, by awty itself.

use crate::shop::{NOTE, Shop};
use awty_testkit::Cluster;

/// P3: days to come have their partitions, so that no row finds none.
#[test]
fn the_coming_days_have_their_partitions() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    let ahead = "SELECT count(*) = 8 FROM generate_series(0, 7) AS n
                 WHERE to_regclass('awty.future_job_history_' || to_char((now() AT TIME ZONE 'UTC')::date + n::integer, 'YYYYMMDD'))
                       IS NOT NULL";
    shop.await_true("a week of partitions", ahead);
    shop.schedule("1", "note", "after => '0'");
    shop.end_of("1");
    let place: bool = shop.cluster.value(
        "postgres",
        "SELECT tableoid::regclass::text = 'awty.future_job_history_' || to_char(finished_at AT TIME ZONE 'UTC', 'YYYYMMDD')
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

/// What is older than the retention is dropped by whole days, without DELETE.
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
                 EXECUTE format('CREATE TABLE awty.future_job_history_%s PARTITION OF awty.future_job_history
                                 FOR VALUES FROM (%L) TO (%L)', name, d || ' 00:00+00', d + 1 || ' 00:00+00');
                 INSERT INTO awty.future_job_history
                   SELECT id + 1, job, entity_name, name, args, first_check_at, next_check_at, scheduled_by, scheduled_at,
                          NULL, d + time '12:00', run_time, lateness, check_count, attempts, outcome, sqlstate, message, role
                   FROM awty.future_job_history WHERE entity_key = '1';
               END LOOP; END $$"
        )],
    );
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty.future_job_history"), 3);
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

/// P7: whoever reads an old day for long delays its end, but not the beginning of new ones.
#[test]
fn a_reader_of_an_old_day_does_not_keep_new_days_from_being_made() {
    let shop = Shop::on(Cluster::builder().set("awty.history_retention", "2d").start());
    shop.job("note", NOTE, "");
    let day = |days: i32| -> String {
        let sql = format!(
            "SELECT 'awty.future_job_history_' || to_char((now() AT TIME ZONE 'UTC')::date + {days}, 'YYYYMMDD')"
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
    shop.run("SELECT awty.pause('note'), awty.resume('note')");
    shop.await_true("the missing day", &there(&last));
    assert!(shop.cluster.value::<bool>("postgres", &there(&old)));
    shop.schedule("1", "note", "after => '0'");
    assert_eq!(shop.end_of("1").outcome, "done");
    reader.batch_execute("COMMIT").unwrap();
    shop.run("SELECT awty.pause('note'), awty.resume('note')");
    shop.await_true("the old day to be gone", &format!("SELECT to_regclass('{old}') IS NULL"));
}
