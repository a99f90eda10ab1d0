use super::{await_ends, cancel, expect_each_has_its_check, is_in_order, plan, repeat, repeat_at_gate, seconds};
use awty_testkit::fixture::{NOTE, Shop};
use awty_testkit::{Cluster, PATIENCE, Signal};

#[test]
fn a_repetition_is_gone_after_its_end() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    let last = shop.ahead(4, &plan("1", "note", "every => '1 s', ends => {first}, catch_up => '1 hour'"));
    shop.await_true("its end", "SELECT NOT EXISTS (SELECT FROM awty.repetition)");
    let ends = shop.ends("1");
    assert_eq!(ends.last().map(|end| end.first), Some(last), "the end is included: {ends:?}");
    assert_eq!(shop.pending("1"), "");
}

#[test]
fn cancel_ends_a_repetition_whose_run_is_under_way() {
    let shop = Shop::open();
    let gate = repeat_at_gate(&shop);
    let cancelled: i64 = shop.client().query_one("SELECT awty.cancel('orders', '1')", &[]).unwrap().get(0);
    drop(gate);
    shop.await_workers_gone();
    assert_eq!((cancelled, shop.notes("1"), shop.pending("1")), (1, 0, String::new()));
    let ends = shop.ends("1");
    assert_eq!((ends.len(), ends[0].why()), (1, ("cancelled", None)), "{ends:?}");
}

/// The check runs again and again, so that cancellations come at every step of a run.
#[test]
fn cancel_always_finds_the_one_check() {
    let shop = Shop::on(Cluster::builder().set("awty.catch_up_rate", "0").start());
    shop.job("note", NOTE, "");
    let mut client = shop.client();
    for round in 1..=15 {
        shop.run("SELECT awty.pause('note')");
        repeat(&shop, "1", "note", "every => '1 s', catch_up => '1 hour'");
        shop.cluster.execute("postgres", &[
            "UPDATE awty.future_job SET first_check_at = first_check_at - interval '50 min', next_check_at = next_check_at - interval '50 min'",
        ]);
        let before = shop.notes("1");
        shop.run("SELECT awty.resume('note')");
        shop.await_true("runs", &format!("SELECT count(*) > {before} + {round} FROM shop.note"));
        let cancelled: i64 = client.query_one("SELECT awty.cancel('orders', '1')", &[]).unwrap().get(0);
        assert_eq!((cancelled, shop.pending("1")), (1, String::new()), "in round {round}");
        let left: i64 = shop.cluster.value("postgres", "SELECT count(*) FROM awty.repetition");
        assert_eq!(left, 0);
    }
    let doubled: i64 = shop.cluster.value(
        "postgres",
        "SELECT count(*) FROM (SELECT FROM awty.future_job_history WHERE outcome = 'done' GROUP BY scheduled_at, first_check_at HAVING count(*) > 1) AS x",
    );
    assert_eq!(doubled, 0);
}

#[test]
fn repetitions_go_with_their_job_and_its_role() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    for key in ["1", "2", "3"] {
        repeat(&shop, key, "note", "every => '1 s'");
    }
    await_ends(&shop, "1", 1);
    shop.run("SELECT awty.unregister('note')");
    let left = "SELECT (SELECT count(*) FROM awty.repetition) + (SELECT count(*) FROM awty.future_job)";
    assert_eq!(shop.cluster.value::<i64>("postgres", left), 0);

    shop.cluster.execute("postgres", &[
        "CREATE ROLE gone LOGIN; GRANT USAGE ON SCHEMA awty TO gone",
        "CREATE FUNCTION public.gone(awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz'",
        "SELECT awty.register('gone', 'public.gone', run_as => 'gone')",
        "SELECT awty.repeat('gone', every => '1 hour')",
        "DROP OWNED BY gone",
            "DROP ROLE gone",
        // Registering a job makes awty inspect the database.
        "SELECT awty.register('other', 'public.gone')",
    ]);
    shop.await_true("the repetition to go", "SELECT NOT EXISTS (SELECT FROM awty.repetition)");
}

#[test]
fn a_repetition_without_a_check_gets_a_new_one() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    repeat(&shop, "1", "note", "every => '1 s'");
    await_ends(&shop, "1", 1);
    shop.run("SELECT awty.pause('note')");
    shop.await_workers_gone();
    shop.cluster.execute("postgres", &["DELETE FROM awty.future_job"]);
    let before = shop.ends("1").len();
    shop.run("SELECT awty.resume('note')");
    let ends = await_ends(&shop, "1", before + 2);
    assert!(is_in_order(&ends), "{ends:?}");
    expect_each_has_its_check(&shop);
}

#[test]
fn killed_workers_neither_lose_nor_double_an_occurrence() {
    let shop = Shop::open();
    shop.job("note", &format!("BEGIN PERFORM pg_sleep(0.1); {}", NOTE.trim_start_matches("BEGIN")), "");
    for key in 1..=5 {
        repeat(&shop, &key.to_string(), "note", "every => '1 s', catch_up => '1 hour'");
    }
    for round in 1..=4 {
        let sql = format!("SELECT count(*) >= {} FROM awty.future_job_history WHERE entity_key = '1'", 2 * round);
        shop.cluster.await_that("occurrences", PATIENCE, || {
            let mut client = shop.cluster.try_client("postgres", "postgres").map_err(|error| error.to_string())?;
            let row = client.query_one(&sql, &[]).map_err(|error| error.to_string())?;
            if row.get(0) { Ok(()) } else { Err("too few".into()) }
        });
        if round % 2 == 0 {
            shop.cluster.pids("awty worker").into_iter().for_each(|pid| shop.cluster.kill(Signal::TERM, pid));
            continue;
        }
        // If a query of this session fails, the server has crashed.
        let mut witness = shop.cluster.superuser("postgres");
        let workers = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'awty worker'";
        shop.cluster.await_that("a crash", PATIENCE, || {
            let Ok(rows) = witness.query(workers, &[]) else { return Ok(()) };
            rows.iter().for_each(|row| shop.cluster.kill(Signal::KILL, row.get(0)));
            Err("none".into())
        });
        shop.cluster.await_that("the server to be up", PATIENCE, || {
            shop.cluster.try_client("postgres", "postgres").map(drop).map_err(|error| error.to_string())
        });
    }
    let count = shop.ends("1").len();
    let ends = await_ends(&shop, "1", count + 2);
    assert!(is_in_order(&ends), "{ends:?}");
    for pair in ends.windows(2) {
        assert_eq!(pair[1].first - pair[0].first, seconds(1), "a slot was lost: {ends:?}");
    }
    for key in 1..=5 {
        let ends = shop.ends(&key.to_string());
        assert!(is_in_order(&ends), "{ends:?}");
    }
    expect_each_has_its_check(&shop);
    cancel(&shop, "1");
}
