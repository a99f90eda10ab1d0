use awty_testkit::fixture::{NOTE, Shop};
use awty_testkit::{Cluster, Stop};
use std::time::Duration;

const UNTOLD: &str = "INSERT INTO awty.future_job (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
    SELECT 'note', 'orders', $1, t, t, 'shop'::regrole, t FROM (SELECT date_trunc('second', now()) AS t) AS now";

/// Waits at most 30 s, because awty's regular audit after a minute could hide that an inspection is missing.
#[track_caller]
pub fn await_before_audit(shop: &Shop, wanted: &str) {
    shop.cluster.await_that(wanted, Duration::from_secs(30), || match shop.cluster.value::<bool>("postgres", wanted) {
        true => Ok(()),
        false => Err("not yet".into()),
    });
}

#[test]
fn a_check_is_heard_of_at_its_commit() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    shop.schedule("before", "note", "after => '1 s'");
    shop.end_of("before");
    let no_inspection = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'awty maintainer')";
    shop.await_true("the inspection to be over", no_inspection);
    shop.schedule("after", "note", "after => '1 s'");
    assert_eq!(shop.end_of("after").outcome, "done");
}

#[test]
fn an_inspection_that_is_asked_for_during_another_is_made() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    let mut dba = shop.cluster.superuser("postgres");
    for round in 0..5 {
        shop.job(&format!("first_{round}"), NOTE, "");
        dba.execute(UNTOLD, &[&round.to_string()]).unwrap();
        shop.job(&format!("second_{round}"), NOTE, "");
        assert_eq!(shop.end_of(&round.to_string()).outcome, "done");
    }
}

#[test]
fn a_first_inspection_that_fails_is_made_again() {
    let mut shop = Shop::on(Cluster::builder().set("max_prepared_transactions", "1").start());
    shop.job("note", NOTE, "");
    shop.schedule("late", "note", "after => '1 s'");
    // A prepared transaction keeps its lock during a restart, so that awty's first inspection waits for the lock.
    let lock = ["BEGIN", "LOCK TABLE awty.future_job", "PREPARE TRANSACTION 'lock'"].join("; ");
    shop.cluster.superuser("postgres").batch_execute(&lock).unwrap();
    shop.cluster.stop(Stop::Immediate);
    shop.cluster.start();
    let end = "SELECT coalesce(bool_or(pg_terminate_backend(pid, 10000)), false) FROM pg_stat_activity
               WHERE backend_type = 'awty maintainer' AND wait_event_type = 'Lock'";
    shop.await_true("the inspection", end);
    shop.cluster.superuser("postgres").batch_execute("COMMIT PREPARED 'lock'").unwrap();
    assert_eq!(shop.end_of("late").outcome, "done");
}

/// If a process is killed, rows of an ended check may remain in awty's other tables.
#[test]
fn what_is_left_of_checks_that_are_gone_is_removed() {
    let shop = Shop::open();
    shop.job("bad", "BEGIN RAISE 'no'; END", ", retry_after => '1 h'");
    shop.job("note", NOTE, "");
    shop.schedule("failing", "bad", "after => '0'");
    shop.await_true("a failure", "SELECT attempt = 1 FROM awty.future_job");
    shop.schedule("done", "note", "after => '0'");
    let gone = shop.end_of("done").id;
    let leave = format!(
        "INSERT INTO awty_internal.check_stat (check_id, runs, crashes) VALUES ({gone}, 1, 0), ({gone} + 1000, 0, 1)"
    );
    shop.cluster.execute("postgres", &[&leave]);
    shop.run("SELECT awty.pause('note'), awty.resume('note')");
    let of_pending = "SELECT count(*) = 1 AND bool_and(EXISTS (SELECT FROM awty.future_job AS f WHERE f.id = check_id))
                      FROM awty_internal.check_stat";
    shop.await_true("only what belongs to the pending check", of_pending);
    assert_eq!(shop.cluster.psql("postgres", "SELECT runs FROM awty_internal.check_stat").trim(), "1");
}

#[test]
fn ends_that_have_failed_are_tried_again_before_the_next_audit() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    shop.schedule("1", "note", "after => '1 h'");
    shop.cluster.execute(
        "postgres",
        &[
            "CREATE TABLE public.broken AS SELECT true",
            "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 IF EXISTS (SELECT FROM public.broken) THEN RAISE 'no end'; END IF; RETURN coalesce(NEW, OLD); END $$",
            "CREATE TRIGGER refuse BEFORE DELETE ON awty_internal.hold FOR EACH ROW EXECUTE FUNCTION public.refuse()",
            "CREATE TRIGGER refuse BEFORE UPDATE ON awty.job FOR EACH ROW WHEN (OLD.paused) EXECUTE FUNCTION public.refuse()",
        ],
    );
    shop.run(
        "SELECT awty.hold('orders', '1', 'note', held_until => now() + interval '1 s');
         SELECT awty.pause('note', paused_until => now() + interval '1 s')",
    );
    shop.await_true("the failed end", "SELECT last_error LIKE 'looking after this database failed%' FROM awty.status");
    shop.cluster.execute("postgres", &["TRUNCATE public.broken"]);
    await_before_audit(
        &shop,
        "SELECT NOT EXISTS (SELECT FROM awty_internal.hold) AND NOT EXISTS (SELECT FROM awty.job WHERE paused)",
    );
}

#[test]
fn checks_that_became_due_in_a_pause_run_before_the_next_audit() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    shop.job("also", NOTE, "");
    shop.run("SELECT awty.pause('note', paused_until => now() + interval '4 s')");
    shop.schedule("1", "note", "after => '1 s'");
    shop.schedule("2", "also", "after => '2 s'");
    shop.end_of("2");
    shop.await_true("the end of the pause", "SELECT NOT EXISTS (SELECT FROM awty.job WHERE paused)");
    await_before_audit(&shop, "SELECT NOT EXISTS (SELECT FROM awty.future_job)");
}

#[test]
fn the_first_end_after_a_start_is_found_at_the_start() {
    let mut shop = Shop::open();
    shop.job("note", NOTE, "");
    shop.job("later", NOTE, "");
    shop.schedule("1", "note", "after => '1 s'");
    let end = shop.ahead(
        20,
        "SELECT awty.hold('orders', '1', held_until => {first}); SELECT awty.pause('later', paused_until => {first})",
    );
    shop.cluster.restart();
    shop.await_true("the end", crate::quiet::NOTHING_HELD);
    assert!(shop.end_of("1").started() >= end);
    let within_a_minute =
        "SELECT started_at < pg_postmaster_start_time() + interval '1 minute' FROM awty.future_job_history";
    assert!(shop.cluster.value::<bool>("postgres", within_a_minute));
}
