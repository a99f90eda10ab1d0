use super::{await_ends, expect_each_has_its_check, is_in_order, repeat};
use awty_testkit::Stop;
use awty_testkit::fixture::{NOTE, Shop};
use std::io::Write;
use std::process::Stdio;

const PICTURE: &str = "SELECT string_agg(r::text, E'\\n' ORDER BY entity_key) FROM awty.repetition AS r";

#[test]
fn a_restored_repetition_goes_on_once_it_is_adopted() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    repeat(&shop, "1", "note", "every => '1 s'");
    repeat(
        &shop,
        "2",
        "note",
        "cron => '30 3 1 1 *', zone => 'Europe/Berlin', jitter => '10 min', args => '{\"a\": 1}'",
    );
    repeat(&shop, "3", "note", "every => '1 hour', starts => now() + interval '1 hour'");
    shop.schedule("3", "note", "after => '30 min'");
    await_ends(&shop, "1", 1);
    shop.run("SELECT awty.pause('note')");
    shop.await_workers_gone();
    let output = shop.cluster.tool("pg_dump").args(["-d", "postgres"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    shop.cluster.execute("postgres", &["CREATE DATABASE restored"]);
    let mut psql = shop.cluster.tool("psql");
    psql.args(["-Xq", "-v", "ON_ERROR_STOP=1", "-d", "restored"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = psql.stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&output.stdout).unwrap();
    let restored = child.wait_with_output().unwrap();
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));

    let [here, there] = ["postgres", "restored"].map(|database| shop.cluster.value::<String>(database, PICTURE));
    assert_eq!(here, there);
    let used = "SELECT count(*) FROM awty_internal.check_stat WHERE used_before IS NOT NULL";
    assert_eq!(shop.cluster.value::<i64>("restored", used), 1);
    shop.cluster.execute("restored", &["SELECT awty.adopt()", "SELECT awty.resume('note')"]);
    let more = "SELECT count(*) >= 3 FROM awty.future_job_history WHERE entity_key = '1'";
    shop.cluster.await_sql("restored", "the repetition to go on", more);
    let alone = "SELECT count(*) FROM awty.repetition WHERE next_check_at IS NULL";
    assert_eq!(shop.cluster.value::<i64>("restored", alone), 0);
}

#[test]
fn a_repetition_goes_on_after_a_promotion() {
    let mut shop = Shop::open();
    shop.job("note", NOTE, "");
    let standby = shop.cluster.standby();
    repeat(&shop, "1", "note", "every => '1 s'");
    let before = await_ends(&shop, "1", 2);
    let lsn: String = shop.cluster.value("postgres", "SELECT pg_current_wal_flush_lsn()::text");
    standby.await_sql("postgres", "the standby to follow", &format!("SELECT pg_last_wal_replay_lsn() >= '{lsn}'"));
    let refused = standby.client("postgres", "shop").batch_execute("SELECT awty.repeat('note', every => '1 hour')");
    assert_eq!(refused.unwrap_err().code().map(|code| code.code().to_owned()), Some("25006".into()));
    shop.cluster.stop(Stop::Immediate);
    let old = std::mem::replace(&mut shop.cluster, standby);
    shop.cluster.promote();
    let ends = await_ends(&shop, "1", before.len() + 3);
    assert!(is_in_order(&ends), "{ends:?}");
    expect_each_has_its_check(&shop);
    drop(old);
}

#[test]
fn a_prepared_repetition_begins_when_it_is_committed() {
    let shop = Shop::on(awty_testkit::Cluster::builder().set("max_prepared_transactions", "2").start());
    shop.job("note", NOTE, "");
    shop.run("BEGIN; SELECT awty.repeat('note', every => '1 s', entity_name => 'orders', entity_key => '1'); PREPARE TRANSACTION 'p'");
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty.repetition"), 0);
    shop.run("COMMIT PREPARED 'p'");
    await_ends(&shop, "1", 2);
    shop.run("BEGIN; SELECT awty.cancel('orders', '1'); PREPARE TRANSACTION 'p'");
    shop.run("ROLLBACK PREPARED 'p'");
    let count = shop.ends("1").len();
    await_ends(&shop, "1", count + 2);
    expect_each_has_its_check(&shop);
}
