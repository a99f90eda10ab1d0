use awty_testkit::fixture::{NOTE, Shop};
use chrono::TimeDelta;

const ENDLESS: f64 = 600.0;

#[test]
fn a_run_that_takes_too_long_is_archived_as_timed_out() {
    let shop = Shop::open();
    shop.job("sleepy", "BEGIN PERFORM pg_sleep(600); RETURN NULL; END", ", timeout => '500 ms', max_attempts => 1");
    shop.schedule("1", "sleepy", "after => '0'");
    let end = shop.end_of("1");
    assert_eq!(end.why(), ("timed_out", Some("57014")), "{end:?}");
    assert_eq!((end.check_count, end.attempts), (0, 1), "{end:?}");
    assert!((0.5..ENDLESS).contains(&end.run_time), "{end:?}");
}

#[test]
fn a_run_that_ignores_its_timeout_is_ended_with_its_process() {
    let shop = Shop::open();
    let stubborn = "BEGIN
        INSERT INTO shop.note (entity_key) VALUES (j.entity_key);
        LOOP
            BEGIN PERFORM pg_sleep(600); EXCEPTION WHEN query_canceled THEN NULL; END;
        END LOOP;
    END";
    shop.job("stubborn", stubborn, ", timeout => '500 ms', max_attempts => 1");
    shop.job("note", NOTE, "");
    shop.schedule("1", "stubborn", "after => '0'");
    let end = shop.end_of("1");
    assert_eq!(end.why(), ("timed_out", Some("57014")), "{end:?}");
    assert_eq!((end.check_count, end.attempts), (0, 1), "{end:?}");
    assert!((2.5..ENDLESS).contains(&end.run_time), "{end:?}");
    assert_eq!(shop.notes("1"), 0);
    shop.schedule("2", "note", "after => '0'");
    assert_eq!(shop.end_of("2").outcome, "done");
}

#[test]
fn a_run_that_ignores_its_timeout_is_tried_again_like_any_other() {
    let shop = Shop::open();
    let stubborn =
        "BEGIN LOOP BEGIN PERFORM pg_sleep(600); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END";
    shop.job("stubborn", stubborn, ", timeout => '200 ms', max_attempts => 2, retry_after => '1 s'");
    shop.schedule("1", "stubborn", "after => '0'");
    let end = shop.end_of("1");
    assert_eq!(end.why(), ("timed_out", Some("57014")), "{end:?}");
    assert_eq!((end.check_count, end.attempts), (0, 2), "{end:?}");
}

#[test]
fn a_check_that_asks_too_often_ends_as_exhausted() {
    let shop = Shop::open();
    let nosy = "BEGIN INSERT INTO shop.note (entity_key, what) VALUES (j.entity_key, j.check_count);
                RETURN clock_timestamp(); END";
    shop.job("nosy", nosy, ", max_checks => 3");
    let id = shop.schedule("1", "nosy", "after => '0'");
    let end = shop.end_of("1");
    assert_eq!(end.why(), ("exhausted", None), "{end:?}");
    assert_eq!((end.id, end.check_count, end.attempts), (id, 3, 3), "{end:?}");
    assert!(end.slot >= end.first + TimeDelta::seconds(2), "one slot each: {end:?}");
    assert_eq!(shop.cluster.psql("postgres", "SELECT string_agg(what, ' ' ORDER BY n) FROM shop.note").trim(), "0 1 2");
}

/// A run returns the next due time of its check. The check ends if the next due time is not after the current one. awty
/// replaces a later time that has already passed by the next whole second.
#[test]
fn a_check_that_makes_no_progress_ends_as_past() {
    let shop = Shop::open();
    shop.job("same", "BEGIN RETURN j.next_check_at; END", "");
    shop.job("never", "BEGIN RETURN '-infinity'; END", "");
    let slow = "BEGIN IF j.check_count > 0 THEN RETURN NULL; END IF;
                PERFORM pg_sleep(1.5); RETURN j.next_check_at + interval '1 ms'; END";
    shop.job("slow", slow, "");
    shop.schedule("same", "same", "after => '0'");
    shop.schedule("never", "never", "after => '0'");
    shop.schedule("slow", "slow", "after => '0'");
    for key in ["same", "never"] {
        let end = shop.end_of(key);
        assert_eq!((end.why(), end.check_count), (("past", None), 1), "{end:?}");
    }
    let end = shop.end_of("slow");
    assert_eq!((end.why(), end.check_count), (("done", None), 2), "{end:?}");
    assert!(end.slot >= end.first + TimeDelta::seconds(2), "the slot after the run: {end:?}");
}

#[test]
fn a_check_that_asks_for_a_time_too_far_ahead_ends_as_beyond_horizon() {
    let shop = Shop::open();
    shop.job("far", "BEGIN RETURN clock_timestamp() + '2 days'; END", ", max_horizon => '1 day'");
    shop.job("infinite", "BEGIN RETURN 'infinity'; END", "");
    shop.job("last_year", "BEGIN RETURN '294276-12-31'; END", "");
    for job in ["far", "infinite", "last_year"] {
        shop.schedule(job, job, "after => '0'");
        let end = shop.end_of(job);
        assert_eq!((end.why(), end.check_count), (("beyond_horizon", None), 1), "{end:?}");
    }
}

#[test]
fn a_failing_check_is_tried_again_with_doubled_waits_and_ends_as_failed() {
    let shop = Shop::open();
    let bad = "BEGIN INSERT INTO shop.note (entity_key) VALUES (j.entity_key);
               PERFORM pg_advisory_xact_lock_shared(50 + j.attempt); PERFORM 1 / 0; RETURN NULL; END";
    shop.job("bad", bad, ", max_attempts => 3, retry_after => '2 s'");
    let mut gates = shop.client();
    gates.batch_execute("SELECT pg_advisory_lock(n) FROM generate_series(50, 52) AS n").unwrap();
    shop.schedule("1", "bad", "after => '0'");
    let mut slot = |gate: i32| {
        let waits = format!(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = {gate} AND NOT granted)"
        );
        shop.await_true(&format!("the run at gate {gate}"), &waits);
        let slot = shop.slot_of("1");
        gates.batch_execute(&format!("SELECT pg_advisory_unlock({gate})")).unwrap();
        slot
    };
    let (first, second, third) = (slot(50), slot(51), slot(52));
    let end = shop.end_of("1");
    assert_eq!(end.why(), ("failed", Some("22012")), "{end:?}");
    assert_eq!(end.message.as_deref(), Some("division by zero"));
    assert_eq!((end.check_count, end.attempts), (0, 3), "{end:?}");
    assert_eq!(first, end.first);
    assert!(second >= end.first + TimeDelta::seconds(2), "second attempt at {second}: {end:?}");
    assert!(third >= second + TimeDelta::seconds(4), "third attempt at {third}, second at {second}");
    assert_eq!(end.slot, third);
    assert_eq!(shop.notes("1"), 0);
}

#[test]
fn a_success_forgets_the_failures_before_it() {
    let shop = Shop::open();
    shop.run("CREATE SEQUENCE shop.runs");
    let moody = "BEGIN CASE nextval('shop.runs') WHEN 1, 3 THEN RAISE 'not now';
                 WHEN 2 THEN RETURN clock_timestamp(); ELSE RETURN NULL; END CASE; END";
    shop.job("moody", moody, ", max_attempts => 2, retry_after => '1 s'");
    shop.schedule("1", "moody", "after => '0'");
    let end = shop.end_of("1");
    assert_eq!(end.why(), ("done", None), "{end:?}");
    assert_eq!((end.check_count, end.attempts), (2, 4), "{end:?}");
}

#[test]
fn a_sqlstate_of_the_jobs_own_is_archived() {
    let shop = Shop::open();
    shop.job("own", "BEGIN RAISE 'late %', j.entity_key USING ERRCODE = 'AW001'; END", ", max_attempts => 1");
    shop.job("success", "BEGIN RAISE 'fine' USING ERRCODE = '00000'; END", ", max_attempts => 1");
    shop.job("assert", "BEGIN ASSERT false, 'no'; END", ", max_attempts => 1");
    shop.job("no_return", "BEGIN END", ", max_attempts => 1");
    let expected = [("own", "AW001"), ("success", "P0001"), ("assert", "P0004"), ("no_return", "2F005")];
    for (job, sqlstate) in expected {
        shop.schedule(job, job, "after => '0'");
        let end = shop.end_of(job);
        assert_eq!(end.why(), ("failed", Some(sqlstate)), "{end:?}");
    }
    assert_eq!(shop.end_of("own").message.as_deref(), Some("late own"));
}

#[test]
fn a_check_that_is_too_late_ends_as_expired() {
    let shop = Shop::open();
    shop.job("prompt", NOTE, ", max_lateness => '1 s'");
    shop.run("SELECT awty.pause('prompt')");
    shop.schedule("1", "prompt", "after => '0'");
    shop.await_time(shop.slot_of("1"), 2);
    shop.run("SELECT awty.resume('prompt')");
    let end = shop.end_of("1");
    assert_eq!((end.why(), end.attempts, end.started), (("expired", None), 0, None), "{end:?}");
    assert_eq!(shop.notes("1"), 0);
}

#[test]
fn keep_history_says_what_is_archived() {
    let shop = Shop::open();
    for keep in ["all", "ran", "none"] {
        shop.job(keep, NOTE, &format!(", keep_history => '{keep}'"));
        shop.schedule(&format!("{keep} done"), keep, "after => '0'");
        shop.schedule(&format!("{keep} cancelled"), keep, "after => '1 h'");
        shop.run(&format!("SELECT awty.cancel('orders', '{keep} cancelled')"));
    }
    shop.await_all_ended();
    let kept = shop.cluster.psql("postgres", "SELECT entity_key FROM awty.future_job_history ORDER BY 1");
    assert_eq!(kept.lines().collect::<Vec<_>>(), ["all cancelled", "all done", "ran done"]);
    assert_eq!(shop.notes("none done"), 1);
    assert_eq!(shop.cluster.psql("postgres", "SELECT count(*) FROM awty_internal.check_stat").trim(), "0");
}
