mod asked_now;
mod calendars;
mod changes;
mod clients;
mod copies;
mod downtime;
mod ends;
mod releases;
mod runs;

use awty_testkit::fixture::{End, GATE, Shop};
use awty_testkit::postgres::Client;
use chrono::{DateTime, TimeDelta, Utc};

#[track_caller]
fn repeat(shop: &Shop, key: &str, job: &str, when: &str) {
    shop.run(&plan(key, job, when));
}

#[track_caller]
fn repeat_at_gate(shop: &Shop) -> Client {
    let body = format!("BEGIN {GATE} INSERT INTO shop.note (entity_key) VALUES (j.entity_key); RETURN NULL; END");
    shop.job("gated", &body, "");
    let gate = shop.close_gate();
    repeat(shop, "1", "gated", "every => '1 s'");
    shop.await_at_gate();
    gate
}

fn plan(key: &str, job: &str, when: &str) -> String {
    format!("SELECT awty.repeat('{job}', {when}, entity_name => 'orders', entity_key => '{key}');")
}

#[track_caller]
fn await_ends(shop: &Shop, key: &str, count: usize) -> Vec<End> {
    let sql = format!("SELECT count(*) >= {count} FROM awty.future_job_history WHERE entity_key = '{key}'");
    shop.await_true(&format!("{count} occurrences of {key}"), &sql);
    shop.ends(key)
}

fn cancel(shop: &Shop, key: &str) {
    shop.run(&format!("SELECT awty.cancel('orders', '{key}')"));
}

fn seconds(count: i64) -> TimeDelta {
    TimeDelta::seconds(count)
}

fn slots(ends: &[End]) -> Vec<DateTime<Utc>> {
    ends.iter().map(|end| end.first).collect()
}

fn is_in_order(ends: &[End]) -> bool {
    slots(ends).windows(2).all(|pair| pair[0] < pair[1])
}

#[track_caller]
fn expect_each_has_its_check(shop: &Shop) {
    let alone = "SELECT coalesce(string_agg(entity_key, ', '), '') FROM awty.repetition WHERE next_check_at IS NULL";
    assert_eq!(shop.cluster.value::<String>("postgres", alone), "");
}
