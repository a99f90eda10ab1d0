#![allow(clippy::unwrap_used, clippy::expect_used)] // a panic is how a test fails

use std::io::Write as _;
use std::panic::AssertUnwindSafe;
use std::process::{Command, Stdio};

use awty_testkit::{Cluster, PATIENCE, Stop, home, poll, sweep};

fn plain() -> Cluster {
    Cluster::builder().without_preload().start()
}

fn is_alive(pid: &str) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|command_line| !command_line.is_empty())
}

#[test]
fn a_committed_row_survives_every_kind_of_end() {
    let mut cluster = plain();
    cluster.execute("postgres", &["CREATE TABLE t (i int)", "INSERT INTO t VALUES (1)"]);
    for how in [Stop::Smart, Stop::Fast, Stop::Immediate] {
        cluster.stop(how);
        assert!(!cluster.is_running());
        cluster.start();
    }
    cluster.kill_server();
    cluster.start();
    assert_eq!(cluster.value::<i64>("postgres", "SELECT count(*) FROM t"), 1);
}

#[test]
fn a_standby_follows_and_can_be_promoted() {
    let primary = plain();
    let mut standby = primary.standby();
    primary.execute("postgres", &["CREATE TABLE t (i int)"]);
    standby.await_sql("postgres", "the primary's table", "SELECT to_regclass('t') IS NOT NULL");
    assert!(standby.value::<bool>("postgres", "SELECT pg_is_in_recovery()"));
    standby.promote();
    assert!(!standby.value::<bool>("postgres", "SELECT pg_is_in_recovery()"));
}

#[test]
fn settings_change_by_reload_and_the_log_tells() {
    let cluster = Cluster::builder().without_preload().set("work_mem", "5MB").start();
    assert_eq!(cluster.psql("postgres", "SHOW work_mem").trim(), "5MB");
    let position = cluster.log_position();
    cluster.configure("work_mem = '6MB'");
    cluster.reload();
    cluster.await_log(&["work_mem", "changed to"], position);
    cluster.await_sql("postgres", "the new setting", "SELECT current_setting('work_mem') = '6MB'");
}

#[test]
fn nothing_remains_after_a_drop() {
    let cluster = plain();
    let (directory, pid) = (cluster.socket_directory().to_path_buf(), cluster.postmaster_pid());
    drop(cluster);
    assert!(!directory.exists());
    assert!(!is_alive(&pid.to_string()));
}

#[test]
fn a_copied_cluster_has_its_originals_identity_unless_told_otherwise() {
    let identity =
        |cluster: &Cluster| -> i64 { cluster.value("postgres", "SELECT system_identifier FROM pg_control_system()") };
    let (one, two) = (plain(), plain());
    let other = Cluster::builder().without_preload().own_identity().start();
    assert_eq!(identity(&one), identity(&two));
    assert_ne!(identity(&one), identity(&other));
}

#[test]
fn the_cluster_of_a_killed_process_is_swept() {
    let conf = std::env::temp_dir().join(format!("awty-sweep-{}.conf", std::process::id()));
    std::fs::write(&conf, "shared_preload_libraries = ''\n").unwrap();
    let mut runner = Command::new(env!("CARGO_BIN_EXE_with-cluster"));
    // `cat` runs until `runner.wait()` closes the pipe to its standard input.
    let mut runner = runner.arg("--conf").arg(&conf).args(["--", "cat"]).stdin(Stdio::piped()).spawn().unwrap();
    let directory = home().join(format!("awty-test-{}-1", runner.id()));
    let postmaster = poll("the other process's server", PATIENCE, || {
        let pid_file = std::fs::read_to_string(directory.join("data/postmaster.pid")).map_err(|e| e.to_string())?;
        if pid_file.contains("ready") { Ok(pid_file.lines().next().unwrap().to_owned()) } else { Err(pid_file) }
    });
    runner.kill().unwrap();
    runner.wait().unwrap();
    sweep();
    std::fs::remove_file(&conf).unwrap();
    assert!(!directory.exists());
    assert!(!is_alive(&postmaster.unwrap()));
}

#[test]
fn a_cluster_whose_log_has_a_failed_assertion_panics_when_it_is_dropped() {
    let add_to_log = |cluster: &Cluster| {
        let mut log = std::fs::OpenOptions::new().append(true).open(cluster.log_file()).unwrap();
        log.write_all(b"TRAP: failed Assert(\"this is only a test\")\n").unwrap();
    };
    let cluster = Cluster::builder().start();
    add_to_log(&cluster);
    let directory = cluster.socket_directory().to_path_buf();
    assert!(std::panic::catch_unwind(AssertUnwindSafe(|| drop(cluster))).is_err());
    assert!(!directory.exists());

    let cluster = Cluster::builder().start();
    add_to_log(&cluster);
    assert_eq!(cluster.new_faults().len(), 1);
    assert_eq!(cluster.new_faults(), Vec::<String>::new());
}

#[test]
fn a_cluster_whose_tables_are_corrupt_panics_when_it_is_dropped() {
    let unindexed = "UPDATE pg_index SET indisready = false, indisvalid = false WHERE indexrelid = 'awty.t_pkey'::regclass;
                     INSERT INTO awty.t VALUES (2);
                     UPDATE pg_index SET indisready = true, indisvalid = true WHERE indexrelid = 'awty.t_pkey'::regclass";
    let too_old = "UPDATE pg_class SET relfrozenxid = txid_current()::text::xid WHERE oid = 'awty.t'::regclass";
    for (what, broken, expected) in
        [("nothing", "SELECT", ""), ("index", unindexed, "lacks matching index tuple"), ("heap", too_old, "xmin")]
    {
        let cluster = plain();
        cluster.execute("postgres", &["CREATE DATABASE d", "CREATE DATABASE closed ALLOW_CONNECTIONS false"]);
        cluster.execute(
            "d",
            &["CREATE SCHEMA awty; CREATE TABLE awty.t (i int PRIMARY KEY); INSERT INTO awty.t VALUES (1)"],
        );
        cluster.execute("d", &[broken]);
        let traces = "SELECT count(*) FROM pg_namespace, pg_extension WHERE nspname ~ 'verify' OR extname = 'amcheck'";
        cluster.verify("postgres");
        assert_eq!(cluster.value::<i64>("d", traces), 0);
        let panic = std::panic::catch_unwind(AssertUnwindSafe(|| drop(cluster)));
        let message = panic.err().and_then(|panic| panic.downcast::<String>().ok()).unwrap_or_default();
        assert!(message.contains(expected) && message.is_empty() == expected.is_empty(), "{what}: {message}");
    }
}
