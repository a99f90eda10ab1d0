use awty_testkit::Cluster;
use awty_testkit::fixture::{GATE, NOTE, Shop};

#[test]
fn a_check_that_is_asked_now_runs_before_any_slot() {
    let shop = Shop::on(Cluster::builder().set("awty.slot", "1d").start());
    shop.job("note", NOTE, "");
    let id = shop.schedule("1", "note", "after => '2 days', args => '{\"level\": 1}'");
    let slot = shop.slot_of("1");
    shop.run("SELECT awty.check_now('orders', 1)");
    let end = shop.end_of("1");
    assert_eq!((end.why(), end.id, end.first, shop.notes("1")), (("done", None), id, slot, 1), "{end:?}");
    assert!(end.slot < slot && end.started() >= end.slot, "{end:?}");
    let kept = "SELECT args ->> 'level' = '1' AND lateness >= '0' FROM awty.future_job_history";
    assert!(shop.cluster.value::<bool>("postgres", kept));
}

#[test]
fn a_check_that_is_running_is_not_asked_again() {
    let shop = Shop::open();
    shop.job(
        "wait",
        &format!("BEGIN {GATE} INSERT INTO shop.note (entity_key) VALUES (j.entity_key); RETURN NULL; END"),
        "",
    );
    let gate = shop.close_gate();
    let id = shop.schedule("1", "wait", "after => '0'");
    shop.await_at_gate();
    let error = shop.client().batch_execute("SELECT awty.check_now('orders', 1)").unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), "55006", "{error:?}");
    assert!(error.message().starts_with(&format!("check {id} has been running since ")), "{error:?}");
    drop(gate);
    let end = shop.end_of("1");
    assert_eq!((end.why(), end.attempts, shop.notes("1")), (("done", None), 1, 1), "{end:?}");
}

#[test]
fn a_hold_lets_the_run_under_way_end_and_keeps_what_it_leaves_pending() {
    let shop = Shop::open();
    let body = format!(
        "BEGIN {GATE} INSERT INTO shop.note (entity_key) VALUES (j.entity_key);
         IF j.job = 'bad' AND j.attempt = 0 THEN RAISE 'no'; END IF;
         RETURN CASE WHEN j.job = 'again' AND j.check_count = 0 THEN clock_timestamp() END; END"
    );
    for job in ["again", "bad", "once"] {
        shop.job(job, &body, ", retry_after => '1 ms'");
    }
    for (job, notes) in [("again", 1), ("bad", 0), ("once", 1)] {
        let gate = shop.close_gate();
        shop.schedule(job, job, "after => '0'");
        shop.await_at_gate();
        shop.run(&format!("SELECT awty.hold('orders', '{job}', note => 'wait')"));
        assert!(shop.is_at_gate(), "the hold has undone the run");
        drop(gate);
        if job == "once" {
            assert_eq!(shop.end_of(job).why(), ("done", None));
            continue;
        }
        let held = format!("SELECT held FROM awty.future_job WHERE entity_key = '{job}'");
        shop.await_true("what the run left to be held", &held);
        assert_eq!((shop.notes(job), shop.ends(job).len()), (notes, 0));
        shop.run(&format!("SELECT awty.release('orders', '{job}')"));
        let end = shop.end_of(job);
        assert_eq!((end.why(), end.attempts, shop.notes(job)), (("done", None), 2, notes + 1), "{end:?}");
    }
}

#[test]
fn a_held_check_stands_still_until_it_is_released() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    shop.run(
        "BEGIN; SELECT awty.schedule('orders', n, 'note', after => '0') FROM generate_series(1, 3) AS n;
         SELECT awty.hold('orders', 2, 'note', 'invoice open'); COMMIT",
    );
    for key in ["1", "3"] {
        assert_eq!(shop.end_of(key).why(), ("done", None));
    }
    shop.await_workers_gone();
    assert_eq!((shop.notes("2"), shop.ends("2").len()), (0, 0));
    let why = "SELECT detail FROM awty.explain('orders', 2) WHERE event = 'waiting'";
    let why: String = shop.client().query_one(why, &[]).unwrap().get(0);
    assert!(why.starts_with("the check is held since ") && why.contains(" by shop: \"invoice open\";"), "{why}");
    shop.run("SELECT awty.release('orders', 2)");
    let end = shop.end_of("2");
    assert_eq!((end.why(), end.attempts, shop.notes("2")), (("done", None), 1, 1), "{end:?}");
}

#[test]
fn a_hold_that_came_with_the_end_of_the_run_is_applied() {
    let shop = Shop::open();
    let body = format!("BEGIN {GATE} RETURN clock_timestamp() + '1 h'; END");
    shop.job("again", &body, "");
    let gate = shop.close_gate();
    shop.schedule("1", "again", "after => '0'");
    shop.await_at_gate();
    let mut client = shop.client();
    client.batch_execute("BEGIN; SELECT awty.hold('orders', 1)").unwrap();
    drop(gate);
    shop.await_true("the run to end", "SELECT check_count = 1 AND NOT held FROM awty.future_job");
    client.batch_execute("COMMIT").unwrap();
    shop.await_true("the check to be held", "SELECT held FROM awty.future_job");
    shop.run("SELECT awty.cancel('orders', 1)");
    shop.run("SELECT awty.pause('again'), awty.resume('again')");
    shop.await_true("the hold to be forgotten", "SELECT NOT EXISTS (SELECT FROM awty_internal.hold)");
}

#[test]
fn a_slot_that_rounding_puts_far_away_is_said_once() {
    let shop = Shop::open();
    shop.job("daily", NOTE, ", slot => '1 day'");
    let call = "SELECT awty.schedule('orders', n, 'daily', after => date_trunc('day', now() AT TIME ZONE 'UTC') + '1 day 2 min'
                    - now() AT TIME ZONE 'UTC') FROM generate_series(1, 3) AS n";
    let mut psql = shop.cluster.tool("psql");
    let output = psql.args(["-X", "-U", "shop", "-d", "postgres", "-c", call]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let slot = shop.slot_of("1").format("%Y-%m-%d %H:%M:%S+00:00");
    assert_eq!(said.trim(), format!("NOTICE:  job \"daily\" runs at {slot}, because its slot is 1 day"));
}
