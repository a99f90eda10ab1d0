use super::{register, say};
use awty_testkit::fixture::Shop;
use awty_testkit::postgres::Client;
use std::collections::BTreeMap;
use std::time::Instant;

pub(super) fn shop_with(options: &str, targets: &[(&str, i32)]) -> Shop {
    let shop = Shop::open();
    register(&shop, options, 0);
    for (target, checks) in targets {
        add(&shop, target, *checks);
    }
    if !targets.is_empty() {
        // The first claims return nothing, because the launcher has not found the database yet.
        shop.await_true("something to claim", "SELECT awty.next_claim_in('{mail}') = '0'");
    }
    shop
}

pub(super) fn add(shop: &Shop, target: &str, checks: i32) {
    shop.run(&format!(
        "SELECT awty.schedule_many('{target}', array_agg(n::text), 'mail', after => '0') FROM generate_series(1, {checks}) AS n"
    ));
    let due = format!(
        "SELECT count(*) = {checks} FROM awty.future_job WHERE entity_name = '{target}' AND next_check_at <= clock_timestamp()"
    );
    shop.await_true("the checks to be due", &due);
}

pub(super) fn claimed(client: &mut Client, max: i32) -> (BTreeMap<String, usize>, Vec<i64>) {
    let rows = client.query("SELECT entity_name, lease FROM awty.claim('{mail}', 'tester', $1)", &[&max]).unwrap();
    let mut counts = BTreeMap::new();
    rows.iter().for_each(|row| *counts.entry(row.get(0)).or_default() += 1);
    (counts, rows.iter().map(|row| row.get(1)).collect())
}

pub(super) fn counts(counts: &[(&str, usize)]) -> BTreeMap<String, usize> {
    counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

pub(super) fn state(shop: &Shop, target: &str) -> String {
    let sql = format!("SELECT state || coalesce(': ' || why, '') FROM awty.target WHERE target = '{target}'");
    shop.cluster.psql("postgres", &sql).trim().to_owned()
}

#[test]
fn no_target_gets_more_leases_than_its_concurrency() {
    let shop = shop_with("", &[("a", 20), ("b", 20)]);
    shop.run("SELECT awty.alter_target('mail', concurrency => 3), awty.alter_target('mail', 'b', concurrency => 5)");
    let mut client = shop.client();
    let (given, leases) = claimed(&mut client, 100);
    assert_eq!(given, counts(&[("a", 3), ("b", 5)]));
    assert!(state(&shop, "a").starts_with("full: all 3 leases are in use"), "{}", state(&shop, "a"));
    assert!(claimed(&mut client, 100).1.is_empty());
    assert_eq!(say(&mut client, "complete($1)", leases[0]), "ended");
    assert_eq!(claimed(&mut client, 100).1.len(), 1);
    shop.run("SELECT awty.alter_target('mail', reset => '{concurrency}'), awty.alter_target('mail', 'b', reset => '{concurrency}')");
    assert_eq!(claimed(&mut client, 100).1.len(), 31);
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty_internal.target"), 0);
}

#[test]
fn a_rate_lets_a_burst_through_and_then_so_many_a_second() {
    let shop = shop_with("", &[("a", 200)]);
    shop.run("SELECT awty.alter_target('mail', 'a', rate => 20, burst => 5)");
    let mut client = shop.client();
    let began = Instant::now();
    let mut given = claimed(&mut client, 100).1.len();
    assert_eq!(given, 5);
    while given < 30 {
        given += claimed(&mut client, 100).1.len();
        let most = 5.0 + began.elapsed().as_secs_f64() * 20.0;
        assert!(given as f64 <= most + 1.0, "{given} after {:?}", began.elapsed());
    }
    assert!(claimed(&mut client, 100).1.len() <= 5);
    shop.await_true(
        "a wait that ends with the next token",
        "SELECT awty.next_claim_in('{mail}') BETWEEN '0' AND '0.06 s'",
    );
}

#[test]
fn a_blocked_target_waits_and_says_why_and_the_others_go_on() {
    let shop = shop_with(", max_attempts => 1", &[("a", 5), ("b", 5)]);
    shop.run("SELECT awty.alter_target('mail', 'a', blocked_until => 'infinity', note => 'mail server moves')");
    let mut client = shop.client();
    assert_eq!(claimed(&mut client, 100).0, counts(&[("b", 5)]));
    assert!(claimed(&mut client, 100).1.is_empty());
    let wait = "SELECT awty.next_claim_in('{mail}') > '0'";
    assert!(shop.cluster.value::<bool>("postgres", wait), "a worker would ask without an end");
    let why = "SELECT string_agg(detail, '; ') FROM awty.explain('a', '1')";
    let told = shop.cluster.psql("postgres", why);
    assert!(told.contains("its target is blocked until infinity") && told.contains("mail server moves"), "{told}");
    let found = shop.cluster.psql("postgres", "SELECT finding, fix FROM awty.doctor()");
    assert!(found.contains("target \"a\" of job \"mail\" is blocked"), "{found}");
    shop.run("SELECT awty.alter_target('mail', 'a', blocked_until => '-infinity')");
    let kept = "SELECT blocked_at < blocked_until AND blocked_until <= now() AND blocked_by = 'shop'::regrole AND note = 'mail server moves'
        FROM awty_internal.target WHERE target = 'a'";
    assert!(
        shop.cluster.value::<bool>("postgres", kept),
        "{}",
        shop.cluster.psql("postgres", "TABLE awty_internal.target")
    );
    assert_eq!(claimed(&mut client, 100).0, counts(&[("a", 5)]));
    shop.run("SELECT awty.alter_target('mail', blocked_until => now() + '1 h')");
    add(&shop, "c", 1);
    assert!(claimed(&mut client, 100).1.is_empty(), "all targets are blocked");
}

#[test]
fn targets_take_turns_whoever_has_more_to_do() {
    let shop = shop_with("", &[("many", 300), ("few", 3), ("one", 1)]);
    let mut client = shop.client();
    assert_eq!(claimed(&mut client, 10).0, counts(&[("few", 3), ("many", 6), ("one", 1)]));
    add(&shop, "late", 2);
    let turns: Vec<String> = (0..4).map(|_| claimed(&mut client, 1).0.into_keys().next().unwrap()).collect();
    assert!(turns.iter().any(|turn| turn == "late"), "{turns:?}");
}

#[test]
fn failures_are_forgotten_a_day_after_the_last() {
    let shop = shop_with(", max_attempts => 0, retry_after => '1 ms'", &[("a", 2), ("b", 2)]);
    let mut client = shop.client();
    for lease in claimed(&mut client, 4).1 {
        assert_eq!(say(&mut client, "fail($1, 'connection refused', target_down => true)", lease), "retrying");
    }
    let old = "UPDATE awty_internal.breaker SET since = since - interval '3 days',
               failed_at = failed_at - CASE target WHEN 'a' THEN interval '1 hour' ELSE '25 hours' END";
    shop.cluster.execute("postgres", &[old]);
    let left = "SELECT string_agg(target || failures, ' ') FROM awty_internal.breaker";
    shop.cluster.await_that("the maintainer to forget", std::time::Duration::from_secs(90), || {
        shop.run("SELECT awty.pause('mail'), awty.resume('mail')"); // makes the maintainer inspect the database
        match shop.cluster.psql("postgres", left).trim() {
            "a2" => Ok(()),
            others => Err(others.to_owned()),
        }
    });
}

#[test]
fn a_target_that_is_down_is_left_alone_and_tried_again() {
    let shop = shop_with(", max_attempts => 0, retry_after => '1 ms'", &[("a", 30)]);
    let mut client = shop.client();
    let leases = claimed(&mut client, 12).1;
    let since = |change: &str| {
        shop.cluster.execute("postgres", &[&format!("UPDATE awty_internal.breaker SET since = since {change}")]);
    };
    assert_eq!(say(&mut client, "fail($1, 'connection refused', target_down => true)", leases[0]), "retrying");
    // Moves the time of the first failure into the future. The circuit breaker then stays closed, because it opens only
    // when the first failure is ten seconds old.
    since("+ interval '1 h'");
    for lease in &leases[1..11] {
        assert_eq!(say(&mut client, "fail($1, 'connection refused', target_down => true)", *lease), "retrying");
    }
    assert_eq!(state(&shop, "a"), "ready", "it has failed for a moment only");
    since("- interval '1 h 11 s'");
    assert_eq!(say(&mut client, "fail($1, 'connection refused', target_down => true)", leases[11]), "retrying");
    let told = state(&shop, "a");
    assert!(told.starts_with("open: has failed 12 times in a row") && told.contains("connection refused"), "{told}");
    assert!(claimed(&mut client, 10).1.is_empty());
    shop.cluster.execute("postgres", &["UPDATE awty_internal.breaker SET opened_at = opened_at - interval '31 s'"]);
    let tried = claimed(&mut client, 10).1;
    assert_eq!(tried.len(), 1, "half open, one at a time");
    assert!(claimed(&mut client, 10).1.is_empty());
    assert_eq!(say(&mut client, "fail($1, 'timeout', target_down => true)", tried[0]), "retrying");
    let doubled = "SELECT blocked_until > clock_timestamp() + interval '45 s' FROM awty.target";
    assert!(shop.cluster.value::<bool>("postgres", doubled));
    shop.cluster.execute("postgres", &["UPDATE awty_internal.breaker SET opened_at = opened_at - interval '61 s'"]);
    let tried = claimed(&mut client, 10).1;
    assert_eq!(say(&mut client, "complete($1)", tried[0]), "ended");
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty_internal.breaker"), 0);
    assert!(claimed(&mut client, 10).1.len() > 1);
}

#[test]
fn a_report_that_is_not_committed_stops_no_other() {
    let shop = shop_with(", max_attempts => 0", &[("a", 4)]);
    let mut client = shop.client();
    let leases = claimed(&mut client, 3).1;
    let mut open = shop.client();
    open.batch_execute("BEGIN").unwrap();
    say(&mut open, "fail($1, 'down', target_down => true)", leases[0]);
    client.batch_execute("SET statement_timeout = '30 s'").unwrap();
    assert_eq!(say(&mut client, "fail($1, 'down', target_down => true)", leases[1]), "retrying");
    assert_eq!(say(&mut client, "complete($1)", leases[2]), "ended");
    assert_eq!(claimed(&mut client, 1).1.len(), 1);
    open.batch_execute("COMMIT").unwrap();
}

fn read_by_a_claim(client: &mut Client) -> i64 {
    let read = "SELECT sum(pg_stat_get_xact_blocks_fetched(oid) + pg_stat_get_xact_tuples_returned(oid))::bigint
        FROM pg_class WHERE relnamespace IN ('awty'::regnamespace, 'awty_internal'::regnamespace)";
    let mut most = 0;
    for _ in 0..10 {
        client.batch_execute("BEGIN").unwrap();
        let before: i64 = client.query_one(read, &[]).unwrap().get(0);
        let (given, leases) = claimed(client, 20);
        let after: i64 = client.query_one(read, &[]).unwrap().get(0);
        client.batch_execute("COMMIT").unwrap();
        assert_eq!(given, counts(&[("free", 20)]));
        leases.into_iter().for_each(|lease| assert_eq!(say(client, "complete($1)", lease), "ended"));
        most = most.max(after - before);
    }
    most
}

#[test]
fn a_hundred_thousand_due_checks_of_a_blocked_target_cost_a_claim_nothing() {
    let shop = shop_with("", &[("free", 1000)]);
    shop.run("SELECT awty.alter_target('mail', 'blocked', blocked_until => 'infinity')");
    shop.cluster.execute("postgres", &["VACUUM ANALYZE awty.future_job"]);
    let mut client = shop.client();
    let without = read_by_a_claim(&mut client);
    add(&shop, "blocked", 100_000);
    let older =
        "UPDATE awty.future_job SET next_check_at = next_check_at - interval '1 h' WHERE entity_name = 'blocked'";
    shop.cluster.execute("postgres", &[older, "VACUUM ANALYZE awty.future_job"]);
    let with = read_by_a_claim(&mut client);
    // A claim first reads the oldest checks. If their target is blocked, the claim continues with other targets.
    assert!(with < 2 * without, "{with} blocks and rows, and {without} without them");
}

#[test]
fn limits_are_refused_by_name_and_to_strangers() {
    let shop = shop_with("", &[]);
    let mut client = shop.client();
    let mut refused = |arguments: &str| {
        let error = client.batch_execute(&format!("SELECT awty.alter_target({arguments})")).unwrap_err();
        let error = error.as_db_error().unwrap().clone();
        assert!(error.hint().is_some(), "{error:?}");
        error.code().code().to_owned()
    };
    for arguments in [
        "'mail', concurrency => 0",
        "'mail', rate => 0",
        "'mail', rate => 'NaN'",
        "'mail', burst => 0",
        "'mail', reset => '{pace}'",
    ] {
        assert_eq!(refused(arguments), "22023", "{arguments}");
    }
    assert_eq!(refused("'mial', concurrency => 1"), "42704");
    shop.job("inside", "BEGIN RETURN NULL; END", "");
    assert_eq!(refused("'inside', concurrency => 1"), "42809");
    shop.cluster.create_user("postgres", "eve");
    let mut eve = shop.cluster.client("postgres", "eve");
    shop.run("SELECT awty.alter_target('mail', 'a', concurrency => 1), awty.allow('mail', 'eve', 'claim')");
    let error = eve.batch_execute("SELECT awty.alter_target('mail', 'a', concurrency => 9)").unwrap_err();
    assert_eq!(error.code().unwrap().code(), "42501");
    assert_eq!(eve.query("SELECT FROM awty.target", &[]).unwrap().len(), 1, "who may claim may read");
    shop.run("SELECT awty.disallow('mail', 'eve')");
    assert!(eve.query("SELECT FROM awty.target", &[]).unwrap().is_empty());
    shop.run("SELECT awty.unregister('mail')");
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty_internal.target"), 0);
}

#[test]
fn a_worker_that_claims_only_what_is_due_comes_to_a_target_behind_thousands() {
    let shop = shop_with("", &[("a", 200), ("z", 1)]);
    shop.run("SELECT awty.alter_target('mail', 'a', blocked_until => 'infinity')");
    shop.run("SELECT count(awty.schedule('m' || n, '1', 'mail', after => '1 day')) FROM generate_series(1, 6000) AS n");
    let wait = || {
        let sql = "SELECT EXTRACT(epoch FROM awty.next_claim_in('{mail}'))::float8";
        shop.cluster.value::<f64>("postgres", sql)
    };
    // One call of `next_claim_in` searches 5,000 targets. The next call continues with the next targets.
    let first = wait();
    assert!(first > 0.0 && first <= 1.0, "{first}");
    assert_eq!(wait(), 0.0);
    assert_eq!(claimed(&mut shop.client(), 10).0, counts(&[("z", 1)]));
}

#[test]
fn the_jobs_of_one_claim_share_the_targets_that_it_looks_at() {
    let shop = shop_with("", &[("a", 200), ("z", 1)]);
    shop.run("SELECT awty.register('post'), awty.alter_target('mail', 'a', blocked_until => 'infinity')");
    shop.run("SELECT count(awty.schedule('m' || n, '1', 'mail', after => '1 day')) FROM generate_series(1, 6000) AS n");
    let wait = || {
        let sql = "SELECT EXTRACT(epoch FROM awty.next_claim_in('{mail,post}'))::float8";
        shop.cluster.value::<f64>("postgres", sql)
    };
    // With two jobs, one call of `next_claim_in` searches 2,500 targets of each job.
    let (first, second) = (wait(), wait());
    assert!(first > 0.0 && second > 0.0, "{first} {second}");
    assert_eq!(wait(), 0.0);
}

#[test]
fn the_question_when_to_claim_reads_few_checks() {
    let shop = shop_with("", &[("a", 1)]);
    shop.run("SELECT awty.register('post'), awty.alter_target('post', 'b', blocked_until => 'infinity')");
    shop.run(
        "SELECT awty.schedule_many('b', array_agg(n::text), 'post', after => '0') FROM generate_series(1, 1000) AS n",
    );
    shop.await_true("all checks to be due", "SELECT max(next_check_at) <= clock_timestamp() FROM awty.future_job");
    let mut client = shop.client();
    let mut transaction = client.transaction().unwrap();
    let mut read = |jobs: &str| -> (f64, i64) {
        let sql = "SELECT sum(pg_stat_get_xact_tuples_returned(indexrelid))::bigint FROM pg_index WHERE indrelid = 'awty.future_job'::regclass";
        let before: i64 = transaction.query_one(sql, &[]).unwrap().get(0);
        let ask = format!("SELECT EXTRACT(epoch FROM awty.next_claim_in('{jobs}'))::float8");
        let wait = transaction.query_one(&ask, &[]).unwrap().get(0);
        (wait, transaction.query_one(sql, &[]).unwrap().get::<_, i64>(0) - before)
    };
    let (wait, rows) = read("{mail,post}");
    assert_eq!(wait, 0.0);
    assert!(rows <= 5, "{rows} checks were read, although the first job has a due check");
    let (wait, rows) = read("{post}");
    assert!(wait > 0.0, "the only target of this job is blocked");
    assert!(rows <= 30, "{rows} checks of a blocked target were read");
}

#[test]
fn an_open_transaction_that_unregistered_a_job_holds_up_no_claim_of_others() {
    let shop = shop_with("", &[("a", 9)]);
    shop.run("SELECT awty.alter_target('mail', 'a', rate => 1000, burst => 2)");
    let mut client = shop.client();
    assert_eq!(claimed(&mut client, 100).1.len(), 2);
    client.batch_execute("SET lock_timeout = '20s'").unwrap();
    shop.await_true("more of mail", "SELECT awty.next_claim_in('{mail}') = '0'");
    shop.run("SELECT awty.register('post')");
    let mut holder = shop.client();
    holder.batch_execute("BEGIN; SELECT awty.unregister('mail')").unwrap();
    let mut claim = |jobs: &str| -> Vec<String> {
        let sql = format!("SELECT job FROM awty.claim('{jobs}', 'tester', 100)");
        client.query(&sql, &[]).unwrap_or_else(|error| panic!("{error:?}")).iter().map(|row| row.get(0)).collect()
    };
    assert_eq!(claim("{mail,post}"), Vec::<String>::new());
    shop.run("SELECT awty.schedule('p', '1', 'post', after => '0')");
    shop.await_true("post to be due", "SELECT awty.next_claim_in('{mail,post}') = '0'");
    assert_eq!(claim("{mail,post}"), ["post"]);
    holder.batch_execute("COMMIT").unwrap();
}
