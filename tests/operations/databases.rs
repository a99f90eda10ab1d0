//! Tests a server with many databases. `AWTY_DATABASES` sets their number, and the default is 30.

use awty_testkit::fixture::{Shop, ready_at};
use awty_testkit::postgres::error::SqlState;
use awty_testkit::{Cluster, PATIENCE, poll};
use std::time::{Duration, Instant};

const WITH_AWTY: usize = 5;
const AWAY: Duration = Duration::from_secs(5);

fn number_of_databases() -> usize {
    std::env::var("AWTY_DATABASES").ok().and_then(|number| number.parse().ok()).unwrap_or(30)
}

#[test]
fn a_server_with_many_databases_starts_quickly_and_idles_without_connections() {
    let shop = Shop::on(Cluster::builder().set("fsync", "off").start());
    for number in 0..number_of_databases() {
        shop.cluster.execute("postgres", &[&format!("CREATE DATABASE d{number}")]);
    }
    let mut cluster = shop.cluster;
    // Uses the databases with the highest numbers, because awty inspects these databases last.
    let with_awty = || (0..number_of_databases()).rev().take(WITH_AWTY).map(|number| format!("d{number}"));
    for database in with_awty() {
        cluster.execute(
            &database,
            &[
                "CREATE EXTENSION awty",
                "CREATE FUNCTION public.note(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz'",
                "SELECT awty.register('note', 'public.note')",
                "SELECT awty.schedule('orders', '1', 'note', after => '1 s')",
                "SELECT awty.schedule('orders', '2', 'note', after => '1 day')",
            ],
        );
    }
    cluster.restart();
    let done = "SELECT EXISTS (SELECT FROM awty.future_job_history WHERE entity_key = '1' AND outcome = 'done')";
    for database in with_awty() {
        cluster.await_sql(&database, "the due check", done);
    }
    let late =
        "SELECT extract(epoch FROM max(started_at - greatest(next_check_at, $1)))::float8 FROM awty.future_job_history";
    let late = with_awty().map(|database| {
        let row = cluster.superuser(&database).query_one(late, &[&ready_at(&cluster)]).unwrap();
        row.get::<_, f64>(0)
    });
    println!(
        "{} databases, {WITH_AWTY} with awty: the last due check started {:.2} s after it was due and the server ready",
        number_of_databases(),
        late.fold(f64::MIN, f64::max)
    );
    // Waits until no awty process has been connected to a database for `AWAY`, because an idle server needs no
    // connections.
    let connected =
        "SELECT count(*) FROM pg_stat_activity WHERE starts_with(backend_type, 'awty') AND datid IS NOT NULL";
    let mut since = Instant::now();
    cluster.await_that("awty to stay away", PATIENCE, || match cluster.value::<i64>("postgres", connected) {
        0 if since.elapsed() > AWAY => Ok(()),
        0 => Err(format!("away for {:?}", since.elapsed())),
        seen => {
            since = Instant::now();
            Err(format!("{seen} connections"))
        }
    });
}

#[test]
fn two_databases_can_be_dropped_while_both_are_visited() {
    let shop = Shop::open();
    shop.job("note", awty_testkit::fixture::NOTE, "");
    shop.cluster.execute("postgres", &["CREATE DATABASE origin"]);
    shop.cluster.execute(
        "origin",
        &[
            "CREATE EXTENSION awty",
            "CREATE FUNCTION public.note(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz'",
            "SELECT awty.register('note', 'public.note')",
            // An inspection vacuums the table, because 19,000 of its 20,000 rows are dead.
            "SELECT count(awty.schedule('orders', i::text, 'note', after => '1 day')) FROM generate_series(1, 20000) AS i",
            "SELECT count(awty.cancel('orders', i::text)) FROM generate_series(1, 19000) AS i",
        ],
    );
    let (mut inspected, since) = (0, Instant::now());
    for round in 0.. {
        if round >= 6 && (inspected > 0 || since.elapsed() > PATIENCE) {
            break;
        }
        let databases = ["a", "b"].map(|name| format!("{name}{round}"));
        for database in &databases {
            shop.cluster.execute("postgres", &[&format!("CREATE DATABASE {database} TEMPLATE origin")]);
        }
        let asking = databases.each_ref().map(|database| shop.cluster.superuser(database));
        for mut client in asking {
            client.batch_execute("SELECT awty.adopt()").unwrap();
        }
        let gone = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname <> 'postgres')";
        shop.cluster.await_sql("postgres", "the end of the test's own sessions", gone);
        let there = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'awty maintainer'";
        inspected += shop.cluster.value::<i64>("postgres", there);
        let dropping = databases.map(|database| {
            let mut client = shop.cluster.superuser("postgres");
            // PostgreSQL waits five seconds for other sessions. On a busy machine, awty may need longer.
            std::thread::spawn(move || {
                poll(&database, PATIENCE, || match client.batch_execute(&format!("DROP DATABASE {database}")) {
                    Err(error) if error.code() == Some(&SqlState::OBJECT_IN_USE) => Err(error.to_string()),
                    Err(error) => panic!("{database}: {error:?}"),
                    Ok(()) => Ok(()),
                })
            })
        });
        for thread in dropping {
            thread.join().unwrap().unwrap_or_else(|error| panic!("round {round}: {error}"));
        }
    }
    assert!(inspected > 0, "no database was dropped during an inspection");
    shop.schedule("1", "note", "after => '0'");
    assert_eq!(shop.end_of("1").outcome, "done");
}

/// An event trigger makes each command that creates a table slow. All partitions together take longer than the five
/// seconds for which DROP DATABASE waits.
#[test]
fn a_database_can_be_dropped_while_partitions_are_created() {
    let shop = Shop::open();
    shop.cluster.execute("postgres", &["CREATE DATABASE dropped"]);
    shop.cluster.execute(
        "dropped",
        &[
            "CREATE EXTENSION awty",
            "CREATE FUNCTION public.dawdle() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.7); END'",
            "CREATE FUNCTION public.note(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz'",
            "CREATE EVENT TRIGGER dawdle ON ddl_command_start WHEN tag IN ('CREATE TABLE') EXECUTE FUNCTION public.dawdle()",
            "SELECT awty.register('note', 'public.note')",
        ],
    );
    let creates = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'awty maintainer' AND wait_event = 'PgSleep')";
    shop.cluster.await_sql("postgres", "the maintainer to create a partition", creates);
    shop.cluster.execute("postgres", &["DROP DATABASE dropped"]);
}
