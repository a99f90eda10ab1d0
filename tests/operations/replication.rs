//! A logical subscriber that has awty, too.

use crate::shop::{NOTE, Shop};
use awty_testkit::Cluster;

/// P1: what the publisher has run is not run by the subscriber, neither by the rows of awty that it is sent nor by its triggers.
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
