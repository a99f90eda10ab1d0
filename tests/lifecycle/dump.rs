//! A restored or cloned copy of a database runs nothing before `awty.adopt()`.

use awty_testkit::Cluster;
use awty_testkit::fixture::{NOTE, Shop};
use awty_testkit::postgres::{Config, NoTls};
use std::io::Write;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

fn source() -> Shop {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    shop.schedule("done", "note", "after => '0'");
    shop.end_of("done");
    shop.cluster.configure("awty.enabled = off");
    shop.cluster.reload();
    shop.await_true("awty to be disabled", "SELECT NOT enabled FROM awty.status");
    shop.schedule("overdue", "note", "after => '0'");
    shop.schedule("future", "note", "after => '1 h'");
    shop.await_time(shop.slot_of("overdue"), 1);
    shop
}

fn enable(cluster: &Cluster) {
    cluster.configure("awty.enabled = on");
    cluster.reload();
}

pub fn dump(cluster: &Cluster, options: &[&str]) -> Vec<u8> {
    let output = cluster.tool("pg_dump").args(options).args(["-d", "postgres"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

pub fn restore(cluster: &Cluster, database: &str, script: &[u8]) {
    let mut psql = cluster.tool("psql");
    psql.args(["-Xq", "-v", "ON_ERROR_STOP=1", "-d", database]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = psql.stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(script).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn warnings(cluster: &Cluster, database: &str, call: &str) -> Vec<String> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let mut config = Config::new();
    config.host_path(cluster.socket_directory()).port(Cluster::PORT).dbname(database).user("shop");
    config.notice_callback(move |notice| {
        sink.lock().unwrap().push(format!("{}: {} {:?}", notice.severity(), notice.message(), notice.hint()));
    });
    config.connect(NoTls).unwrap().batch_execute(call).unwrap();
    seen.lock().unwrap().drain(..).collect()
}

fn expect_held_until_adopted(cluster: &Cluster, database: &str) {
    let status = "SELECT database_held AND concat_ws('; ', why, fix) LIKE '%awty.adopt()%' FROM awty.status";
    assert!(cluster.value::<bool>(database, status), "{}", cluster.psql(database, "SELECT * FROM awty.status"));
    let warned = warnings(cluster, database, "SELECT awty.schedule('orders', 'new', 'note', after => '0')");
    assert!(warned.iter().any(|text| text.contains("WARNING") && text.contains("awty.adopt()")), "{warned:?}");
    // Pausing a job makes awty inspect the database.
    cluster.client(database, "shop").batch_execute("SELECT awty.pause('note'), awty.resume('note')").unwrap();
    cluster.await_log(&["awty maintainer", "WARNING", database], 0);
    let untouched =
        "SELECT (SELECT count(*) FROM awty.future_job) = 3 AND (SELECT count(*) FROM awty.future_job_history) = 1
                     AND NOT EXISTS (SELECT FROM shop.note WHERE entity_key <> 'done')";
    assert!(cluster.value::<bool>(database, untouched), "something ran in a copy that nobody has adopted");

    let old: i64 = cluster.value(database, "SELECT max(id) FROM awty.future_job WHERE entity_key <> 'new'");
    let new: i64 = cluster.value(database, "SELECT id FROM awty.future_job WHERE entity_key = 'new'");
    assert!(new > old, "the sequence of ids began again: {new} after {old}");

    cluster.execute(database, &["SELECT awty.adopt()"]);
    cluster.await_sql(
        database,
        "the adopted checks to be done",
        "SELECT count(*) = 2 FROM awty.future_job_history WHERE entity_key IN ('overdue', 'new') AND outcome = 'done'",
    );
    assert!(cluster.value::<bool>(database, "SELECT NOT database_held AND why IS NULL FROM awty.status"));
    assert!(warnings(cluster, database, "SELECT awty.schedule('orders', 'later', 'note', after => '1 h')").is_empty());
}

#[test]
fn a_restore_into_the_same_cluster_is_held_until_it_is_adopted() {
    let shop = source();
    let script = dump(&shop.cluster, &[]);
    shop.cluster.execute("postgres", &["CREATE DATABASE restored"]);
    enable(&shop.cluster);
    restore(&shop.cluster, "restored", &script);
    expect_held_until_adopted(&shop.cluster, "restored");
    assert_eq!(shop.end_of("overdue").outcome, "done");
    assert!(shop.cluster.value::<bool>("postgres", "SELECT NOT database_held FROM awty.status"));
}

#[test]
fn a_restore_into_another_cluster_is_held_until_it_is_adopted() {
    let shop = source();
    let script = dump(&shop.cluster, &[]);
    let other = Cluster::builder().own_identity().start();
    other.execute("postgres", &["CREATE ROLE shop LOGIN"]);
    restore(&other, "postgres", &script);
    expect_held_until_adopted(&other, "postgres");
}

#[test]
fn a_restore_is_held_before_it_is_complete() {
    let shop = source();
    let script = dump(&shop.cluster, &["--exclude-table-data=awty_internal.origin"]);
    let other = Cluster::builder().own_identity().start();
    other.execute("postgres", &["CREATE ROLE shop LOGIN"]);
    restore(&other, "postgres", &script);
    expect_held_until_adopted(&other, "postgres");
}

#[test]
fn a_clone_is_held_until_it_is_adopted() {
    let shop = source();
    shop.cluster.execute("postgres", &["CREATE DATABASE original TEMPLATE postgres"]);
    enable(&shop.cluster);
    expect_held_until_adopted(&shop.cluster, "original");
}

#[test]
fn a_restore_from_an_archive_is_complete() {
    let shop = source();
    let archive = shop.cluster.data().parent().unwrap().join("archive");
    std::fs::write(&archive, dump(&shop.cluster, &["-Fc"])).unwrap();
    for (database, option) in [("parallel", "--jobs=4"), ("at_once", "--single-transaction")] {
        shop.cluster.execute("postgres", &[&format!("CREATE DATABASE {database}")]);
        let mut restore = shop.cluster.tool("pg_restore");
        let output = restore.args(["--exit-on-error", option, "-d", database]).arg(&archive).output().unwrap();
        assert!(output.status.success(), "{option}: {}", String::from_utf8_lossy(&output.stderr));
        let rows = "SELECT (SELECT count(*) FROM awty.future_job), (SELECT count(*) FROM awty.future_job_history)";
        assert_eq!(shop.cluster.psql(database, rows).trim(), "2|1", "{option}");
        assert!(shop.cluster.value::<bool>(database, "SELECT database_held FROM awty.status"), "{option}");
    }
}

/// Logical replication does not copy sequences, so `awty.adopt()` must ensure that new rows get unused ids.
#[test]
fn an_adopted_copy_gives_no_number_again() {
    let shop = source();
    let other = Cluster::builder().own_identity().start();
    other.execute("postgres", &["CREATE USER shop"]);
    restore(&other, "postgres", &dump(&shop.cluster, &[]));
    other.execute("postgres", &["SELECT setval('awty.future_job_id_seq', 1, false)", "SELECT awty.adopt()"]);
    let mut client = other.client("postgres", "shop");
    for key in ["new", "newer"] {
        client.execute("SELECT awty.schedule('orders', $1, 'note', after => '1 h')", &[&key]).unwrap();
    }
    let fresh = "SELECT min(id) FILTER (WHERE entity_key ~ 'new') > max(id) FILTER (WHERE entity_key !~ 'new') FROM awty.future_job";
    assert!(other.value::<bool>("postgres", fresh));
}

#[test]
fn with_auto_adopt_a_restore_runs_at_once() {
    let shop = source();
    let script = dump(&shop.cluster, &[]);
    let other = Cluster::builder().own_identity().set("awty.auto_adopt", "on").start();
    other.execute("postgres", &["CREATE ROLE shop LOGIN"]);
    restore(&other, "postgres", &script);
    assert!(warnings(&other, "postgres", "SELECT awty.schedule('orders', 'new', 'note', after => '0')").is_empty());
    other.client("postgres", "shop").batch_execute("SELECT awty.pause('note'), awty.resume('note')").unwrap();
    other.await_sql(
        "postgres",
        "the checks to be done",
        "SELECT count(*) = 2 FROM awty.future_job_history WHERE entity_key IN ('overdue', 'new') AND outcome = 'done'",
    );
}
