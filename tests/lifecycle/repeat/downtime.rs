use super::{await_ends, expect_each_has_its_check, is_in_order, plan, seconds, slots};
use awty_testkit::fixture::{End, NOTE, Shop};
use awty_testkit::{Cluster, Stop};
use chrono::{DateTime, Utc};

const POLICIES: [&str; 3] = ["run", "next_slot", "skip"];

fn all(shop: &Shop, more: &str) -> DateTime<Utc> {
    let mut plans = String::new();
    for policy in POLICIES {
        shop.job(policy, NOTE, &format!(", on_missed => '{policy}'"));
        for (key, catch_up) in [(policy.to_owned(), "0"), (format!("{policy} up"), "1 hour")] {
            plans += &plan(&key, policy, &format!("every => '1 s', starts => {{first}}, catch_up => '{catch_up}'"));
        }
    }
    shop.ahead(3, &(plans + more))
}

fn disabled() -> Shop {
    Shop::on(Cluster::builder().set("awty.enabled", "off").start())
}

fn expect_policies(shop: &Shop, first: DateTime<Utc>, able: DateTime<Utc>) {
    let late = |key: &str| await_ends(shop, key, 4);
    let run = late("run");
    assert!(run[0].first == first && run[0].why() == ("done", None) && run[0].started() > able, "{run:?}");
    assert!(run[1].first > able, "{run:?}");
    let up = late("run up");
    let expected: Vec<_> = (0..4).map(|n| first + seconds(n)).collect();
    assert_eq!(slots(&up[..4]), expected, "{up:?}");
    assert!(up.iter().all(|end| end.why() == ("done", None)), "{up:?}");
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

#[track_caller]
fn expect_policies_after(stop: Stop) {
    let mut shop = disabled();
    let first = all(&shop, "");
    shop.cluster.stop(stop);
    shop.cluster.configure("awty.enabled = on");
    shop.await_time(first, 4);
    let able = Utc::now();
    shop.cluster.start();
    expect_policies(&shop, first, able);
}

#[test]
fn what_passed_while_the_server_was_down_follows_on_missed_and_catch_up() {
    expect_policies_after(Stop::Fast);
}

#[test]
fn what_passed_while_the_server_was_crashed_follows_on_missed_and_catch_up() {
    expect_policies_after(Stop::Immediate);
}

#[test]
fn what_passed_while_the_job_was_paused_follows_on_missed_and_catch_up() {
    let shop = Shop::open();
    let first = all(&shop, "SELECT awty.pause(job) FROM awty.job");
    shop.await_time(first, 4);
    let able = Utc::now();
    shop.run("SELECT awty.resume(job) FROM awty.job");
    expect_policies(&shop, first, able);
}

#[test]
fn what_passed_while_awty_was_disabled_follows_on_missed_and_catch_up() {
    let shop = disabled();
    let first = all(&shop, "");
    shop.await_time(first, 4);
    let able = Utc::now();
    shop.cluster.configure("awty.enabled = on");
    shop.cluster.reload();
    expect_policies(&shop, first, able);
}

#[test]
fn repetitions_are_caught_up_on_at_the_rate() {
    let shop = Shop::on(Cluster::builder().set("awty.catch_up_rate", "10").start());
    shop.job("note", NOTE, "");
    let when = "every => '1 s', starts => {first}, ends => {first} + interval '8 s', catch_up => '1 hour'";
    let plans: String = ["1", "2", "3", "4", "5"].map(|key| plan(key, "note", when)).concat();
    let first = shop.ahead(2, &(plans + "SELECT awty.pause('note')"));
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
    // The rate allows 10 checks at once and 10 more each second, so 45 checks take 3.5 seconds.
    assert!(took > 3.0, "it took {took} s");
}

#[test]
fn catch_up_goes_back_so_far_and_no_further() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    let when = "every => '1 s', starts => {first}, catch_up => '3 s'";
    let first = shop.ahead(2, &(plan("1", "note", when) + "SELECT awty.pause('note')"));
    shop.await_time(first, 9);
    shop.run("SELECT awty.resume('note')");
    let ends = await_ends(&shop, "1", 4);
    assert_eq!(ends[0].first, first, "the one that was pending: {ends:?}");
    // awty schedules the second run between the starts of the first two runs, for the oldest planned time that is then
    // at most 3 s old.
    let next = ends[1].first;
    assert!(ends[0].started() - seconds(3) <= next && next <= ends[1].started() - seconds(2), "{ends:?}");
    assert!(is_in_order(&ends), "{ends:?}");
    expect_each_has_its_check(&shop);
}
