use awty_testkit::Cluster;
use awty_testkit::fixture::{NOTE, Shop};
use chrono::TimeDelta;

fn open() -> Shop {
    Shop::on(Cluster::builder().with_movable_clock().start())
}

/// awty measures timeouts by the monotonic clock, because PostgreSQL's own timers use the wall clock.
#[test]
fn a_run_is_gone_by_its_timeout_when_the_clock_is_set_back() {
    let shop = open();
    shop.job("sleepy", "BEGIN PERFORM pg_sleep(600); RETURN NULL; END", ", timeout => '3 s', max_attempts => 1");
    let stubborn =
        "BEGIN LOOP BEGIN PERFORM pg_sleep(600); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END";
    shop.job("stubborn", stubborn, ", timeout => '3 s', max_attempts => 1");
    for job in ["sleepy", "stubborn"] {
        shop.schedule(job, job, "after => '0'");
    }
    shop.cluster.await_sql(
        "postgres",
        "two runs to be going on",
        "SELECT count(*) = 2 FROM pg_stat_activity WHERE backend_type = 'awty worker' AND wait_event = 'PgSleep'",
    );
    shop.cluster.set_clock(-120);
    let behind = "SELECT clock_timestamp() < backend_start FROM pg_stat_activity WHERE backend_type = 'awty launcher'";
    assert!(shop.cluster.superuser("postgres").query_one(behind, &[]).unwrap().get::<_, bool>(0), "the clock was set");
    for job in ["sleepy", "stubborn"] {
        let end = shop.end_of(job);
        assert_eq!(end.why(), ("timed_out", Some("57014")), "{end:?}");
        assert!((3.0..30.0).contains(&end.run_time), "{end:?}");
    }
}

#[test]
fn what_falls_due_by_a_jump_forward_runs_and_not_before() {
    let shop = open();
    shop.job("note", NOTE, "");
    shop.schedule("1", "note", "after => '1 hour'");
    shop.schedule("2", "note", "after => '1 second'");
    assert_eq!(shop.end_of("2").outcome, "done");
    assert_eq!(shop.notes("1"), 0);
    shop.cluster.set_clock(3605);
    let end = shop.end_of("1");
    assert_eq!(end.outcome, "done");
    assert!(end.started() >= end.slot && end.started() - end.slot < TimeDelta::minutes(1), "{end:?}");
}

#[test]
fn nothing_runs_twice_when_the_clock_is_set_back() {
    let shop = open();
    shop.job("note", NOTE, "");
    shop.schedule("1", "note", "after => '0'");
    assert_eq!(shop.end_of("1").outcome, "done");
    // Sets `skip`, which drops late checks, only after the first run, because a slow start of awty could make the first
    // check late.
    shop.run("SELECT awty.alter('note', on_missed => 'skip')");
    shop.schedule("2", "note", "after => '5 minutes'");
    shop.cluster.set_clock(-3600);
    shop.schedule("3", "note", "after => '0'");
    let end = shop.end_of("3");
    assert_eq!(end.outcome, "done");
    assert!(end.started() >= end.slot, "{end:?}");
    assert_eq!((shop.notes("1"), shop.notes("2"), shop.notes("3")), (1, 0, 1));
    shop.cluster.set_clock(310);
    assert_eq!(shop.end_of("2").outcome, "done");
    assert_eq!((shop.notes("1"), shop.notes("2"), shop.notes("3")), (1, 1, 1));
}
