use awty_testkit::fixture::{GATE, NOTE, Shop};
use awty_testkit::postgres::fallible_iterator::FallibleIterator;
use awty_testkit::{Cluster, PATIENCE};
use std::time::Duration;

const BAD: &str = "BEGIN RAISE 'geheim error of %', j.entity_key USING ERRCODE = 'AW001'; END";

#[test]
fn a_failed_run_speaks_at_once_and_so_does_the_end() {
    let shop = Shop::open();
    let gated = BAD.replace("BEGIN ", &format!("BEGIN IF j.attempt > 0 THEN {GATE} END IF; "));
    shop.job("bad", &gated, ", max_attempts => 2, retry_after => '2 s'");
    let gate = shop.close_gate();
    let id = shop.schedule("7", "bad", "after => '0'");
    let failed = format!("check {id} of job \"bad\" for \"orders\" \"7\" failed in a run: geheim error of 7");
    shop.cluster.await_log(&["LOG:", &failed], 0);
    shop.cluster.await_log(&["DETAIL:", "SQLSTATE AW001.", "Attempt 1 of 2.", "Next try at "], 0);
    shop.cluster.await_log(&["CONTEXT:", "PL/pgSQL function bad(awty.future_job) line 1 at RAISE"], 0);
    let failing = "SELECT job = 'bad' AND entity_key = '7' AND attempt = 1 AND max_attempts = 2 AND sqlstate = 'AW001'
                   AND message = 'geheim error of 7' AND context LIKE 'PL/pgSQL function%' AND next_check_at > failed_at
                   FROM awty.failing";
    assert!(shop.cluster.value::<bool>("postgres", failing));
    drop(gate);
    let ended = format!("check {id} of job \"bad\" for \"orders\" \"7\" ended as failed: geheim error of 7");
    shop.cluster.await_log(&["WARNING:", &ended], 0);
    shop.cluster.await_log(&["DETAIL:", "Attempt 2 of 2."], 0);
    let log = shop.cluster.log_since(0);
    assert_eq!(log.matches(&format!("check {id} of")).count(), 2, "the last failure writes the WARNING alone: {log}");
    let history = "SELECT sqlstate = 'AW001' AND context LIKE 'PL/pgSQL function%' FROM awty.future_job_history";
    shop.await_true("the context in the history", history);
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty.failing"), 0);
}

#[test]
fn a_success_takes_a_check_out_of_failing() {
    let shop = Shop::open();
    shop.run("CREATE SEQUENCE shop.runs");
    let moody = "BEGIN IF nextval('shop.runs') = 1 THEN RAISE 'not now'; END IF; RETURN now() + '1 h'; END";
    shop.job("moody", moody, ", retry_after => '1 h'");
    shop.schedule("1", "moody", "after => '0'");
    shop.await_true("the failure", "SELECT count(*) = 1 FROM awty.failing WHERE message = 'not now'");
    shop.run("SELECT awty.check_now('orders', '1')");
    shop.await_true("the success", "SELECT check_count = 1 FROM awty.future_job");
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty.failing"), 0);
    let left = "SELECT count(*) FROM awty_internal.check_stat WHERE runs = 2 AND num_nonnulls(sqlstate, message, context, failed_at) = 0";
    assert_eq!(shop.cluster.value::<i64>("postgres", left), 1);
}

#[test]
fn an_end_that_is_a_problem_is_never_silent() {
    let shop = Shop::open();
    shop.job("past", "BEGIN RETURN j.next_check_at; END", "");
    shop.job("skipped", NOTE, ", on_missed => 'skip'");
    shop.job("prompt", NOTE, ", max_lateness => '1 s'");
    shop.run("SELECT awty.pause('skipped'), awty.pause('prompt')");
    for job in ["past", "skipped", "prompt"] {
        shop.schedule(job, job, "after => '0'");
    }
    shop.await_time(shop.slot_of("skipped"), 3);
    shop.run("SELECT awty.resume('skipped'), awty.resume('prompt')");
    for (job, outcome) in [("past", "past"), ("skipped", "missed"), ("prompt", "expired")] {
        shop.cluster
            .await_log(&["WARNING:", &format!("of job \"{job}\" for \"orders\" \"{job}\" ended as {outcome}")], 0);
    }
    shop.cluster.execute("postgres", &["CREATE ROLE leaver LOGIN", "GRANT USAGE ON SCHEMA awty TO leaver"]);
    shop.cluster.execute(
        "postgres",
        &["CREATE FUNCTION public.left(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz'",
          "SELECT awty.register('left', 'public.left', run_as => 'leaver', notify => 'gone')",
          "SELECT awty.schedule('orders', 'left', 'left', after => '1 h')",
          "REVOKE ALL ON SCHEMA awty FROM leaver; DROP ROLE leaver",
          "UPDATE awty.future_job SET first_check_at = first_check_at - interval '2 h', next_check_at = next_check_at - interval '2 h' WHERE job = 'left'"],
    );
    // Pausing a job makes awty inspect the database.
    shop.run("SELECT awty.pause('past')");
    let ended = "of job \"left\" for \"orders\" \"left\" ended as failed: the job's role no longer exists";
    shop.cluster.await_log(&["WARNING:", ended], 0);
}

#[test]
fn codes_show_no_name_and_none_shows_nothing() {
    let shop = Shop::on(Cluster::builder().set("awty.log_failures", "codes").start());
    // awty logs at most one failure of a job per second, so the second failure must come later.
    shop.job("geheim_bad", BAD, ", max_attempts => 2, retry_after => '2 s'");
    shop.job("geheim_past", "BEGIN RETURN j.next_check_at; END", "");
    shop.job("geheim_slow", "BEGIN PERFORM pg_sleep(60); RETURN NULL; END", ", timeout => '100 ms', max_attempts => 1");
    let ids = ["geheim_bad", "geheim_past", "geheim_slow"].map(|job| {
        let args = "after => '0', args => '\"geheim\"'";
        (job, shop.schedule(&format!("geheim {job}"), job, args))
    });
    shop.await_all_ended();
    for ((_, id), end) in ids.iter().zip(["failed", "past", "timed_out"]) {
        shop.cluster.await_log(&["WARNING:", &format!("check {id} ended as {end}")], 0);
    }
    shop.cluster.await_log(&["LOG:", &format!("check {} failed in a run", ids[0].1)], 0);
    shop.cluster.await_log(&["DETAIL:", "SQLSTATE AW001."], 0);
    let log = shop.cluster.log_since(0);
    assert!(!log.contains("geheim"), "{log}");

    shop.cluster.configure("awty.log_failures = none");
    shop.cluster.reload();
    shop.await_true("the setting", "SELECT current_setting('awty.log_failures') = 'none'");
    shop.await_workers_gone();
    let position = shop.cluster.log_position();
    let id = shop.schedule("geheim", "geheim_past", "after => '0'");
    shop.await_all_ended();
    shop.await_workers_gone();
    let log = shop.cluster.log_since(position);
    assert!(!log.contains("geheim") && !log.contains(&format!("check {id} ")), "{log}");
}

#[test]
fn a_storm_of_failures_is_ten_entries_a_minute_and_a_number() {
    const CHECKS: u64 = 3000;
    let shop = Shop::open();
    shop.job("bad", BAD, ", max_attempts => 1");
    shop.run(&format!(
        "SELECT count(awty.schedule('o', i::text, 'bad', after => '0')) FROM generate_series(1, {CHECKS}) AS i"
    ));
    shop.await_true("the storm to pass", "SELECT count(*) = 0 FROM awty.future_job");
    // awty logs only some of the failures. One more failure, a minute later, makes awty log the number of failures that
    // it left out.
    shop.schedule("1", "bad", "after => '61 s'");
    let told = |log: &str| {
        let entries = log.matches("ended as failed").count() as u64;
        let more = |line: &str| {
            let (_, after) = line.split_once(" and ").or_else(|| line.split_once("And "))?;
            after.split_once(" more ")?.0.replace(',', "").parse::<u64>().ok()
        };
        let more: u64 = log.lines().filter_map(more).sum();
        (entries, more)
    };
    let (entries, _) = told(&shop.cluster.log_since(0));
    assert!((1..=11).contains(&entries), "{entries} entries");
    let within = Duration::from_secs(60) * 2 + PATIENCE;
    let total = shop.cluster.await_that("the summary", within, || match told(&shop.cluster.log_since(0)) {
        (entries, more) if entries + more > CHECKS => Ok(entries + more),
        other => Err(format!("{other:?}")),
    });
    assert_eq!(total, CHECKS + 1);
}

#[test]
fn a_channel_is_told_of_problems_only() {
    let shop = Shop::open();
    let fate = "BEGIN CASE j.entity_name WHEN 'fails' THEN RAISE 'no'; WHEN 'past' THEN RETURN j.next_check_at;
                ELSE RETURN NULL; END CASE; END";
    shop.job("fate", fate, ", max_attempts => 2, retry_after => '1 s', notify => 'Late Orders'");
    shop.job("skipped", NOTE, ", on_missed => 'skip', notify => 'Late Orders'");
    let mut listener = shop.client();
    listener.batch_execute("LISTEN \"Late Orders\"").unwrap();
    let ids = |name: &str, job: &str| -> Vec<i64> {
        let sql =
            format!("SELECT awty.schedule('{name}', i::text, '{job}', after => '0') FROM generate_series(1, 3) AS i");
        shop.client().query(&sql, &[]).unwrap().iter().map(|row| row.get(0)).collect()
    };
    shop.run("SELECT awty.pause('skipped')");
    let mut expected = ids("missed", "skipped");
    ids("done", "fate");
    expected.extend(ids("fails", "fate"));
    expected.extend(ids("past", "fate"));
    shop.run("SELECT awty.schedule('x', 'y', 'fate', after => '1 h'); SELECT awty.schedule('x', 'y', 'fate', after => '2 h');
              SELECT awty.cancel('x', 'y')");
    shop.await_true(
        "the slot to pass",
        "SELECT max(next_check_at) < now() - interval '2 s' FROM awty.future_job WHERE job = 'skipped'",
    );
    shop.run("SELECT awty.resume('skipped')");
    shop.await_all_ended();
    let mut told: Vec<i64> = Vec::new();
    while told.len() < expected.len() {
        let next = listener.notifications().timeout_iter(PATIENCE).next().unwrap().expect("a notification");
        assert_eq!(next.channel(), "Late Orders");
        told.push(next.payload().parse().unwrap());
    }
    let more = listener.notifications().iter().next().unwrap();
    assert!(more.is_none(), "{more:?}");
    told.sort_unstable();
    expected.sort_unstable();
    assert_eq!(told, expected);
}

#[test]
fn a_history_of_problems_has_no_other_rows() {
    let shop = Shop::open();
    let fate = "BEGIN CASE j.entity_key WHEN 'fails' THEN RAISE 'no'; WHEN 'past' THEN RETURN j.next_check_at;
                WHEN 'later' THEN IF j.check_count = 0 THEN RETURN now() + '1 s'; END IF; ELSE NULL; END CASE; RETURN NULL; END";
    shop.job("fate", fate, ", max_attempts => 1, keep_history => 'problems'");
    shop.job("skipped", NOTE, ", on_missed => 'skip', keep_history => 'problems'");
    shop.run("SELECT awty.pause('skipped')");
    shop.schedule("missed", "skipped", "after => '0'");
    for key in ["done", "fails", "past", "later"] {
        shop.schedule(key, "fate", "after => '0'");
    }
    shop.schedule("cancelled", "fate", "after => '1 h'");
    shop.run("SELECT awty.cancel('orders', 'cancelled')");
    shop.await_time(shop.slot_of("missed"), 2);
    shop.run("SELECT awty.resume('skipped')");
    shop.await_all_ended();
    let kept = "SELECT string_agg(entity_key || ' ' || outcome, ', ' ORDER BY entity_key) FROM awty.future_job_history";
    assert_eq!(shop.cluster.psql("postgres", kept).trim(), "fails failed, missed missed, past past");
}
