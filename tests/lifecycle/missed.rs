use awty_testkit::fixture::{NOTE, Shop};
use awty_testkit::{Cluster, Stop};
use chrono::{DateTime, Utc};

fn jobs(shop: &Shop) {
    for policy in ["run", "next_slot", "skip"] {
        shop.job(policy, NOTE, &format!(", on_missed => '{policy}'"));
    }
}

fn schedule(shop: &Shop) -> DateTime<Utc> {
    for policy in ["run", "next_slot", "skip"] {
        shop.schedule(policy, policy, "at => now() + interval '2 s'");
    }
    shop.slot_of("skip")
}

fn expect_policies(shop: &Shop, able: DateTime<Utc>) {
    let end = shop.end_of("run");
    assert_eq!((end.why(), end.attempts), (("done", None), 1), "{end:?}");
    assert!(end.slot == end.first && end.started() > able, "late, for its own slot: {end:?}");

    let end = shop.end_of("next_slot");
    assert_eq!((end.why(), end.attempts), (("done", None), 1), "{end:?}");
    assert!(end.slot > able && end.first < able, "for a slot after {able}: {end:?}");

    let end = shop.end_of("skip");
    assert_eq!((end.why(), end.attempts, end.started), (("missed", None), 0, None), "{end:?}");

    assert_eq!(["run", "next_slot", "skip"].map(|policy| shop.notes(policy)), [1, 1, 0]);
}

#[test]
fn what_fell_due_while_the_server_was_down_follows_on_missed() {
    let mut shop = Shop::on(Cluster::builder().set("awty.enabled", "off").start());
    jobs(&shop);
    let slot = schedule(&shop);
    for key in 1..=5 {
        shop.schedule(&key.to_string(), "run", "at => now() + interval '2 s'");
    }
    shop.cluster.stop(Stop::Fast);
    shop.cluster.configure("awty.enabled = on");
    shop.await_time(slot, 3);
    let able = Utc::now();
    shop.cluster.start();
    expect_policies(&shop, able);
    shop.await_all_ended();
    for key in 1..=5 {
        assert_eq!((shop.end_of(&key.to_string()).attempts, shop.notes(&key.to_string())), (1, 1));
    }
}

#[test]
fn what_fell_due_while_awty_was_disabled_follows_on_missed() {
    let shop = Shop::on(Cluster::builder().set("awty.enabled", "off").start());
    jobs(&shop);
    let slot = schedule(&shop);
    shop.await_time(slot, 3);
    assert_eq!(shop.cluster.psql("postgres", "SELECT count(*) FROM awty.future_job").trim(), "3");
    let able = Utc::now();
    shop.cluster.configure("awty.enabled = on");
    shop.cluster.reload();
    expect_policies(&shop, able);
}

#[test]
fn what_fell_due_while_a_job_was_paused_follows_on_missed() {
    let shop = Shop::open();
    jobs(&shop);
    shop.run("SELECT awty.pause(job) FROM awty.job");
    let slot = schedule(&shop);
    shop.await_time(slot, 3);
    assert_eq!(shop.cluster.psql("postgres", "SELECT count(*) FROM awty.future_job").trim(), "3");
    let able = Utc::now();
    shop.run("SELECT awty.resume(job) FROM awty.job");
    expect_policies(&shop, able);
}

#[test]
fn a_pause_ends_a_batch_that_is_going_on() {
    let shop = Shop::open();
    let slow =
        "BEGIN PERFORM pg_sleep(0.3); INSERT INTO shop.note (entity_key) VALUES (j.entity_key); RETURN NULL; END";
    shop.job("slow", slow, "");
    shop.run("SELECT awty.schedule('orders', n::text, 'slow', after => '0') FROM generate_series(1, 20) AS n");
    shop.await_true("the first to have run", "SELECT count(*) > 0 FROM shop.note");
    let before: i64 = {
        shop.run("SELECT awty.pause('slow')");
        shop.cluster.value("postgres", "SELECT count(*) FROM shop.note")
    };
    let workers_left = "SELECT workers = 0 FROM awty.status";
    shop.await_true("the workers to leave", workers_left);
    let after: i64 = shop.cluster.value("postgres", "SELECT count(*) FROM shop.note");
    assert!(after <= before + 2, "{before} had run before the pause, {after} at its end");
    shop.run("SELECT awty.resume('slow')");
    shop.await_all_ended();
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM shop.note"), 20);
}

#[test]
fn a_backlog_is_caught_up_at_its_rate_beside_new_slots() {
    let shop = Shop::on(Cluster::builder().set("awty.catch_up_rate", "5").start());
    shop.job("old", NOTE, "");
    shop.job("new", NOTE, "");
    shop.run("SELECT awty.pause('old')");
    shop.run("SELECT awty.schedule('orders', 'old' || n, 'old', after => '0') FROM generate_series(1, 25) AS n");
    shop.await_time(shop.slot_of("old1"), 2);
    shop.run(
        "SELECT awty.resume('old'); SELECT awty.schedule('orders', 'another old', 'old', after => '1 s');
         SELECT awty.schedule('orders', 'new', 'new', after => '1 s')",
    );
    shop.await_all_ended();
    let last: DateTime<Utc> = shop
        .cluster
        .value("postgres", "SELECT max(started_at) FROM awty.future_job_history WHERE entity_key LIKE 'old%'");
    for end in [shop.end_of("new"), shop.end_of("another old")] {
        assert!(end.started() < last, "the backlog was over at {last}, before {end:?}");
    }
    let took: f64 = shop.cluster.value(
        "postgres",
        "SELECT extract(epoch FROM max(started_at) - min(started_at))::float8
         FROM awty.future_job_history WHERE entity_key LIKE 'old%'",
    );
    // The rate allows 5 checks at once and 5 more each second, so 25 checks take 4 seconds.
    assert!(took >= 3.5, "the backlog took {took} s");
}

#[test]
fn a_backlog_of_one_job_does_not_starve_another() {
    let shop = Shop::open();
    let slow = "BEGIN PERFORM pg_sleep(0.02); RETURN NULL; END";
    shop.job("many", slow, "");
    shop.job("one", NOTE, "");
    shop.run(
        "SELECT awty.schedule('orders', 'many' || n, 'many', after => '0') FROM generate_series(1, 300) AS n;
         SELECT awty.schedule('orders', 'one', 'one', after => '0')",
    );
    let end = shop.end_of("one");
    shop.await_all_ended();
    let before: i64 = shop.cluster.value(
        "postgres",
        &format!(
            "SELECT count(*) FROM awty.future_job_history WHERE job = 'many' AND started_at < '{}'",
            end.started()
        ),
    );
    assert!(before < 150, "{before} of 300 ran before the other job's only check");
}
