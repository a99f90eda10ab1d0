//! Tests holds and pauses that end at a given time.

use crate::dump::{dump, restore};
use awty_testkit::fixture::{GATE, NOTE, Shop, refusal};
use awty_testkit::{Cluster, Stop};
use chrono::{DateTime, Utc};

pub const NOTHING_HELD: &str = "SELECT NOT EXISTS (SELECT FROM awty_internal.hold) AND NOT EXISTS (SELECT FROM awty.future_job WHERE held)
    AND NOT EXISTS (SELECT FROM awty.job WHERE paused OR paused_until IS NOT NULL OR paused_note IS NOT NULL OR paused_by IS NOT NULL)";

fn skipping() -> Shop {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    shop.job("skips", NOTE, ", on_missed => 'skip'");
    shop.job("later", NOTE, ", on_missed => 'next_slot'");
    shop
}

fn quiet_until(shop: &Shop, make_quiet: &str) -> DateTime<Utc> {
    let end = shop.ahead(
        5,
        &format!(
            "SELECT awty.schedule('orders', job, job, at => {{first}} - interval '3 s') FROM unnest('{{note, skips, later}}'::text[]) AS job;
             SELECT awty.schedule('orders', 'ahead', 'skips', at => {{first}} + interval '1 s');
             {make_quiet}"
        ),
    );
    shop.await_true("the end", NOTHING_HELD);
    end
}

fn expect_policies(shop: &Shop, end: DateTime<Utc>) {
    shop.await_all_ended();
    let outcomes: String = shop.cluster.value(
        "postgres",
        "SELECT string_agg(entity_key || ':' || outcome, ' ' ORDER BY entity_key) FROM awty.future_job_history",
    );
    assert_eq!(outcomes, "ahead:done later:done note:done skips:missed");
    assert!(shop.end_of("note").started() >= end, "it ran in the quiet time");
    assert!(shop.end_of("later").slot > end, "its slot was missed");
}

#[test]
fn a_hold_ends_at_its_time() {
    let shop = skipping();
    let end = quiet_until(
        &shop,
        "SELECT awty.hold('orders', entity_key, job, note => 'invoice open', held_until => {first}) FROM awty.future_job",
    );
    expect_policies(&shop, end);
}

#[test]
fn a_pause_ends_at_its_time() {
    let shop = skipping();
    let end = quiet_until(&shop, "SELECT awty.pause(job, 'mail moves', {first}) FROM awty.job");
    let resumed: DateTime<Utc> = shop.cluster.value("postgres", "SELECT DISTINCT resumed_at FROM awty.job");
    assert_eq!(resumed, end);
    expect_policies(&shop, end);
}

#[test]
fn what_has_ended_while_the_server_was_down_has_ended() {
    let mut shop = skipping();
    shop.schedule("1", "note", "after => '1 s'");
    shop.schedule("2", "skips", "after => '1 h'");
    let end = shop.ahead(
        3,
        "SELECT awty.hold('orders', '1', held_until => {first}); SELECT awty.hold('orders', '2', held_until => {first});
         SELECT awty.pause('later', paused_until => {first})",
    );
    shop.cluster.stop(Stop::Fast);
    shop.await_time(end, 1);
    shop.cluster.start();
    shop.await_true("the end", NOTHING_HELD);
    shop.end_of("1").is_done();
    assert!(shop.cluster.value::<bool>("postgres", "SELECT next_check_at > now() FROM awty.future_job"));
    let resumed: DateTime<Utc> = shop.cluster.value("postgres", "SELECT resumed_at FROM awty.job WHERE job = 'later'");
    assert_eq!(resumed, end, "slots before the start, but after the planned end, count by the start");
}

#[test]
fn the_last_call_replaces_role_note_and_end() {
    let shop = skipping();
    shop.schedule("1", "note", "after => '1 h'");
    let hold = "SELECT concat_ws('|', held_by, note, held_until - date_trunc('hour', now())) FROM awty_internal.hold";
    let pause = "SELECT concat_ws('|', paused_by, paused_note, paused_until - date_trunc('hour', now())) FROM awty.job WHERE job = 'note'";
    shop.run(
        "SELECT awty.hold('orders', '1', note => 'a', held_until => date_trunc('hour', now()) + interval '2 h 0.4 s');
         SELECT awty.pause('note', 'a', date_trunc('hour', now()) + interval '2 h 0.4 s')",
    );
    for of in [hold, pause] {
        assert_eq!(shop.cluster.value::<String>("postgres", of), "shop|a|02:00:01", "rounded up to a slot");
    }
    shop.cluster.execute(
        "postgres",
        &["SELECT awty.hold('orders', '1', note => 'b'), awty.pause('note', 'b', date_trunc('hour', now()) + interval '1 day')"],
    );
    assert_eq!(shop.cluster.value::<String>("postgres", hold), "postgres|b");
    assert_eq!(shop.cluster.value::<String>("postgres", pause), "postgres|b|1 day");
    shop.run("SELECT awty.pause('note')");
    assert_eq!(shop.cluster.value::<String>("postgres", pause), "shop");
    shop.run("SELECT awty.resume('note'), awty.release('orders', '1')");
    assert!(shop.cluster.value::<bool>("postgres", NOTHING_HELD));
}

#[test]
fn what_is_refused_leaves_nothing_behind() {
    let shop = skipping();
    shop.schedule("1", "note", "after => '1 h'");
    let mut client = shop.client();
    for (call, argument) in [
        ("hold('orders', '1', held_until => now())", "held_until"),
        ("pause('note', paused_until => now())", "paused_until"),
    ] {
        let refused = refusal(&mut client, &format!("SELECT awty.{call}"));
        let said = (refused.sqlstate.as_str(), refused.message);
        assert_eq!(said, ("22023", format!("argument \"{argument}\" must be in the future")));
    }
    assert!(shop.cluster.value::<bool>("postgres", NOTHING_HELD));
    // A check that awty holds after crashes has no row in `awty_internal.hold`.
    shop.cluster.execute("postgres", &["UPDATE awty.future_job SET held = true"]);
    let until = "SELECT awty.hold('orders', '1', held_until => now() + interval '1 h')";
    let refused = refusal(&mut client, until);
    assert_eq!(
        (refused.sqlstate.as_str(), refused.hint.as_str()),
        ("55000", "SELECT awty.release('orders', '1', 'note');")
    );
    shop.cluster.execute(
        "postgres",
        &[
            "SELECT awty.hold('orders', '1', note => 'it crashes')",
            "INSERT INTO awty_internal.check_stat (check_id, crashes) SELECT id, 1000 FROM awty.future_job",
        ],
    );
    assert_eq!(refusal(&mut client, until).sqlstate, "55000");
    shop.run(
        "SELECT awty.release('orders', '1'); SELECT awty.hold('orders', '1', held_until => now() + interval '1 h')",
    );
}

#[test]
fn a_planned_quiet_is_healthy() {
    let shop = skipping();
    let slot = shop.ahead(
        3,
        "SELECT awty.schedule('orders', k, 'note', at => {first}) FROM unnest('{1, 2}'::text[]) AS k;
         SELECT awty.schedule('orders', '3', 'skips', at => {first});
         SELECT awty.pause('note', 'mail moves', now() + interval '1 h');
         SELECT awty.hold('orders', '3', note => 'away', held_until => now() + interval '1 h')",
    );
    shop.await_time(slot, 3);
    let well = "SELECT awty.healthy() AND why IS NULL AND NOT EXISTS (SELECT FROM awty.doctor()) FROM awty.status";
    assert!(shop.cluster.value::<bool>("postgres", well), "{}", shop.cluster.psql("postgres", "TABLE awty.status"));
    let shown = |key: &str| -> String {
        let sql = format!("SELECT detail FROM awty.explain('orders', '{key}') WHERE event = 'waiting'");
        shop.cluster.value("postgres", &sql)
    };
    let (paused, held) = (shown("1"), shown("3"));
    assert!(
        paused.contains(" by shop until 20") && paused.contains(": \"mail moves\"; SELECT awty.resume"),
        "{paused}"
    );
    assert!(held.contains(" by shop until 20") && held.contains(": \"away\"; SELECT awty.release"), "{held}");
    let status = "SELECT (paused, paused_note, paused_until > now()) = (true, 'mail moves', true) FROM awty.job_status WHERE job = 'note'";
    assert!(shop.cluster.value::<bool>("postgres", status));
    shop.run("SELECT awty.pause('note'), awty.hold('orders', '3')");
    let said = "SELECT why LIKE '%is paused%' AND (SELECT count(*) = 2 FROM awty.doctor()) FROM awty.status";
    assert!(shop.cluster.value::<bool>("postgres", said));
}

#[test]
fn an_end_waits_for_no_client() {
    let shop = skipping();
    let mut client = shop.client();
    let end = shop.ahead(
        4,
        "SELECT awty.schedule('orders', '1', 'skips', at => {first} + interval '1 s');
         SELECT awty.schedule('orders', '2', 'note', at => {first} + interval '1 h');
         SELECT awty.hold('orders', k, held_until => {first}) FROM unnest('{1, 2}'::text[]) AS k",
    );
    client.batch_execute("BEGIN; SELECT awty.hold('orders', '1', held_until => now() + interval '1 h')").unwrap();
    shop.await_true("the other end", "SELECT NOT held FROM awty.future_job WHERE entity_key = '2'");
    shop.await_time(end, 4);
    assert!(shop.cluster.value::<bool>("postgres", "SELECT held FROM awty.future_job WHERE entity_key = '1'"));
    client.batch_execute("ROLLBACK").unwrap();
    shop.await_true("the end", NOTHING_HELD);
    shop.end_of("1").is_done();
}

#[test]
fn a_check_stays_held_after_crashes() {
    let shop = skipping();
    shop.schedule("1", "note", "after => '1 h'");
    shop.run("SELECT awty.hold('orders', '1', held_until => now() + interval '3 s')");
    shop.cluster.execute(
        "postgres",
        &["INSERT INTO awty_internal.check_stat (check_id, crashes) SELECT id, 1000 FROM awty.future_job"],
    );
    shop.await_true("the end of the client's hold", "SELECT NOT EXISTS (SELECT FROM awty_internal.hold)");
    assert!(shop.cluster.value::<bool>("postgres", "SELECT held FROM awty.future_job"));
}

/// awty ends holds in batches of 100. If clients have locked all checks of the first batches, awty must still end the
/// other holds.
#[test]
fn many_locked_checks_hold_up_no_end() {
    let shop = skipping();
    let mut client = shop.client();
    shop.ahead(
        6,
        "SELECT awty.schedule_many('orders', ARRAY(SELECT n::text FROM generate_series(1, 2100) AS n), 'note', after => '1 h');
         SELECT count(awty.hold('orders', n::text, 'note', held_until => {first})) FROM generate_series(1, 2100) AS n",
    );
    let lock = "BEGIN; SELECT count(awty.hold('orders', n::text, 'note', held_until => now() + interval '1 h')) FROM generate_series(1, 2099) AS n";
    client.batch_execute(lock).unwrap();
    shop.await_true("the end", "SELECT NOT held FROM awty.future_job WHERE entity_key = '2100'");
    client.batch_execute("ROLLBACK").unwrap();
    shop.await_true("the ends", NOTHING_HELD);
}

#[test]
fn a_hold_of_a_running_occurrence_ends() {
    let shop = Shop::open();
    shop.job("gated", &format!("BEGIN {GATE} RETURN NULL; END"), "");
    let gate = shop.close_gate();
    shop.run("SELECT awty.repeat('gated', every => '1 s')");
    shop.await_at_gate();
    shop.run("SELECT awty.hold('job', 'gated', held_until => now() + interval '4 s')");
    drop(gate);
    shop.await_true("the next occurrence to be held", "SELECT held FROM awty.future_job");
    shop.await_true("the end", NOTHING_HELD);
    shop.await_true(
        "a run",
        "SELECT count(*) > 1 FROM awty.future_job_history WHERE started_at > now() - interval '10 s'",
    );
}

/// A hold on a running check of a repeating job also applies to the next check.
#[test]
fn a_hold_that_is_changed_during_the_run_keeps_the_change() {
    let shop = Shop::open();
    shop.job("gated", &format!("BEGIN {GATE} RETURN NULL; END"), "");
    let gate = shop.close_gate();
    let first = shop.ahead(2, "SELECT awty.repeat('gated', every => '1 hour', starts => {first})");
    shop.await_at_gate();
    let hold = |note: &str, hours: i32| {
        format!(
            "SELECT awty.hold('job', 'gated', note => '{note}', held_until => date_trunc('hour', now()) + interval '{hours} hours')"
        )
    };
    shop.run(&hold("a", 30));
    shop.run(&hold("b", 40));
    let mut client = shop.client();
    client.batch_execute(&format!("BEGIN; {}", hold("c", 50))).unwrap();
    drop(gate);
    shop.await_true("the end of the run", &format!("SELECT next_check_at > '{first}' FROM awty.future_job"));
    let held = "SELECT coalesce(string_agg(concat_ws(' ', note, held_until - date_trunc('hour', now())), ', '), '-')
        FROM awty_internal.hold AS h JOIN awty.future_job AS f ON f.id = h.check_id";
    assert!(shop.cluster.value::<String>("postgres", held).starts_with("b "), "the run saw the second hold");
    client.batch_execute("COMMIT").unwrap();
    // Pausing a job makes awty inspect the database.
    shop.run("SELECT awty.pause('gated'), awty.resume('gated')");
    shop.await_true("the third hold", "SELECT held AND note = 'c' AND held_until > now() + interval '48 hours' FROM awty_internal.hold AS h JOIN awty.future_job AS f ON f.id = h.check_id");
}

#[test]
fn travel_ends_what_it_passes() {
    let shop = Shop::on(Cluster::builder().set("awty.time_travel", "on").start());
    shop.job("note", NOTE, "");
    shop.job("skips", NOTE, ", on_missed => 'skip'");
    shop.cluster.create_user("postgres", "other");
    shop.cluster.create_job("other", "others", "BEGIN RETURN NULL; END", "");
    shop.cluster.run_as("other", "SELECT awty.pause('others', paused_until => now() + interval '1 h')");
    let mut client = shop.client();
    client
        .batch_execute(
            "BEGIN; SELECT awty.schedule('orders', '1', 'note', after => '1 h'); SELECT awty.schedule('orders', '2', 'skips', after => '1 h');
             SELECT awty.schedule('orders', '3', 'note', after => '1 h');
             SELECT awty.hold('orders', k, held_until => now() + interval '1 day') FROM unnest('{1, 2}'::text[]) AS k;
             SELECT awty.pause('note', paused_until => now() + interval '2 days')",
        )
        .unwrap();
    let mut ran = |ahead: &str| -> String {
        let sql = format!(
            "SELECT coalesce(string_agg(entity_key || ':' || outcome, ' ' ORDER BY entity_key), '-') FROM awty.travel('{ahead}')"
        );
        client.query_one(&sql, &[]).unwrap().get(0)
    };
    assert_eq!(ran("23 hours"), "-");
    assert_eq!(ran("3 days"), "1:done 3:done");
    let left = "SELECT string_agg(job || ':' || paused, ' ' ORDER BY job) FROM awty.job WHERE job <> 'skips'";
    assert_eq!(client.query_one(left, &[]).unwrap().get::<_, String>(0), "note:false");
    let missed = "SELECT outcome FROM awty.future_job_history WHERE entity_key = '2'";
    assert_eq!(client.query_one(missed, &[]).unwrap().get::<_, String>(0), "missed");
    client.batch_execute("ROLLBACK").unwrap();
    assert!(shop.cluster.value::<bool>("postgres", "SELECT paused FROM awty.job WHERE job = 'others'"));
}

#[test]
fn a_copy_ends_them_when_it_is_adopted() {
    let shop = skipping();
    shop.schedule("1", "note", "after => '1 h'");
    shop.schedule("2", "note", "after => '1 h'");
    let end = shop.ahead(
        3,
        "SELECT awty.hold('orders', '1', note => 'a', held_until => {first}), awty.pause('skips', 'b', {first});
         SELECT awty.hold('orders', '2', held_until => now() + interval '1 h')",
    );
    let script = dump(&shop.cluster, &[]);
    shop.cluster.execute("postgres", &["CREATE DATABASE copy"]);
    restore(&shop.cluster, "copy", &script);
    shop.await_time(end, 1);
    let state = "SELECT string_agg(concat_ws(':', check_id, note, held_until > now()), ' ' ORDER BY check_id)
        || (SELECT concat_ws(':', paused, paused_note) FROM awty.job WHERE job = 'skips') FROM awty_internal.hold";
    let before: String = shop.cluster.value("copy", state);
    assert!(before.ends_with("t:b") && before.contains(":a:f"), "{before}");
    let mut owner = shop.cluster.superuser("copy");
    owner.batch_execute("BEGIN; SELECT awty.adopt()").unwrap();
    let after = "SELECT (SELECT count(*) = 1 FROM awty_internal.hold WHERE held_until > now()) AND (SELECT count(*) = 1 FROM awty.future_job WHERE held)
        AND (SELECT bool_and(NOT paused) FROM awty.job)";
    assert!(owner.query_one(after, &[]).unwrap().get::<_, bool>(0), "the call itself ends them");
}

#[test]
fn on_a_standby_a_passed_end_shows_as_over() {
    let shop = skipping();
    shop.run("CREATE TABLE shop.orders (id int PRIMARY KEY, placed_at timestamptz, shipped boolean);
              SELECT awty.watch('shop.orders', rule => 'ship', since => 'placed_at', until => 'shipped', within => '1 h')");
    let standby = shop.cluster.standby();
    shop.schedule("1", "note", "after => '1 h'");
    shop.run("INSERT INTO shop.orders VALUES (9, now() - interval '2 hours')");
    shop.await_true("the alert", "SELECT EXISTS (SELECT FROM awty.late)");
    shop.cluster.configure("awty.enabled = off");
    shop.cluster.reload();
    shop.await_true("awty to be disabled", "SELECT NOT enabled FROM awty.status");
    let end = shop.ahead(
        2,
        "SELECT awty.hold('orders', '1', 'note', held_until => {first}), awty.pause('skips', 'b', {first}), awty.hold('orders', 9, 'ship', held_until => {first})",
    );
    shop.await_time(end, 1);
    let lsn: String = shop.cluster.value("postgres", "SELECT pg_current_wal_flush_lsn()::text");
    standby.await_sql("postgres", "the standby to follow", &format!("SELECT pg_last_wal_replay_lsn() >= '{lsn}'"));
    let over = "SELECT (SELECT NOT paused AND paused_until IS NULL AND paused_note IS NULL FROM awty.job_status WHERE job = 'skips')
        AND (SELECT held_by IS NULL AND held_until IS NULL FROM awty.late)
        AND NOT EXISTS (SELECT FROM awty.explain('orders', 9) WHERE detail LIKE '%held%')
        AND (SELECT count(*) FROM awty_internal.standing WHERE rank = 3) = 0";
    assert!(standby.value::<bool>("postgres", over), "{}", standby.psql("postgres", "TABLE awty.late"));
    assert!(
        standby.value::<bool>("postgres", "SELECT held FROM awty.future_job WHERE job = 'note'"),
        "the row is as on the primary"
    );
}

/// `awty.hold()` and `awty.release()` find a row's open alert by the row's entity, even if the row has no check.
#[test]
fn an_open_alert_is_a_candidate() {
    let shop = skipping();
    shop.run(
        "CREATE TABLE shop.orders (id int PRIMARY KEY, placed_at timestamptz, shipped boolean);
              SELECT awty.watch('shop.orders', since => 'placed_at', until => 'shipped', within => '1 h');
              INSERT INTO shop.orders VALUES (1, now() - interval '2 hours')",
    );
    shop.await_true(
        "the alert without a check",
        "SELECT EXISTS (SELECT FROM awty.late) AND NOT EXISTS (SELECT FROM awty.future_job)",
    );
    let mut client = shop.client();
    assert_eq!(refusal(&mut client, "SELECT awty.check_now('orders', '1')").sqlstate, "42704");
    shop.run("SELECT awty.hold('orders', '1'), awty.release('orders', '1')");
    shop.await_true("the telling", "SELECT NOT EXISTS (SELECT FROM awty.future_job)");
    shop.schedule("1", "note", "after => '1 h'");
    for call in ["hold", "release", "check_now"] {
        assert_eq!(refusal(&mut client, &format!("SELECT awty.{call}('orders', '1')")).sqlstate, "21000", "{call}");
    }
}

#[test]
fn a_dry_run_says_what_keeps_a_row_quiet() {
    let shop = skipping();
    shop.run(
        "CREATE TABLE shop.orders (id int PRIMARY KEY, placed_at timestamptz, status text);
         SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status = 'there'$$, within => '1 h', stopped => $$status = 'waiting'$$);
         INSERT INTO shop.orders VALUES (1, now(), 'waiting'), (2, now(), 'open'), (3, now(), 'open'); SELECT awty.hold('orders', 2)",
    );
    shop.schedule("4", "note", "after => '1 h'");
    shop.run("SELECT awty.hold('orders', '4', held_until => now() + interval '1 h')");
    let said = |key: &str, job: &str| {
        let sql = format!("SELECT FROM awty.dry_run('orders', '{key}', '{job}')");
        let output =
            shop.cluster.tool("psql").args(["-X", "-U", "shop", "-d", "postgres", "-c", &sql]).output().unwrap();
        String::from_utf8_lossy(&output.stderr).trim().to_owned()
    };
    assert_eq!(said("1", "orders"), "NOTICE:  the clock of \"orders\" \"1\" is stopped, so a run raises no alert");
    assert_eq!(said("2", "orders"), "NOTICE:  the alert of \"orders\" \"2\" is held, so a run does not tell it");
    assert_eq!(said("3", "orders"), "");
    assert_eq!(said("4", "note"), "NOTICE:  the check of job \"note\" for \"orders\" \"4\" is held");
}
