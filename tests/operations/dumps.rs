use crate::clients::{self, NOTE_ID};
use awty_testkit::Cluster;
use awty_testkit::fixture::Shop;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Fills the database with more data than fits into a pipe, so that the test can stop pg_dump midway.
fn at_work() -> Shop {
    let shop = Shop::open();
    shop.job("note", NOTE_ID, "");
    shop.job("later", NOTE_ID, "");
    shop.run(
        "SELECT awty.pause('later');
         SELECT awty.schedule('later', i::text, 'later', after => '0') FROM generate_series(1, 200) AS i;
         CREATE TABLE shop.filler AS SELECT i, repeat('x', 1000) FROM generate_series(1, 5000) AS i",
    );
    shop
}

#[track_caller]
fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn file(shop: &Shop, name: &str) -> PathBuf {
    shop.cluster.socket_directory().join(name)
}

fn dump_in_parallel(shop: &Shop) {
    let directory = file(shop, "directory");
    run(shop.cluster.tool("pg_dump").args(["-Fd", "-j", "4", "-d", "postgres", "-f"]).arg(&directory));
    shop.cluster.execute("postgres", &["CREATE DATABASE restored"]);
    run(shop.cluster.tool("pg_restore").args(["--exit-on-error", "-j", "4", "-d", "restored"]).arg(&directory));
    expect_held_then_run_once(&shop.cluster, "restored", &["later"]);
}

#[track_caller]
fn expect_held_then_run_once(cluster: &Cluster, database: &str, paused: &[&str]) {
    let snapshot = "SELECT count(*), (SELECT count(*) FROM shop.note), (SELECT database_held FROM awty.status) FROM awty.future_job";
    let before = cluster.psql(database, snapshot);
    assert!(before.trim().ends_with("|t"), "it is not held: {before}");
    let position = cluster.log_position();
    for job in paused {
        cluster.execute(database, &[&format!("SELECT awty.resume('{job}')")]);
    }
    cluster
        .await_log(&["awty maintainer", "WARNING", &format!("\"{database}\"")], position.min(cluster.log_position()));
    assert_eq!(cluster.psql(database, snapshot), before, "something ran before it was adopted");
    cluster.execute(database, &["CREATE TABLE shop.had AS SELECT id, job FROM awty.future_job", "SELECT awty.adopt()"]);
    let due = "SELECT NOT EXISTS (SELECT FROM awty.future_job WHERE next_check_at < now() + interval '10 minutes')";
    cluster.await_sql(database, "what was pending", due);
    let lost = "SELECT count(*) FROM shop.had LEFT JOIN shop.note AS n ON n.what::bigint = had.id
                LEFT JOIN awty.future_job AS p ON p.id = had.id WHERE n.what IS NULL AND p.id IS NULL";
    assert_eq!(cluster.value::<i64>(database, lost), 0, "pending in the dump, and never run");
    assert!(cluster.value::<i64>(database, "SELECT count(*) FROM shop.had") >= 200);
    clients::judge_effects(cluster, database);
}

#[test]
fn a_parallel_dump_under_load_is_held_and_then_runs_once() {
    let shop = at_work();
    let placing = clients::place(&shop, &[]);
    clients::await_more_runs(&shop.cluster, "postgres");
    dump_in_parallel(&shop);
    shop.run("SELECT awty.resume('later')");
    placing.judge(&shop);
}

#[test]
fn a_slow_dump_holds_up_nobody() {
    let shop = at_work();
    let placing = clients::place(&shop, &[]);
    clients::await_more_runs(&shop.cluster, "postgres");
    let mut dump = shop.cluster.tool("pg_dump").args(["-d", "postgres"]).stdout(Stdio::piped()).spawn().unwrap();
    // Until the test reads its output, pg_dump waits and keeps its snapshot and its locks.
    let stopped = "SELECT EXISTS (SELECT FROM pg_stat_activity AS a JOIN pg_locks AS l USING (pid)
                                  WHERE a.application_name = 'pg_dump'
                                    AND l.relation = 'awty.future_job'::regclass)";
    shop.await_true("a dump that has stopped", stopped);
    for _ in 0..3 {
        clients::await_more_runs(&shop.cluster, "postgres");
    }
    assert!(shop.cluster.value::<bool>("postgres", stopped), "it has not been there all the time");
    let mut script = Vec::new();
    dump.stdout.take().unwrap().read_to_end(&mut script).unwrap();
    assert!(dump.wait().unwrap().success());
    shop.cluster.execute("postgres", &["CREATE DATABASE slowly"]);
    let plain = file(&shop, "plain");
    std::fs::write(&plain, script).unwrap();
    load(&shop.cluster, "slowly", &plain);
    expect_held_then_run_once(&shop.cluster, "slowly", &["later"]);

    let all = file(&shop, "all");
    run(shop.cluster.tool("pg_dumpall").arg("-f").arg(&all));
    shop.run("SELECT awty.resume('later')");
    placing.judge(&shop);
    let other = Cluster::builder().own_identity().start();
    let text = std::fs::read_to_string(&all).unwrap().replace("CREATE ROLE postgres;", "");
    std::fs::write(&all, text).unwrap();
    load(&other, "postgres", &all);
    expect_held_then_run_once(&other, "postgres", &["later"]);
    assert!(other.value::<bool>("slowly", "SELECT database_held FROM awty.status"));
}

#[track_caller]
fn load(cluster: &Cluster, database: &str, script: &Path) {
    run(cluster.tool("psql").args(["-Xq", "-v", "ON_ERROR_STOP=1", "-d", database, "-f"]).arg(script));
}

/// If policies hide rows, pg_dump without `--enable-row-security` fails instead of omitting the rows.
#[test]
fn the_owner_of_the_database_dumps_every_row() {
    let shop = at_work();
    shop.cluster.await_sql("postgres", "some history", "SELECT EXISTS (SELECT FROM pg_inherits)");
    shop.run("SELECT awty.schedule('orders', i::text, 'note', after => '0') FROM generate_series(1, 20) AS i");
    shop.cluster.await_sql("postgres", "the ends", "SELECT count(*) >= 20 FROM awty.future_job_history");
    shop.run(
        "DROP TABLE shop.filler;
         SELECT awty.create_calendar('office', '{mon-fri 09:00-17:00}', 'Europe/Berlin', '{2026-12-25}');
         SELECT awty.repeat('note', every => '1 h', zone => 'Europe/Berlin', calendar => 'office');
         SELECT awty.hold('later', '1', note => 'away', held_until => now() + interval '1 day');
         SELECT awty.pause('later', 'moves', now() + interval '1 day')",
    );
    shop.cluster.execute(
        "postgres",
        &[
            "CREATE ROLE landlord LOGIN",
            "ALTER DATABASE postgres OWNER TO landlord",
            "CREATE ROLE backup LOGIN IN ROLE pg_read_all_data",
        ],
    );
    let awty = ["--schema=awty", "--schema=awty_internal", "--extension=awty", "-d", "postgres"];
    for role in ["landlord", "backup"] {
        let refused = shop.cluster.tool("pg_dump").args(awty).args(["-U", role]).output().unwrap();
        assert!(!refused.status.success(), "rows are left out silently");
    }
    let count = "SELECT (SELECT count(*) FROM awty.job), (SELECT count(*) FROM awty.future_job), (SELECT count(*) FROM awty.future_job_history),
                 (SELECT count(*) FROM awty_internal.origin), (SELECT count(*) FROM awty_internal.check_stat), (SELECT count(*) FROM awty.rule),
                 (SELECT count(*) FROM awty.alert), (SELECT count(*) FROM awty_internal.repetition), (SELECT string_agg(h::text, ' ') FROM awty_internal.hold AS h),
                 (SELECT string_agg(c::text, ' ') FROM awty.calendar AS c), (SELECT string_agg(j::text, ' ' ORDER BY j.job) FROM awty.job AS j)";
    let source = shop.cluster.psql("postgres", count);
    for (role, format, jobs) in [
        ("landlord", "p", "1"),
        ("landlord", "c", "1"),
        ("landlord", "d", "1"),
        ("landlord", "d", "4"),
        ("backup", "p", "1"),
        ("backup", "d", "4"),
    ] {
        let path = file(&shop, &format!("by_{role}_{format}{jobs}"));
        let mut dump = shop.cluster.tool("pg_dump");
        run(dump.args(awty).args(["-U", role, "--enable-row-security", "-F", format, "-j", jobs, "-f"]).arg(&path));
        shop.cluster.execute("postgres", &["CREATE DATABASE by_owner", "CREATE SCHEMA IF NOT EXISTS shop"]);
        if format == "p" {
            run(shop.cluster.tool("psql").args(["-Xq", "-v", "ON_ERROR_STOP=1", "-d", "by_owner", "-f"]).arg(&path));
        } else {
            run(shop.cluster.tool("pg_restore").args(["--exit-on-error", "-d", "by_owner"]).arg(&path));
        }
        assert_eq!(shop.cluster.psql("by_owner", count), source, "{role}, format {format}, {jobs} jobs");
        shop.cluster.execute("postgres", &["DROP DATABASE by_owner WITH (FORCE)"]);
    }
}

/// pg_dump creates no table that belongs to an extension, and reads the name of a table again when it dumps
/// `awty.rule`. A name that the restore does not know would fail the COPY of all rules.
#[test]
fn a_table_that_a_restore_does_not_create_costs_no_other_rule() {
    let shop = Shop::open();
    let cluster = &shop.cluster;
    cluster.create_user("postgres", "mallory");
    cluster.execute("postgres", &["GRANT CREATE ON DATABASE postgres TO mallory"]);
    let table = |name: &str| {
        format!(
            "CREATE TABLE {name} (id int PRIMARY KEY, done boolean);
             SELECT awty.watch('{name}', 'done', within => '1 h', rule => '{name}');"
        )
    };
    // pg_dump reads the tables in the order of their names. The data of this table fill the pipe, so that pg_dump waits
    // between a1.t and awty.rule.
    let filler =
        "CREATE SCHEMA a2; CREATE TABLE a2.filler AS SELECT i, repeat('x', 1000) FROM generate_series(1, 5000) AS i";
    cluster.execute("postgres", &[filler]);
    shop.run(&table("shop.orders"));
    let mut mallory = cluster.client("postgres", "mallory");
    let member = "CREATE EXTENSION citext SCHEMA mallory; ALTER EXTENSION citext ADD TABLE mallory.member";
    mallory.batch_execute(&format!("CREATE SCHEMA a1; {}{}{member}", table("mallory.member"), table("a1.t"))).unwrap();
    let mut dump = cluster.tool("pg_dump").args(["-d", "postgres"]).stdout(Stdio::piped()).spawn().unwrap();
    let stopped = "SELECT EXISTS (SELECT FROM pg_stat_activity
                                  WHERE application_name = 'pg_dump' AND query LIKE 'COPY a2.filler%' AND wait_event = 'ClientWrite')";
    shop.await_true("a dump that has stopped", stopped);
    mallory.batch_execute("ALTER SCHEMA a1 RENAME TO a3").unwrap();
    let mut script = Vec::new();
    dump.stdout.take().unwrap().read_to_end(&mut script).unwrap();
    assert!(dump.wait().unwrap().success());
    let plain = file(&shop, "plain");
    std::fs::write(&plain, script).unwrap();
    cluster.execute("postgres", &["CREATE DATABASE restored"]);
    load(cluster, "restored", &plain);
    assert_eq!(cluster.value::<String>("restored", "SELECT string_agg(rule, ' ') FROM awty.rule"), "shop.orders");
}
