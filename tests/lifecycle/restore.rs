//! In a restored database, awty runs nothing before `awty.adopt()`. A crash or a promotion does not count as a restore.

use awty_testkit::fixture::{NOTE, Shop};
use awty_testkit::{Cluster, Stop};

const HELD: &str = "SELECT database_held AND why = 'this server was restored from a backup' AND fix LIKE 'SELECT awty.adopt();%' FROM awty.status";
const NOTES: &str = "SELECT count(*) FROM shop.note";
const MARKED: &str = "SELECT database = 0 FROM awty_internal.origin";

fn source() -> Shop {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    shop.run("SELECT awty.register('outside')");
    shop.cluster.configure("awty.enabled = off");
    shop.cluster.reload();
    shop.await_true("awty to be disabled", "SELECT NOT enabled FROM awty.status");
    shop.schedule("1", "note", "after => '0'");
    shop.schedule("2", "outside", "after => '0'");
    shop.await_true(
        "both checks to be due",
        "SELECT bool_and(next_check_at <= clock_timestamp()) FROM awty.future_job",
    );
    shop
}

fn copy(shop: &Shop) -> Cluster {
    let copy = shop.cluster.base_backup(&[]);
    copy.configure("awty.enabled = on");
    copy
}

fn claimed(copy: &Cluster) -> i64 {
    copy.client("postgres", "shop").query_one("SELECT count(*) FROM awty.claim('{outside}', 'w')", &[]).unwrap().get(0)
}

fn expect_held(copy: &Cluster, database: &str) {
    copy.await_sql(database, "the inspection", MARKED);
    assert!(copy.value::<bool>(database, HELD));
    assert_eq!(copy.value::<i64>(database, NOTES), 0);
    assert_eq!(copy.value::<i64>(database, "SELECT count(*) FROM awty.future_job"), 2);
}

#[test]
fn a_base_backup_is_held_in_each_database_until_it_is_adopted() {
    let shop = source();
    shop.cluster.execute("template1", &["CREATE DATABASE second TEMPLATE postgres"]);
    shop.cluster.execute("second", &["SELECT awty.adopt()"]);
    let mut copy = copy(&shop);
    copy.start();
    assert!(copy.log_since(0).contains("this server is restored from a backup"), "{}", copy.log_tail());
    for database in ["postgres", "second"] {
        expect_held(&copy, database);
    }
    assert_eq!(claimed(&copy), 0);
    copy.restart();
    expect_held(&copy, "postgres");
    copy.kill_server();
    copy.start();
    expect_held(&copy, "postgres");

    copy.execute("postgres", &["SELECT awty.adopt()"]);
    copy.await_sql(
        "postgres",
        "the check to be done",
        "SELECT count(*) = 1 FROM awty.future_job_history WHERE outcome = 'done'",
    );
    assert_eq!(claimed(&copy), 1);
    expect_held(&copy, "second");
    copy.restart();
    copy.client("postgres", "shop").batch_execute("SELECT awty.schedule('orders', '3', 'note', after => '0')").unwrap();
    copy.await_sql("postgres", "a new check to be done", "SELECT count(*) = 2 FROM awty.future_job_history");
    // The database itself stores that it was restored, so that pg_upgrade and a dump keep this state.
    copy.stop(Stop::Fast);
    std::fs::remove_file(copy.data().join("pg_stat/awty_restored")).unwrap();
    copy.start();
    copy.await_sql("postgres", "an inspection", "SELECT last_slot_run IS NOT NULL OR why IS NULL FROM awty.status");
    expect_held(&copy, "second");
}

#[test]
fn each_recovery_of_an_archive_is_held_anew() {
    let shop = source();
    let mut first = copy(&shop);
    first.start();
    first.execute("postgres", &["SELECT awty.adopt()"]);
    first.await_sql(
        "postgres",
        "the check to be done",
        "SELECT count(*) = 1 FROM awty.future_job_history WHERE outcome = 'done'",
    );
    first
        .client("postgres", "shop")
        .batch_execute("SELECT awty.schedule('orders', '3', 'note', after => '1 s')")
        .unwrap();
    first.configure("awty.enabled = off");
    first.reload();
    let mut second = first.base_backup(&[]);
    second.configure("restore_command = 'false'\nrecovery_target_action = 'promote'\nawty.enabled = on");
    std::fs::write(second.data().join("recovery.signal"), "").unwrap();
    second.start();
    second.await_sql("postgres", "the inspection", MARKED);
    second.await_sql("postgres", "the end of the recovery", "SELECT NOT pg_is_in_recovery()");
    assert!(second.value::<bool>("postgres", HELD));
    assert_eq!(claimed(&second), 0);
    second.execute("postgres", &["SELECT awty.adopt()"]);
    second.await_sql(
        "postgres",
        "all checks to be done",
        "SELECT count(*) = 2 FROM awty.future_job_history WHERE outcome = 'done'",
    );
}

#[test]
fn neither_auto_adopt_nor_a_promotion_is_held() {
    let shop = source();
    let mut copy = copy(&shop);
    copy.configure("awty.auto_adopt = on");
    copy.start();
    let done = "SELECT count(*) = 1 FROM awty.future_job_history WHERE outcome = 'done'";
    copy.await_sql("postgres", "the check to be done", done);
    copy.configure("awty.auto_adopt = off");
    copy.restart();
    copy.client("postgres", "shop").batch_execute("SELECT awty.schedule('orders', '3', 'note', after => '0')").unwrap();
    copy.await_sql("postgres", "a new check to be done", "SELECT count(*) = 2 FROM awty.future_job_history");
    let mut standby = copy.standby();
    copy.stop(Stop::Fast);
    standby.promote();
    standby
        .client("postgres", "shop")
        .batch_execute("SELECT awty.schedule('orders', '4', 'note', after => '0')")
        .unwrap();
    standby.await_sql(
        "postgres",
        "a check on the promoted standby",
        "SELECT count(*) = 3 FROM awty.future_job_history",
    );
}

#[test]
fn one_statement_warns_once() {
    let shop = source();
    let mut copy = copy(&shop);
    copy.start();
    copy.await_sql("postgres", "the inspection", MARKED);
    let script = "SELECT awty.schedule('orders', 'many' || n, 'note', after => '1 h') FROM generate_series(1, 3) AS n";
    let output = copy.tool("psql").args(["-X", "-U", "shop", "-c", script, "postgres"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.matches("WARNING").count(), 1, "{said}");
    assert!(said.contains("because this server was restored from a backup"), "{said}");
    let again = |copy: &Cluster| {
        let output =
            copy.tool("psql").args(["-X", "-U", "postgres", "-c", "SELECT awty.adopt()", "postgres"]).output().unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(again(&copy), "");
    assert!(again(&copy).contains("NOTICE:  database \"postgres\" already runs its own checks"), "nothing was adopted");
}

/// PostgreSQL and awty cannot distinguish a copy of the disks from the original disks.
#[test]
fn a_copy_of_the_disks_runs_unless_awty_is_off_before_its_start() {
    let mut shop = source();
    let mut copy = shop.cluster.base_backup(&[]);
    shop.cluster.stop(Stop::Fast);
    let (from, to) = (shop.cluster.data(), copy.data());
    let script = r#"cd "$2" && find . -mindepth 1 -maxdepth 1 ! -name '*.conf' -exec rm -rf {} + &&
                    cd "$1" && find . -mindepth 1 -maxdepth 1 ! -name '*.conf' -exec cp -a {} "$2" \;"#;
    let copied = std::process::Command::new("sh").args(["-c", script, "sh"]).args([&from, &to]).status().unwrap();
    assert!(copied.success() && !to.join("backup_label").exists());
    copy.start();
    copy.await_sql("postgres", "awty to be disabled", "SELECT NOT enabled AND NOT database_held FROM awty.status");
    assert_eq!(copy.value::<i64>("postgres", NOTES), 0);
    copy.configure("awty.enabled = on");
    copy.reload();
    copy.await_sql(
        "postgres",
        "the check to be done",
        "SELECT count(*) = 1 FROM awty.future_job_history WHERE outcome = 'done'",
    );
    assert_eq!(claimed(&copy), 1);
}
