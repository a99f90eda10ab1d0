use super::{DUE, claim, claim_one, register, say, shop_with};
use awty_testkit::fixture::Shop;
use std::collections::HashSet;
use std::sync::Mutex;

#[test]
fn eight_claimers_hand_out_each_check_once() {
    let shop = shop_with("", 400);
    let (held, done) = (Mutex::new(HashSet::new()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let (shop, held, done) = (&shop, &held, &done);
            scope.spawn(move || {
                let mut client = shop.client();
                for turn in 0.. {
                    let aborts = (turn + worker) % 5 == 0;
                    client.batch_execute("BEGIN").unwrap();
                    let leased = claim(&mut client, 1 + worker);
                    client.batch_execute(if aborts { "ROLLBACK" } else { "COMMIT" }).unwrap();
                    if aborts {
                        continue;
                    }
                    if leased.is_empty() {
                        break;
                    }
                    for one in &leased {
                        assert!(held.lock().unwrap().insert(one.entity_key.clone()), "{one:?} is somebody else's");
                    }
                    for one in leased {
                        assert!(held.lock().unwrap().remove(&one.entity_key));
                        if turn % 3 == 0 {
                            let given_back = client.query_one("SELECT awty.requeue($1)", &[&vec![one.lease]]).unwrap();
                            assert_eq!(given_back.get::<_, i64>(0), 1);
                        } else {
                            assert_eq!(say(&mut client, "complete($1)", one.lease), "ended");
                            done.lock().unwrap().push(one.key);
                        }
                    }
                }
            });
        }
    });
    let mut client = shop.client();
    for one in claim(&mut client, 1000) {
        assert_eq!(say(&mut client, "complete($1)", one.lease), "ended");
        done.lock().unwrap().push(one.key);
    }
    let done = done.into_inner().unwrap();
    assert_eq!((done.len(), done.iter().collect::<HashSet<_>>().len()), (400, 400));
    let ends = "SELECT count(*)::text || outcome || sum(attempts) FROM awty.future_job_history GROUP BY outcome";
    assert_eq!(shop.cluster.psql("postgres", ends).trim(), "400done400");
    assert!(shop.cluster.pids("awty worker").is_empty(), "the launcher has started a worker for it");
}

#[test]
fn a_backlog_puts_off_a_single_check_by_one_claim() {
    let shop = shop_with(", retry_after => '1 h'", 0);
    shop.run("SELECT awty.schedule_many('orders', array_agg(n::text), 'mail', after => '0') FROM generate_series(1, 100000) AS n");
    shop.cluster.create_user("postgres", "other");
    let mut other = shop.cluster.client("postgres", "other");
    other.batch_execute("SELECT awty.register('post'), awty.allow('post', 'shop', 'claim')").unwrap();
    other.batch_execute("SELECT awty.schedule('orders', 'single', 'post', after => '0')").unwrap();
    shop.await_true(
        "the single check to be due",
        "SELECT count(*) = 100001 AND awty.next_claim_in('{mail,post}') = '0' FROM awty.future_job WHERE next_check_at < now()",
    );
    let mut client = shop.client();
    for max in [1, 1] {
        client.execute("SELECT FROM awty.claim('{mail, post}', 'both', $1)", &[&max]).unwrap();
    }
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty.lease WHERE entity_key = 'single'"), 1);
}

#[test]
fn a_backlog_of_one_job_does_not_put_off_another_of_its_role() {
    let shop = shop_with(", retry_after => '1 h'", 0);
    shop.run("SELECT awty.schedule_many('orders', array_agg(n::text), 'mail', after => '0') FROM generate_series(1, 1000) AS n");
    shop.run("SELECT awty.register('post')");
    shop.await_true("the backlog to be due", "SELECT count(*) = 1000 FROM awty.future_job WHERE next_check_at < now()");
    shop.run("SELECT awty.schedule('orders', 'single', 'post', after => '0')");
    let all = "SELECT count(*) = 1001 AND awty.next_claim_in('{mail,post}') = '0' FROM awty.future_job
               WHERE next_check_at < now()";
    shop.await_true("the single check to be due", all);
    let mut client = shop.client();
    for max in [1, 1] {
        client.execute("SELECT FROM awty.claim('{mail, post}', 'both', $1)", &[&max]).unwrap();
    }
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty.lease WHERE entity_key = 'single'"), 1);
}

#[test]
fn an_idle_worker_writes_nothing_and_is_told_how_long() {
    let shop = Shop::open();
    register(&shop, "", 0);
    shop.run("SELECT awty.schedule('orders', '1', 'mail', after => '1 h')");
    let mut client = shop.client();
    claim(&mut client, 10);
    let lsn = "SELECT (pg_current_wal_insert_lsn() - '0/0')::int8";
    shop.cluster.execute("postgres", &["CHECKPOINT"]);
    let wait: f64 =
        client.query_one("SELECT extract(epoch FROM awty.next_claim_in('{mail}'))::float8", &[]).unwrap().get(0);
    assert!(wait > 0.0 && wait <= 1.0, "{wait} s, in slots of a second");
    let writes = || {
        let before: i64 = shop.cluster.value("postgres", lsn);
        let mut client = shop.client();
        for _ in 0..50 {
            assert!(claim(&mut client, 10).is_empty());
            client.execute("SELECT awty.next_claim_in('{mail}')", &[]).unwrap();
        }
        shop.cluster.value::<i64>("postgres", lsn) - before
    };
    // Measures up to ten times, because another process may write WAL during a measurement.
    assert!((0..10).any(|_| writes() == 0), "idle claims write");
    shop.run("SELECT awty.check_now('orders', '1')");
    let wait: f64 =
        client.query_one("SELECT extract(epoch FROM awty.next_claim_in('{mail}'))::float8", &[]).unwrap().get(0);
    assert!(wait == 0.0, "{wait} s, though something is due");
    assert_eq!(claim_one(&shop).entity_key, "1");
}

#[test]
fn nothing_is_handed_out_early_paused_or_to_strangers() {
    let shop = shop_with("", 1);
    let mut client = shop.client();
    shop.run("SELECT awty.schedule('orders', 'later', 'mail', after => '1 h'), awty.pause('mail')");
    assert!(claim(&mut client, 10).is_empty());
    shop.run("SELECT awty.resume('mail')");
    shop.cluster.create_user("postgres", "eve");
    let mut eve = shop.cluster.client("postgres", "eve");
    let refused = eve.batch_execute("SELECT awty.claim('{mail}', 'eve')").unwrap_err();
    assert_eq!(refused.code().map(|code| code.code().to_owned()).as_deref(), Some("42501"));
    let leased = claim(&mut client, 10);
    assert_eq!(leased.iter().map(|one| one.entity_key.as_str()).collect::<Vec<_>>(), ["1"]);
    assert_eq!(say(&mut eve, "complete($1)", leased[0].lease), "void");
    assert_eq!(eve.query_one("SELECT count(*) FROM awty.lease", &[]).unwrap().get::<_, i64>(0), 0);
    shop.run("SELECT awty.allow('mail', 'eve', 'claim')");
    assert_eq!(eve.query_one("SELECT count(*) FROM awty.lease", &[]).unwrap().get::<_, i64>(0), 1);
    assert_eq!(say(&mut eve, "complete($1)", leased[0].lease), "ended");
    assert_eq!(eve.query_one("SELECT count(*) FROM awty.attempt WHERE ok", &[]).unwrap().get::<_, i64>(0), 1);
}

#[test]
fn the_jobs_of_one_claim_share_the_checks_that_it_ends() {
    let shop = shop_with(", on_missed => 'skip', max_lateness => '1 min'", 0);
    shop.run("SELECT awty.register('post')");
    shop.run("SELECT awty.schedule_many('orders', array_agg(n::text), 'mail', after => '0') FROM generate_series(1, 3000) AS n");
    let is_open = format!("SELECT {DUE} = 3000 AND awty.next_claim_in('{{mail}}') = '0'");
    shop.await_true("the checks to be claimable", &is_open);
    shop.cluster.execute("postgres", &["UPDATE awty.future_job SET next_check_at = next_check_at - interval '1 h'"]);
    let pending_after_claim = |jobs: &str| -> i64 {
        let claimed: i64 =
            shop.client().query(&format!("SELECT FROM awty.claim('{jobs}', 'tester')"), &[]).unwrap().len() as i64;
        assert_eq!(claimed, 0);
        shop.cluster.value("postgres", "SELECT count(*) FROM awty.future_job")
    };
    // A claim of one job ends at most 5,000 missed checks. A claim of two jobs ends at most 500 checks of each job, and
    // fewer if that takes long.
    let left = pending_after_claim("{mail,post}");
    assert!((2_500..3_000).contains(&left), "{left} checks are left");
    assert_eq!(pending_after_claim("{mail}"), 0);
}

#[test]
fn a_claim_of_several_jobs_reads_past_ten_thousand_leases_at_most() {
    const BUSY: [&str; 4] = ["a", "b", "c", "d"];
    let shop = shop_with("", 2);
    for job in BUSY {
        shop.run(&format!(
            "SELECT awty.register('{job}', timeout => '1 h', heartbeat => '1 h');
             SELECT awty.schedule_many('orders', array_agg(n::text), '{job}', after => '0') FROM generate_series(1, 6001) AS n"
        ));
        let leases = format!(
            "SELECT (SELECT count(*) FROM awty.claim('{{{job}}}', 'busy', 1000)) >= 0
                 AND (SELECT count(*) >= 6000 FROM awty.lease WHERE job = '{job}')"
        );
        shop.await_true("6,000 leases", &leases);
    }
    let read = "SELECT idx_tup_fetch FROM pg_stat_xact_all_tables WHERE relid = 'awty.future_job'::regclass";
    let mut client = shop.cluster.client("postgres", "postgres");
    let mut claimed = || -> HashSet<String> {
        let mut claim = client.transaction().unwrap();
        let before: i64 = claim.query_one(read, &[]).unwrap().get(0);
        let rows = claim.query("SELECT job FROM awty.claim('{a,b,c,d,mail}', 'tester', 100)", &[]).unwrap();
        let after: i64 = claim.query_one(read, &[]).unwrap().get(0);
        claim.commit().unwrap();
        // A claim may read the 6,000 leased checks of one busy job twice, but not the 24,000 of all busy jobs.
        assert!(after - before < 15_000, "{} checks were read", after - before);
        rows.iter().map(|row| row.get(0)).collect()
    };
    assert!(claimed().contains("mail"));
    // Claims four times, because each claim can count all leases of only one of the four busy jobs.
    for _ in BUSY {
        claimed();
    }
    for job in BUSY.into_iter().chain(["mail"]) {
        shop.run(&format!("SELECT awty.schedule('orders', 'new', '{job}', after => '0')"));
    }
    shop.await_true("the new checks to be due", &format!("SELECT {DUE} = {}", 2 + 4 * 6001 + 5));
    let of_two = claimed();
    assert!(of_two.contains("mail") && of_two.len() == 2, "{of_two:?}");
    shop.cluster.execute(
        "postgres",
        &["DELETE FROM awty_internal.lease WHERE entity_key <> 'new' AND entity_key::integer > 100"],
    );
    assert_eq!(claimed().len(), 4);
}

#[test]
fn a_job_with_ten_thousand_leases_delays_no_claim_of_several_jobs() {
    let shop = shop_with("", 2);
    shop.run("SELECT awty.register('post')");
    assert_eq!(claim(&mut shop.client(), 1).len(), 1);
    // Copies the lease 9,999 times, because this is quicker than claiming 9,999 checks.
    shop.cluster.execute(
        "postgres",
        &["INSERT INTO awty_internal.lease SELECT (copy.l).* FROM (
               SELECT jsonb_populate_record(l, jsonb_build_object('lease', n, 'id', -n)) AS l
               FROM awty_internal.lease AS l, generate_series(1, 9999) AS n) AS copy"],
    );
    let claimable = "SELECT awty.next_claim_in('{mail}') = '0' AND awty.next_claim_in('{mail,post}') > '0'
                         AND awty.next_claim_in('{mail,mail}') > '0'";
    shop.await_true("only a claim of one job", claimable);
    let of_several = "SELECT FROM awty.claim('{mail,post}', 'tester')";
    assert_eq!(shop.client().query(of_several, &[]).unwrap().len(), 0);
    shop.cluster.execute("postgres", &["DELETE FROM awty_internal.lease WHERE lease = 1"]);
    assert_eq!(shop.client().query(of_several, &[]).unwrap().len(), 1);
}

#[test]
fn a_claim_reads_the_live_leases_twice_at_most() {
    let shop = shop_with("", 1_001);
    shop.run("SELECT awty.alter_target('mail', concurrency => 2000)");
    assert_eq!(claim(&mut shop.client(), 1_000).len(), 1_000);
    let read = "SELECT idx_tup_fetch FROM pg_stat_xact_all_tables WHERE relid = 'awty_internal.lease'::regclass";
    let mut client = shop.cluster.client("postgres", "postgres");
    let mut transaction = client.transaction().unwrap();
    let before: i64 = transaction.query_one(read, &[]).unwrap().get(0);
    assert_eq!(transaction.query("SELECT FROM awty.claim('{mail}', 'tester')", &[]).unwrap().len(), 1);
    let leases = transaction.query_one(read, &[]).unwrap().get::<_, i64>(0) - before;
    // A claim reads the leases before it locks the job's claims, and again under the lock.
    assert!(leases < 2_100, "{leases} leases were read");
}
