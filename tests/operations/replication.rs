use awty_testkit::fixture::{NOTE, Shop};
use awty_testkit::{Builder, Cluster};
use std::process::Command;

const DAY: i64 = 86_400;

fn server(wal_level: &str) -> Builder {
    let server = Cluster::builder().own_identity().with_movable_clock().set("wal_level", wal_level);
    server.set("wal_sender_timeout", "0").set("wal_receiver_timeout", "0").set("wal_retrieve_retry_interval", "100ms")
}

fn run(tool: &mut Command) {
    let output = tool.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_database_moves_by_logical_replication() {
    let old = Shop::on(server("logical").start());
    old.run("ALTER TABLE shop.note ADD PRIMARY KEY (n)");
    old.job("note", NOTE, "");
    old.schedule("done before", "note", "after => '0'");
    old.end_of("done before");

    let mut new = server("replica").start();
    new.execute("postgres", &["CREATE USER shop"]);
    let schema = old.cluster.socket_directory().join("schema.sql");
    run(old.cluster.tool("pg_dump").args(["-s", "-f"]).arg(&schema).arg("postgres"));
    run(new.tool("psql").args(["-Xq", "-v", "ON_ERROR_STOP=1", "-f"]).arg(&schema).arg("postgres"));
    let publication = "CREATE PUBLICATION move FOR ALL TABLES WITH (publish_via_partition_root = true)";
    old.cluster.execute("postgres", &[publication]);
    let (host, port) = (old.cluster.socket_directory().display(), Cluster::PORT);
    let connection = format!("host={host} port={port} dbname=postgres user=postgres");
    new.execute("postgres", &[&format!("CREATE SUBSCRIPTION move CONNECTION '{connection}' PUBLICATION move")]);
    old.run(
        "SELECT awty.schedule('orders', 'pending ' || n, 'note', after => '9 days') FROM generate_series(1, 30) AS n",
    );
    // Waits until all tables are copied, because awty creates no partitions while its table of jobs is empty.
    let copied = "SELECT count(*) > 0 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel";
    new.await_sql("postgres", "the copy of each table", copied);
    new.await_sql("postgres", "the pending checks", "SELECT count(*) = 30 FROM awty.future_job");

    new.set_clock(4 * DAY);
    new.restart();
    let ahead = "SELECT database_held AND to_regclass('awty_internal.future_job_history_' || to_char(now() AT TIME ZONE 'UTC' + interval '4 days', 'YYYYMMDD'))
                                          IS NOT NULL FROM awty.status";
    new.await_sql("postgres", "a partition for a later day", ahead);
    for cluster in [&old.cluster, &new] {
        cluster.set_clock(8 * DAY);
    }
    old.schedule("done after a week", "note", "after => '0'");
    old.end_of("done after a week");
    old.cluster.configure("awty.enabled = off");
    old.cluster.reload();
    old.await_true("awty to be disabled", "SELECT NOT enabled FROM awty.status");
    let all = "SELECT (SELECT count(*) FROM awty.future_job_history) = 2 AND (SELECT count(*) FROM shop.note) = 2";
    new.await_sql("postgres", "all rows", all);

    new.execute(
        "postgres",
        &["DROP SUBSCRIPTION move", "SELECT awty.adopt()", "SELECT setval('shop.note_n_seq', 100)"],
    );
    let mut client = new.client("postgres", "shop");
    client.batch_execute("SELECT awty.schedule('orders', 'first', 'note', after => '0')").unwrap();
    let first = "SELECT count(*) = 1 FROM awty.future_job_history WHERE entity_key = 'first' AND outcome = 'done'";
    new.await_sql("postgres", "the first new check", first);
    new.set_clock(10 * DAY);
    let done =
        "SELECT count(*) = 33 AND count(DISTINCT id) = 33 AND bool_and(outcome = 'done') FROM awty.future_job_history";
    new.await_sql("postgres", "what was pending", done);
    let once = "SELECT count(*) = 33 AND count(DISTINCT entity_key) = 33 FROM shop.note";
    assert!(new.value::<bool>("postgres", once));
}

#[test]
fn a_logical_subscriber_runs_nothing_twice() {
    let watched = "CREATE TABLE shop.orders (id text PRIMARY KEY);
                   CREATE FUNCTION shop.watch() RETURNS trigger LANGUAGE plpgsql AS $$
                   BEGIN PERFORM awty.schedule('orders', NEW.id, 'note', after => '0'); RETURN NEW; END $$;
                   CREATE TRIGGER watch AFTER INSERT ON shop.orders FOR EACH ROW EXECUTE FUNCTION shop.watch();
                   ALTER TABLE shop.note ADD PRIMARY KEY (n)";
    let publisher = Shop::on(Cluster::builder().set("wal_level", "logical").start());
    let subscriber = Shop::on(Cluster::builder().own_identity().start());
    for shop in [&publisher, &subscriber] {
        shop.run(watched);
    }
    publisher.job("note", NOTE, "");
    let publication = "CREATE PUBLICATION all_tables FOR ALL TABLES WITH (publish_via_partition_root = true)";
    publisher.cluster.execute("postgres", &[publication]);
    let (host, port) = (publisher.cluster.socket_directory().display(), Cluster::PORT);
    subscriber.cluster.execute(
        "postgres",
        &[&format!(
            "CREATE SUBSCRIPTION everything CONNECTION 'host={host} port={port} dbname=postgres user=postgres' PUBLICATION all_tables"
        )],
    );
    publisher.run("INSERT INTO shop.orders SELECT i::text FROM generate_series(1, 100) AS i");
    publisher.await_all_ended();
    let arrived = "SELECT (SELECT count(*) FROM shop.orders) = 100 AND (SELECT count(*) FROM shop.note) >= 100
                          AND (SELECT count(*) FROM awty.future_job_history) = 100";
    subscriber.await_true("all that was published", arrived);
    assert!(
        subscriber.cluster.value::<bool>("postgres", "SELECT database_held FROM awty.status"),
        "the rows are another's"
    );
    let notes = "SELECT count(*) = 100 AND count(DISTINCT entity_key) = 100 FROM shop.note";
    for shop in [&publisher, &subscriber] {
        assert!(shop.cluster.value::<bool>("postgres", notes));
    }
    subscriber.cluster.execute("postgres", &["DROP SUBSCRIPTION everything"]);
}
