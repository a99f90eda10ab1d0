use super::{await_ends, cancel, expect_each_has_its_check, is_in_order, repeat, seconds, slots};
use awty_testkit::fixture::{NOTE, Shop};

#[test]
fn a_job_is_asked_again_and_again() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    repeat(&shop, "1", "note", "every => '2 s', catch_up => '1 hour'");
    let ends = await_ends(&shop, "1", 3);
    for pair in ends.windows(2) {
        assert_eq!(pair[1].first - pair[0].first, seconds(2), "{ends:?}");
    }
    for end in &ends {
        assert_eq!((end.why(), end.attempts, end.check_count), (("done", None), 1, 1), "{end:?}");
        assert!(end.started() >= end.first && end.first.timestamp() % 2 == 0, "{end:?}");
    }
    expect_each_has_its_check(&shop);
    cancel(&shop, "1");
    let left: i64 = shop
        .cluster
        .value("postgres", "SELECT (SELECT count(*) FROM awty.future_job) + (SELECT count(*) FROM awty.repetition)");
    assert_eq!(left, 0);
}

#[test]
fn slots_that_pass_during_a_run_are_left_out_or_caught_up_on() {
    let shop = Shop::open();
    let slow =
        "BEGIN PERFORM pg_sleep(2.2); INSERT INTO shop.note (entity_key) VALUES (j.entity_key); RETURN NULL; END";
    shop.job("slow", slow, "");
    repeat(&shop, "out", "slow", "every => '1 s'");
    repeat(&shop, "up", "slow", "every => '1 s', catch_up => '1 hour'");
    let (out, up) = (await_ends(&shop, "out", 3), await_ends(&shop, "up", 3));
    for ends in [&out, &up] {
        for pair in ends.windows(2) {
            let over = pair[0].started() + seconds(2);
            assert!(pair[1].started() >= over, "two runs overlap: {ends:?}");
        }
    }
    for pair in out.windows(2) {
        assert!(pair[1].first - pair[0].first >= seconds(3), "{out:?}");
        assert!(pair[1].started() >= pair[1].first, "{out:?}");
    }
    for pair in up.windows(2) {
        assert_eq!(pair[1].first - pair[0].first, seconds(1), "{up:?}");
    }
    expect_each_has_its_check(&shop);
}

#[test]
fn a_time_that_a_job_returns_is_within_its_occurrence_or_is_the_next_one() {
    let shop = Shop::open();
    let soon = "BEGIN RETURN CASE WHEN j.check_count < 2 THEN j.next_check_at + interval '1 s' END; END";
    let late =
        "BEGIN RETURN CASE j.entity_key WHEN 'infinity' THEN 'infinity' ELSE j.next_check_at + interval '4 s' END; END";
    shop.job("soon", soon, "");
    shop.job("late", late, "");
    repeat(&shop, "soon", "soon", "every => '10 s'");
    repeat(&shop, "late", "late", "every => '4 s', catch_up => '1 hour'");
    repeat(&shop, "infinity", "late", "every => '1 s'");
    let late = await_ends(&shop, "late", 2);
    assert!(late.iter().all(|end| (end.why(), end.check_count) == (("done", None), 1)), "{late:?}");
    assert_eq!(late[1].first - late[0].first, seconds(4));
    let endless = await_ends(&shop, "infinity", 1);
    assert_eq!(endless[0].why(), ("done", None));
    let soon = &await_ends(&shop, "soon", 1)[0];
    assert_eq!((soon.why(), soon.check_count, soon.attempts), (("done", None), 3, 3), "{soon:?}");
    assert!((seconds(2)..seconds(10)).contains(&(soon.slot - soon.first)), "{soon:?}");
    expect_each_has_its_check(&shop);
}

#[test]
fn a_failed_run_is_tried_again_before_the_next_occurrence_or_not_at_all() {
    let shop = Shop::open();
    shop.job("bad", "BEGIN RAISE 'no'; END", ", retry_after => '1 s', max_attempts => 2");
    shop.job("hopeless", "BEGIN RAISE 'no'; END", ", retry_after => '1 min'");
    shop.job("slow", "BEGIN PERFORM pg_sleep(60); RETURN NULL; END", ", timeout => '200 ms', retry_after => '1 min'");
    repeat(&shop, "bad", "bad", "every => '10 s', catch_up => '1 hour'");
    repeat(&shop, "hopeless", "hopeless", "every => '2 s', catch_up => '1 hour'");
    repeat(&shop, "slow", "slow", "every => '2 s'");
    let hopeless = await_ends(&shop, "hopeless", 2);
    assert!(hopeless.iter().all(|end| (end.why(), end.attempts) == (("failed", Some("P0001")), 1)), "{hopeless:?}");
    assert_eq!(hopeless[1].first - hopeless[0].first, seconds(2));
    let slow = await_ends(&shop, "slow", 2);
    assert!(slow.iter().all(|end| (end.why(), end.attempts) == (("timed_out", Some("57014")), 1)), "{slow:?}");
    let bad = await_ends(&shop, "bad", 2);
    assert!(bad.iter().all(|end| (end.why(), end.attempts) == (("failed", Some("P0001")), 2)), "{bad:?}");
    assert_eq!(bad[1].first - bad[0].first, seconds(10));
    expect_each_has_its_check(&shop);
}

#[test]
fn exhausted_past_beyond_horizon_and_expired_end_the_occurrence_alone() {
    let shop = Shop::open();
    shop.job("exhausted", "BEGIN RETURN j.next_check_at + interval '1 s'; END", ", max_checks => 2");
    shop.job("past", "BEGIN RETURN j.next_check_at; END", "");
    shop.job("beyond_horizon", "BEGIN RETURN j.next_check_at + interval '7 s'; END", ", max_horizon => '1 s'");
    shop.job("expired", "BEGIN PERFORM pg_sleep(1.5); RETURN NULL; END", ", max_lateness => '100 ms'");
    for job in ["exhausted", "past", "beyond_horizon"] {
        repeat(&shop, job, job, "every => '8 s', catch_up => '1 hour'");
    }
    repeat(&shop, "expired", "expired", "every => '1 s', catch_up => '1 hour'");
    for job in ["exhausted", "past", "beyond_horizon"] {
        let ends = await_ends(&shop, job, 2);
        assert!(ends.iter().all(|end| end.why() == (job, None)), "{ends:?}");
        assert_eq!(ends[1].first - ends[0].first, seconds(8), "{ends:?}");
    }
    let sql = "SELECT count(*) >= 2 FROM awty.future_job_history WHERE job = 'expired' AND outcome = 'expired'";
    shop.await_true("two that expired", sql);
    assert!(is_in_order(&shop.ends("expired")));
    expect_each_has_its_check(&shop);
}

#[test]
fn a_run_may_cancel_or_reschedule_its_own_occurrence() {
    let shop = Shop::open();
    let note = "INSERT INTO shop.note (entity_key) VALUES (j.entity_key);";
    shop.job("stop", &format!("BEGIN {note} PERFORM awty.cancel(j.entity_name, j.entity_key); RETURN NULL; END"), "");
    let again = "IF j.args IS NULL THEN PERFORM awty.schedule(j.entity_name, j.entity_key, j.job,
                 at => j.next_check_at + interval '4 s', args => '{}'); END IF;";
    shop.job("again", &format!("BEGIN {note} {again} RETURN NULL; END"), "");
    repeat(&shop, "stop", "stop", "every => '1 s'");
    repeat(&shop, "again", "again", "every => '8 s', catch_up => '1 hour'");
    await_ends(&shop, "stop", 1);
    shop.await_true("its end", "SELECT NOT EXISTS (SELECT FROM awty.repetition WHERE entity_key = 'stop')");
    assert_eq!((shop.notes("stop"), shop.pending("stop")), (1, String::new()));
    let ends = await_ends(&shop, "again", 4);
    let (first, second) = (ends[0].first, ends[1].first);
    assert_eq!(second - first, seconds(4), "{ends:?}");
    assert_eq!(slots(&ends[..4]), [first, second, first + seconds(8), first + seconds(12)], "{ends:?}");
    expect_each_has_its_check(&shop);
}

#[test]
fn a_set_of_occurrences_goes_on_together() {
    let shop = Shop::open();
    let note = "BEGIN INSERT INTO shop.note (entity_key) SELECT (x).entity_key FROM unnest(j) AS x;
                RETURN array_fill(NULL::timestamptz, ARRAY[cardinality(j)]); END";
    shop.set_job("many", note, "");
    shop.run("SELECT awty.repeat('many', every => '2 s', entity_name => 'orders', entity_key => t::text) FROM generate_series(1, 200) AS t");
    shop.await_true(
        "each to have run twice",
        "SELECT count(*) = 200 FROM (SELECT FROM awty.future_job_history WHERE outcome = 'done' GROUP BY entity_key HAVING count(*) >= 2) AS x",
    );
    let doubled: i64 = shop.cluster.value(
        "postgres",
        "SELECT count(*) FROM (SELECT FROM awty.future_job_history GROUP BY entity_key, first_check_at HAVING count(*) > 1) AS x",
    );
    assert_eq!(doubled, 0);
    expect_each_has_its_check(&shop);
}

#[test]
fn a_job_without_repetitions_looks_nothing_up() {
    let shop = Shop::open();
    shop.job("plain", NOTE, "");
    shop.job("other", NOTE, "");
    repeat(&shop, "other", "other", "every => '1 hour', starts => now() + interval '1 hour'");
    let sql = "SELECT idx_scan FROM pg_stat_all_indexes WHERE indexrelname = 'repetition_one_per_job_and_entity'";
    let looks = || {
        shop.await_workers_gone();
        shop.cluster.value::<i64>("postgres", sql)
    };
    let before = looks();
    for key in 1..=20 {
        shop.schedule(&key.to_string(), "plain", "after => '0'");
    }
    shop.await_true("the runs", "SELECT count(*) = 20 FROM awty.future_job_history WHERE job = 'plain'");
    let after = looks();
    // Runs of a job without recurring checks do not read `awty_internal.repetition`.
    assert!(after < before + 10, "{before} and {after}");
    repeat(&shop, "mine", "plain", "every => '1 s'");
    await_ends(&shop, "mine", 15);
    cancel(&shop, "mine");
    // Waits, because a process reports its index scans only when it ends.
    shop.await_true("runs to look by that index", &format!("SELECT ({sql}) >= {after} + 15"));
}
