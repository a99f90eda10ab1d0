use crate::clients::{self, NOTE_ID};
use awty_testkit::fixture::{NOTE, Shop};
use awty_testkit::{Cluster, PATIENCE};
use std::path::{Path, PathBuf};

fn expect(shop: &Shop, what: &str, condition: &str) {
    shop.await_true(what, &format!("SELECT {condition} FROM awty.status"));
}

#[test]
fn a_role_that_cannot_connect_is_shown() {
    let shop = Shop::open();
    shop.job("note", NOTE_ID, "");
    shop.cluster.create_user("postgres", "other");
    let placing = clients::place(&shop, &[]);
    clients::await_more_runs(&shop.cluster, "postgres");
    // Ends the workers, because PostgreSQL checks the right CONNECT only at a session's start.
    shop.cluster.execute("postgres", &["REVOKE CONNECT ON DATABASE postgres FROM PUBLIC"]);
    let ended = "SELECT count(pg_terminate_backend(pid)) = 0 FROM pg_stat_activity WHERE backend_type = 'awty worker'";
    shop.await_true("the end of all workers", ended);
    expect(
        &shop,
        "the reason",
        "enabled AND NOT database_held AND concat_ws('; ', why, fix) LIKE '%has no CONNECT on this database; GRANT CONNECT ON DATABASE %' AND last_error LIKE 'role \"shop\" of job % has no CONNECT; GRANT CONNECT ON DATABASE %'",
    );
    expect(
        &shop,
        "the backlog",
        "lag > '2 s' AND oldest_overdue < now() AND pending > 0 AND held_checks = 0 AND workers = 0",
    );
    shop.cluster.execute("postgres", &["GRANT CONNECT ON DATABASE postgres TO PUBLIC"]);
    placing.judge(&shop);
    expect(
        &shop,
        "the end of it",
        "lag = '0' AND oldest_overdue IS NULL AND pending < 1000 AND last_slot_run IS NOT NULL",
    );
}

const FREE: u32 = 4;

struct Taken(Vec<std::thread::JoinHandle<()>>);

impl Taken {
    fn all(shop: &Shop) -> Self {
        shop.cluster.execute(
            "postgres",
            &[
                "CREATE TABLE public.hog (n integer, filler text) WITH (fillfactor = 10, parallel_workers = 100)",
                "ALTER TABLE public.hog ALTER filler SET STORAGE PLAIN",
                "INSERT INTO public.hog SELECT n, repeat('x', 500) FROM generate_series(1, 200) AS n",
            ],
        );
        let query = "SET max_parallel_workers = 100; SET max_parallel_workers_per_gather = 100;
                     SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
                     SELECT count(pg_sleep(60)) FROM hog";
        let mut queries = Vec::new();
        // Starts queries until parallel workers use all free process slots. One query may not suffice, because a
        // process of awty may end later and free a slot.
        let taken = format!("SELECT count(*) = {FREE} FROM pg_stat_activity WHERE backend_type = 'parallel worker'");
        shop.cluster.await_that("all slots to be taken", PATIENCE, || {
            if shop.cluster.value("postgres", &taken) {
                return Ok(());
            }
            if queries.len() < 50 {
                let mut client = shop.cluster.superuser("postgres");
                queries.push(std::thread::spawn(move || drop(client.batch_execute(query))));
            }
            Err(format!("{} queries", queries.len()))
        });
        Self(queries)
    }

    fn end(self, shop: &Shop) {
        let cancel = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE backend_type = 'client backend' AND query LIKE '%FROM hog'";
        shop.cluster.await_that("the end of all queries", PATIENCE, || {
            let cancelled: i64 = shop.cluster.value("postgres", cancel);
            if self.0.iter().all(|thread| thread.is_finished()) {
                Ok(())
            } else {
                Err(format!("{cancelled} cancelled"))
            }
        });
        self.0.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

#[test]
fn a_server_without_room_is_shown() {
    let slots = (FREE + 1).to_string();
    let server = Cluster::builder().set("max_worker_processes", &slots).set("max_logical_replication_workers", "0");
    let shop = Shop::on(server.start());
    shop.job("note", NOTE_ID, "");
    let taken = Taken::all(&shop);
    let placing = clients::place(&shop, &[]);
    expect(
        &shop,
        "the reason",
        "enabled AND NOT database_held AND concat_ws('; ', why, fix) LIKE '%max_worker_processes%' AND last_error_at IS NOT NULL",
    );
    expect(&shop, "the backlog", "lag > '1 s' AND oldest_overdue < now() AND pending > 0");
    taken.end(&shop);
    placing.judge(&shop);
    expect(&shop, "the end of it", "lag = '0' AND oldest_overdue IS NULL");
}

#[test]
fn a_server_that_is_not_enabled_is_shown() {
    let shop = Shop::open();
    shop.job("note", NOTE_ID, "");
    let placing = clients::place(&shop, &[]);
    clients::await_more_runs(&shop.cluster, "postgres");
    for enabled in ["off", "on"] {
        shop.cluster.configure(&format!("awty.enabled = {enabled}"));
        shop.cluster.reload();
        if enabled == "off" {
            expect(
                &shop,
                "the state",
                "NOT enabled AND NOT database_held AND lag > '2 s' AND pending > 0 AND workers = 0",
            );
        }
    }
    placing.judge(&shop);
    expect(&shop, "the end of it", "enabled AND lag = '0' AND oldest_overdue IS NULL");
}

/// The rows of a copied database still name the original database, so awty runs nothing in the copy.
#[test]
fn a_database_that_is_held_is_shown() {
    let shop = Shop::open();
    clients::await_all_done(&shop.cluster, "postgres");
    shop.cluster.execute("postgres", &["CREATE DATABASE template_of_d"]);
    clients::furnish(&shop.cluster, "template_of_d");
    shop.cluster.execute(
        "template_of_d",
        &[
            "SELECT awty.pause('note')",
            "SELECT awty.schedule('orders', i::text, 'note', after => '0') FROM generate_series(1, 50) AS i",
        ],
    );
    shop.cluster.execute("postgres", &["CREATE DATABASE d TEMPLATE template_of_d"]);
    for database in ["template_of_d", "d"] {
        shop.cluster.execute(database, &["SELECT awty.resume('note')"]);
    }
    let held = "SELECT enabled AND database_held AND concat_ws('; ', why, fix) LIKE '%awty.adopt()%' AND pending = 50 AND workers = 0 AND lag > '1 s' FROM awty.status";
    shop.cluster.await_sql("d", "the state", held);
    clients::await_all_done(&shop.cluster, "template_of_d");
    clients::judge_effects(&shop.cluster, "template_of_d");
    assert!(shop.cluster.value::<bool>("d", held));
    shop.cluster.execute("d", &["SELECT awty.adopt()"]);
    clients::await_all_done(&shop.cluster, "d");
    let free = "SELECT NOT database_held AND why IS NULL AND lag = '0' AND last_error IS NULL FROM awty.status";
    shop.cluster.await_sql("d", "the end of it", free);
    clients::judge_effects(&shop.cluster, "d");
}

struct Script(PathBuf);

impl Drop for Script {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

#[test]
fn another_version_is_shown() {
    let mut shop = Shop::on(Cluster::builder().start());
    shop.job("note", NOTE_ID, "");
    let directory: String =
        shop.cluster.value("postgres", "SELECT setting || '/extension' FROM pg_config WHERE name = 'SHAREDIR'");
    let here: String = shop.cluster.value("postgres", "SELECT extversion FROM pg_extension WHERE extname = 'awty'");
    let scripts = [(here.as_str(), "other"), ("other", here.as_str())].map(|(from, to)| {
        let file = Path::new(&directory).join(format!("awty--{from}--{to}.sql"));
        std::fs::write(&file, "SELECT 1").unwrap();
        Script(file)
    });
    shop.cluster.execute("postgres", &["ALTER EXTENSION awty UPDATE TO 'other'"]);
    expect(
        &shop,
        "the reason",
        "enabled AND NOT database_held AND concat_ws('; ', why, fix) LIKE '%ALTER EXTENSION awty UPDATE%'",
    );
    shop.cluster.restart();
    expect(
        &shop,
        "the reason after a start",
        "concat_ws('; ', why, fix) LIKE '%ALTER EXTENSION awty UPDATE%' AND workers = 0",
    );
    shop.cluster.execute("postgres", &[&format!("ALTER EXTENSION awty UPDATE TO '{here}'")]);
    let placing = clients::place(&shop, &["55000"]);
    clients::await_more_runs(&shop.cluster, "postgres");
    placing.judge(&shop);
    expect(&shop, "the end of it", "last_error IS NULL AND lag = '0'");
    drop(scripts);
}

#[test]
fn nothing_that_looks_needs_a_temporary_file() {
    let shop = Shop::on(Cluster::builder().set("temp_file_limit", "0").start());
    shop.job("note", NOTE, "");
    shop.job("bad", "BEGIN RAISE EXCEPTION '%', repeat('x', 3000); END", ", max_attempts => 1");
    shop.run("SELECT awty.repeat('note', every => '1 h'); SELECT awty.schedule('orders', '1', job, after => '0') FROM (VALUES ('note'), ('bad')) AS j (job)");
    shop.await_true("the checks to be done", "SELECT count(*) = 2 FROM awty.future_job_history");
    let copied = "INSERT INTO awty.future_job_history SELECT (c.row).*
        FROM (SELECT jsonb_populate_record(h, jsonb_build_object('id', nextval('awty.future_job_id_seq'))) AS row
              FROM awty.future_job_history AS h, generate_series(1, 12000)) AS c";
    shop.cluster.execute("postgres", &[copied]);
    for sql in [
        "SELECT count(*) FROM awty.doctor()",
        "SELECT count(*) FROM awty.explain('orders', '1')",
        "SELECT count(*) FROM awty.status",
        "SELECT count(*) FROM awty.job_status",
        "SELECT count(*) FROM awty.forecast()",
        "SELECT count(awty.healthy()::text)",
    ] {
        for role in ["postgres", "shop"] {
            let mut client = shop.cluster.client("postgres", role);
            client.batch_execute("SET work_mem = '64kB'").unwrap();
            let read = client.query(sql, &[]);
            assert!(read.is_ok(), "{role}: {sql}: {read:?}");
        }
    }
}
