//! What happens to repetitions while nothing can run.

use super::{await_ends, expect_each_has_its_check, is_in_order, repeat, seconds, slots};
use crate::shop::{End, NOTE, Shop};
use awty_testkit::{Cluster, Stop};
use chrono::{DateTime, Utc};

const POLICIES: [&str; 3] = ["run", "next_slot", "skip"];

/// A repetition for each policy, with and without `catch_up`. The first slot of each lies ahead by two seconds or more.
fn all(shop: &Shop) -> DateTime<Utc> {
    let soon = shop.cluster.value::<DateTime<Utc>>("postgres", "SELECT date_trunc('second', now()) + interval '3 s'");
    for policy in POLICIES {
        shop.job(policy, NOTE, &format!(", on_missed => '{policy}'"));
        for (key, catch_up) in [(policy.to_owned(), "0"), (format!("{policy} up"), "1 hour")] {
            repeat(shop, &key, policy, &format!("every => '1 s', starts => '{soon}', catch_up => '{catch_up}'"));
        }
    }
    soon
}

/// Each went on as its policy and its `catch_up` say; nothing could run before `able`.
fn expect_policies(shop: &Shop, first: DateTime<Utc>, able: DateTime<Utc>) {
    let late = |key: &str| await_ends(shop, key, 4);
    // Late, once; the slots between are left out.
    let run = late("run");
    assert!(run[0].first == first && run[0].why() == ("done", None) && run[0].started() > able, "{run:?}");
    assert!(run[1].first > able, "{run:?}");
    // All of them, in order.
    let up = late("run up");
    let expected: Vec<_> = (0..4).map(|n| first + seconds(n)).collect();
    assert_eq!(slots(&up[..4]), expected, "{up:?}");
    assert!(up.iter().all(|end| end.why() == ("done", None)), "{up:?}");
    // `skip` and `next_slot` win over `catch_up`.
    for key in ["skip", "skip up"] {
        let skip = late(key);
        assert_eq!((skip[0].first, skip[0].why(), skip[0].started), (first, ("missed", None), None), "{skip:?}");
        assert!(skip[1].first > able && skip[1].why() == ("done", None), "{skip:?}");
    }
    for key in ["next_slot", "next_slot up"] {
        let next = late(key);
        assert!(next[0].first > able && next[0].why() == ("done", None), "no row for what was missed: {next:?}");
    }
    for key in POLICIES.into_iter().flat_map(|policy| [policy.to_owned(), format!("{policy} up")]) {
        let ends: Vec<End> = shop.ends(&key);
        assert!(is_in_order(&ends), "{ends:?}");
    }
    expect_each_has_its_check(shop);
}

/// P3, P11: downtime × `on_missed` × `catch_up`.
#[test]
fn what_passed_while_the_server_was_down_follows_on_missed_and_catch_up() {
    let mut shop = Shop::open();
    let first = all(&shop);
    shop.cluster.stop(Stop::Fast);
    shop.await_time(first, 4);
    let able = Utc::now();
    shop.cluster.start();
    expect_policies(&shop, first, able);
}

/// P3, P11: the same after a crash.
#[test]
fn what_passed_while_the_server_was_crashed_follows_on_missed_and_catch_up() {
    let mut shop = Shop::open();
    let first = all(&shop);
    shop.cluster.stop(Stop::Immediate);
    shop.await_time(first, 4);
    let able = Utc::now();
    shop.cluster.start();
    expect_policies(&shop, first, able);
}

/// P3, P11: the same after a pause of the jobs.
#[test]
fn what_passed_while_the_job_was_paused_follows_on_missed_and_catch_up() {
    let shop = Shop::open();
    let first = all(&shop);
    shop.run("SELECT awty.pause(name) FROM awty.job");
    shop.await_time(first, 4);
    let able = Utc::now();
    shop.run("SELECT awty.resume(name) FROM awty.job");
    expect_policies(&shop, first, able);
}

/// P3, P11: the same while awty is disabled.
#[test]
fn what_passed_while_awty_was_disabled_follows_on_missed_and_catch_up() {
    let shop = Shop::open();
    let switch = |to: &str| {
        shop.cluster.configure(&format!("awty.enabled = {to}"));
        shop.cluster.reload();
        shop.await_true("the setting", &format!("SELECT current_setting('awty.enabled') = '{to}'"));
    };
    switch("off");
    let first = all(&shop);
    shop.await_time(first, 4);
    let able = Utc::now();
    switch("on");
    expect_policies(&shop, first, able);
}

/// P7, P11: all slots within `catch_up` run, in order, at `awty.catch_up_rate`.
#[test]
fn repetitions_are_caught_up_on_at_the_rate() {
    let shop = Shop::on(Cluster::builder().set("awty.catch_up_rate", "10").start());
    shop.job("note", NOTE, "");
    let first = shop.cluster.value::<DateTime<Utc>>("postgres", "SELECT date_trunc('second', now()) + interval '2 s'");
    let plan = format!("every => '1 s', starts => '{first}', ends => '{}', catch_up => '1 hour'", first + seconds(8));
    for key in ["1", "2", "3", "4", "5"] {
        repeat(&shop, key, "note", &plan);
    }
    shop.run("SELECT awty.pause('note')");
    shop.await_time(first, 9);
    shop.run("SELECT awty.resume('note')");
    shop.await_true("their end", "SELECT NOT EXISTS (SELECT FROM awty.repetition)");
    let expected: Vec<_> = (0..9).map(|n| first + seconds(n)).collect();
    for key in ["1", "2", "3", "4", "5"] {
        let ends = shop.ends(key);
        assert_eq!(slots(&ends), expected, "{ends:?}");
    }
    let took: f64 = shop.cluster.value(
        "postgres",
        "SELECT extract(epoch FROM max(started_at) - min(started_at))::float8 FROM awty.future_job_history",
    );
    // 45 at 10 a second, of which a second's worth may come at once.
    assert!(took > 3.0, "it took {took} s");
}

/// P11: what is older than `catch_up` leaves no row.
#[test]
fn catch_up_goes_back_so_far_and_no_further() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    let first = shop.cluster.value::<DateTime<Utc>>("postgres", "SELECT date_trunc('second', now()) + interval '2 s'");
    repeat(&shop, "1", "note", &format!("every => '1 s', starts => '{first}', catch_up => '3 s'"));
    shop.run("SELECT awty.pause('note')");
    shop.await_time(first, 9);
    shop.run("SELECT awty.resume('note')");
    let ends = await_ends(&shop, "1", 4);
    assert_eq!(ends[0].first, first, "the one that was pending: {ends:?}");
    let back = ends[0].started() - ends[1].first;
    assert!(seconds(1) < back && back <= seconds(3), "{ends:?}");
    assert!(is_in_order(&ends), "{ends:?}");
    expect_each_has_its_check(&shop);
}
