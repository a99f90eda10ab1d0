//! awty cannot read a row that a broken disk or an administrator has damaged.

use crate::inspections::await_before_audit;
use awty_testkit::fixture::{NOTE, Shop};

const BREAK: &str = "
    CREATE EXTENSION pg_surgery;
    DO $$ DECLARE toast regclass := (SELECT reltoastrelid FROM pg_class WHERE oid = 'awty.future_job'::regclass); chunks tid[]; BEGIN
        EXECUTE format('SELECT array_agg(ctid) FROM %s', toast) INTO chunks;
        PERFORM heap_force_kill(toast, chunks);
    END $$";

const LONG: &str = "(SELECT to_jsonb(string_agg(md5(random()::text), '')) FROM generate_series(1, 200))";

/// The worker runs both checks in one call. After this call has failed, the worker runs each check separately.
#[test]
fn a_check_beside_an_unreadable_one_runs_again_in_time() {
    let shop = Shop::open();
    let again = "BEGIN RETURN ARRAY(SELECT CASE WHEN c.check_count < 3 THEN clock_timestamp() END
                                    FROM unnest(j) WITH ORDINALITY AS c ORDER BY c.ordinality); END";
    shop.set_job("notes", again, "");
    shop.run("SELECT awty.pause('notes')");
    shop.schedule("beside it", "notes", "after => '0'");
    let broken = shop.schedule("broken", "notes", &format!("after => '0', args => {LONG}"));
    shop.cluster
        .execute("postgres", &["UPDATE awty.future_job SET next_check_at = date_trunc('minute', now())", BREAK]);
    shop.run("SELECT awty.resume('notes')");
    shop.cluster.await_log(&["awty", &format!("check {broken}")], 0);
    await_before_audit(&shop, "SELECT NOT EXISTS (SELECT FROM awty.future_job WHERE entity_key = 'beside it')");
    shop.cluster.execute("postgres", &["UPDATE awty.future_job SET args = NULL"]);
}

#[test]
fn a_row_that_cannot_be_read_is_no_failed_run() {
    let shop = Shop::open();
    shop.job("note", NOTE, ", max_attempts => 1");
    shop.set_job(
        "notes",
        "BEGIN RETURN array_fill(NULL::timestamptz, ARRAY[cardinality(j)]); END",
        ", max_attempts => 1",
    );
    shop.run("SELECT awty.pause('note'), awty.pause('notes')");
    let broken = [("single", "note"), ("of a set", "notes")]
        .map(|(key, job)| shop.schedule(key, job, &format!("after => '0', args => {LONG}")));
    shop.schedule("beside it", "notes", "after => '0'");
    shop.cluster.execute("postgres", &[BREAK]);
    shop.run("SELECT awty.resume('note'), awty.resume('notes')");
    for id in broken {
        let line = shop.cluster.await_log(&["awty", &format!("check {id}")], 0);
        assert!(!line.contains("could not be booked"), "{line}");
    }
    for key in ["beside it", "after it"] {
        if key == "after it" {
            shop.schedule(key, "note", "after => '0'");
        }
        assert_eq!(shop.end_of(key).why(), ("done", None));
    }
    let untouched = "SELECT count(*) = 2 AND bool_and(attempt = 0 AND check_count = 0 AND NOT held)
                            AND NOT EXISTS (SELECT FROM awty_internal.check_stat) FROM awty.future_job";
    assert!(shop.cluster.value::<bool>("postgres", untouched), "something was counted against them");
    assert_eq!(shop.notes("single"), 0);
    shop.cluster.execute("postgres", &["UPDATE awty.future_job SET args = NULL"]);
    shop.run("SELECT awty.pause('note'), awty.resume('note'), awty.pause('notes'), awty.resume('notes')");
    for key in ["single", "of a set"] {
        let end = shop.end_of(key);
        assert_eq!((end.why(), end.attempts), (("done", None), 1), "{end:?}");
    }
}
