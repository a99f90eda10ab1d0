use crate::made_up::{self, HERE, NEXT};
use awty_testkit::Cluster;
use std::path::Path;

fn server(stage: &Path) -> Cluster {
    let cluster = Cluster::builder().stage(stage).start();
    cluster.execute("postgres", &[&format!("CREATE EXTENSION awty VERSION '{HERE}'")]);
    cluster.create_user("postgres", "shop");
    run(
        &cluster,
        "CREATE TABLE shop.note (entity_key text PRIMARY KEY, what text);
         CREATE FUNCTION shop.note(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS
             $$ INSERT INTO shop.note VALUES (j.entity_key, 'before'); SELECT NULL::timestamptz $$;
         SELECT awty.register('note', 'shop.note')",
    );
    cluster
}

#[track_caller]
fn run(cluster: &Cluster, script: &str) {
    cluster.client("postgres", "shop").batch_execute(script).unwrap();
}

fn schedule(cluster: &Cluster, from: i32, to: i32) {
    let sql = "SELECT count(awty.schedule('orders', i::text, 'note', after => '0')) FROM generate_series";
    run(cluster, &format!("{sql} ({from}, {to}) AS i"));
}

fn await_notes(cluster: &Cluster, count: i32) {
    let sql = format!(
        "SELECT (SELECT count(*) FROM shop.note) = {count} AND NOT EXISTS (SELECT FROM awty.future_job)
            AND (SELECT count(*) FROM awty.future_job_history WHERE outcome = 'done') = {count}"
    );
    cluster.await_sql("postgres", "all checks to have run", &sql);
}

fn is_well(version: &str) -> String {
    format!("SELECT version = '{version}' AND enabled AND last_error IS NULL FROM awty.status")
}

#[test]
fn a_library_runs_the_sql_of_the_version_before_and_its_own() {
    let mut cluster = server(&made_up::stage(&made_up::next_library()));
    schedule(&cluster, 1, 10);
    await_notes(&cluster, 10);
    assert!(cluster.value::<bool>("postgres", &is_well(HERE)));

    run(&cluster, "SELECT awty.pause('note')");
    schedule(&cluster, 11, 20);
    cluster.execute("postgres", &["ALTER EXTENSION awty UPDATE"]);
    schedule(&cluster, 21, 30);
    run(
        &cluster,
        "CREATE OR REPLACE FUNCTION shop.note(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS
             $$ INSERT INTO shop.note VALUES (j.entity_key, coalesce(j.priority::text, 'none')); SELECT NULL::timestamptz $$;
         SELECT awty.resume('note')",
    );
    await_notes(&cluster, 30);
    let notes = "SELECT string_agg(what || ' ' || n, ', ' ORDER BY what) FROM
                 (SELECT what, count(*) AS n FROM shop.note GROUP BY what) AS c";
    assert_eq!(cluster.psql("postgres", notes).trim(), "0 10, before 10, none 10");
    cluster.restart();
    schedule(&cluster, 31, 40);
    await_notes(&cluster, 40);
    assert!(cluster.value::<bool>("postgres", &is_well(NEXT)));
}

/// Installs the new SQL version before the restart, while the server has the old library in memory.
#[test]
fn sql_of_a_version_to_come_waits_for_the_restart() {
    let before = made_up::directory_for("before").join("libawty.so");
    std::fs::copy(made_up::library(), &before).unwrap();
    let stage = made_up::stage(&before);
    let module = made_up::directory(&stage, "--pkglibdir").join("awty.so");
    let install = |library: &Path| {
        let new = module.with_extension("new");
        std::fs::copy(library, &new).unwrap();
        std::fs::rename(&new, &module).unwrap();
    };
    install(&before);
    let mut cluster = server(&stage);
    schedule(&cluster, 1, 5);
    await_notes(&cluster, 5);

    install(&made_up::next_library());
    cluster.execute("postgres", &["ALTER EXTENSION awty UPDATE"]);
    let says =
        "SELECT enabled AND concat_ws('; ', why, fix) LIKE '%Restart the server%' AND workers = 0 FROM awty.status";
    cluster.await_sql("postgres", "awty.status to say so", says);
    schedule(&cluster, 6, 10);
    let overdue = "SELECT lag > '2 s' AND pending = 5 FROM awty.status";
    cluster.await_sql("postgres", "the checks to be overdue", overdue);
    let log = cluster.await_log(&["WARNING", "which its library"], 0);
    assert!(log.contains(NEXT), "{log}");

    cluster.restart();
    await_notes(&cluster, 10);
    assert!(cluster.value::<bool>("postgres", &is_well(NEXT)));
}
