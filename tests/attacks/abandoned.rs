use awty_testkit::postgres::Client;
use awty_testkit::{Cluster, PATIENCE};

use crate::field::{DB, Field};

const SUICIDE: &str = "BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END";

fn make_due(holding: &mut Client, other: &mut Client) {
    let all = |options: &str| {
        format!("SELECT count(awty.schedule('thing', i::text, 'suicide', {options})) FROM generate_series(1, 80) AS i")
    };
    holding.batch_execute("SELECT awty.pause('suicide')").unwrap();
    holding.batch_execute(&all("at => now()")).unwrap();
    holding.batch_execute(&format!("BEGIN; {}", all("after => '1 day', on_conflict => 'keep'"))).unwrap();
    other.batch_execute("SELECT awty.resume('suicide')").unwrap();
}

fn deaths(field: &Field, position: usize) -> usize {
    field.cluster.log_since(position).matches("FATAL:  terminating").count()
}

#[test]
fn a_role_whose_runs_end_their_workers_stops_nobody_else() {
    let field = Field::with(Cluster::builder().set("awty.max_crashes", "1"));
    field.job("mallory", "suicide", SUICIDE);
    let position = field.cluster.log_position();
    let mut holding = field.client("mallory");
    make_due(&mut holding, &mut field.client("mallory"));
    field.cluster.await_log(&["FATAL:  terminating"], position);
    for _ in 0..4 {
        field.alice_goes_on();
    }

    let most = "SELECT count(awty.cancel('thing', i::text, 'suicide')) FROM generate_series(3, 80) AS i; COMMIT";
    holding.batch_execute(most).unwrap();
    field.alice_goes_on();
    field.try_job("mallory", "harmless", "BEGIN RETURN NULL; END").is_done();
    field.cluster.await_sql(
        DB,
        "the two that are left to be counted and held",
        "SELECT count(*) = 2 AND bool_and(held) FROM awty.future_job WHERE job = 'suicide'",
    );
}

/// If a run ends its own worker process, awty counts a crash of the check before awty starts a new worker.
#[test]
fn a_role_whose_runs_cannot_be_counted_takes_one_place_in_each_database() {
    let field = Field::new();
    field.cluster.execute(DB, &["CREATE DATABASE other"]);
    field.cluster.create_extension("other");
    field
        .cluster
        .execute("other", &["CREATE SCHEMA mallory AUTHORIZATION mallory", "GRANT USAGE ON SCHEMA awty TO mallory"]);
    let position = field.cluster.log_position();
    let clients = [DB, "other"].map(|database| {
        let [mut holding, mut other] = [(), ()].map(|()| field.cluster.client(database, "mallory"));
        let create = format!(
            "CREATE FUNCTION mallory.in_{database}(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $job$ {SUICIDE} $job$;
             SELECT awty.register('suicide', 'mallory.in_{database}')"
        );
        holding.batch_execute(&create).unwrap();
        make_due(&mut holding, &mut other);
        holding
    });
    field.cluster.await_that("a death in each database", PATIENCE, || {
        let log = field.cluster.log_since(position);
        let dead = |database: &str| log.contains(&format!("in_{database}(awty.future_job)"));
        if dead(DB) && dead("other") { Ok(()) } else { Err(log) }
    });
    for _ in 0..4 {
        field.alice_goes_on();
    }
    let deaths = deaths(&field, position);
    assert!(deaths <= 4, "{deaths} runs ended their workers, and none of them was counted");
    drop(clients);
}

#[test]
fn a_lack_of_places_is_told() {
    const ROLES: usize = 70;
    let field = Field::with(Cluster::builder().set("max_worker_processes", "40"));
    field.job("alice", "innocent", "BEGIN RETURN NULL; END");
    field.sql(
        "postgres",
        &format!(
            "CREATE SCHEMA tools; GRANT USAGE ON SCHEMA tools, awty TO PUBLIC;
             CREATE FUNCTION tools.suicide(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $job$ {SUICIDE} $job$;
             DO $$ BEGIN FOR i IN 1..{ROLES} LOOP
                 EXECUTE format('CREATE ROLE r%s LOGIN', i);
                 PERFORM awty.register('job' || i, 'tools.suicide', run_as => 'r' || i);
                 PERFORM awty.pause('job' || i);
             END LOOP; END $$"
        ),
    );
    let all = |call: &str| format!("SELECT count({call}) FROM generate_series(1, {ROLES}) AS i");
    field.sql("postgres", &all("awty.schedule('thing', '1', 'job' || i, at => now())"));
    let mut holding = field.client("postgres");
    let keep = all("awty.schedule('thing', '1', 'job' || i, after => '1 day', on_conflict => 'keep')");
    holding.batch_execute(&format!("BEGIN; {keep}")).unwrap();
    let position = field.cluster.log_position();
    field.sql(
        "postgres",
        &format!("DO $$ BEGIN FOR i IN 1..{ROLES} LOOP PERFORM awty.resume('job' || i); END LOOP; END $$"),
    );
    let mut alice = field.client("alice");
    let mut told = || -> String {
        alice.query_one("SELECT concat_ws(' ', why, last_error) FROM awty.status", &[]).unwrap().get(0)
    };
    field.cluster.await_that("the places to be taken", PATIENCE, || match (deaths(&field, position), told()) {
        (64.., _) => Ok(()),
        (_, told) if !told.is_empty() => Ok(()),
        (deaths, _) => Err(format!("{deaths} runs have ended their workers")),
    });
    let id = field.schedule("alice", "innocent", "hers");
    let mut postgres = field.client("postgres");
    field.cluster.await_that("alice's check to run, or awty to say why it does not", PATIENCE, || {
        let ran = "SELECT count(*) > 0 FROM awty.future_job_history WHERE id = $1";
        let ran: bool = postgres.query_one(ran, &[&id]).map_err(|error| format!("{error:?}"))?.get(0);
        let (status, log) = (told(), field.cluster.log_since(position));
        let logged = log.lines().any(|line| line.contains("awty launcher") && line.contains("awty: "));
        if ran || (logged && !status.is_empty()) {
            Ok(())
        } else {
            Err(format!("awty.status: {status:?}, the log: {logged}"))
        }
    });
    holding.batch_execute("SELECT count(awty.cancel('thing', '1')); COMMIT").unwrap();
    field.end_of(id).is_done();
}

#[test]
fn signals_from_outside_hold_no_check() {
    let field = Field::new();
    field.sql("postgres", "CREATE ROLE guard LOGIN; GRANT pg_signal_backend TO guard");
    field.sql("alice", "CREATE TABLE alice.door (open boolean); INSERT INTO alice.door VALUES (false)");
    field.job(
        "alice",
        "waiting",
        "BEGIN
             PERFORM pg_advisory_xact_lock(90);
             WHILE NOT (SELECT open FROM alice.door) LOOP PERFORM pg_sleep(0.02); END LOOP;
             RETURN NULL;
         END",
    );
    let id = field.schedule("alice", "waiting", "1");
    let mut postgres = field.client("postgres");
    let mut ended = Vec::new();
    for _ in 0..6 {
        let pid = field.cluster.await_that("the next run", PATIENCE, || {
            let running =
                "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = 90 AND granted AND pid <> ALL ($1)";
            let row = postgres.query_opt(running, &[&ended]).map_err(|error| format!("{error:?}"))?;
            row.map(|row| row.get::<_, i32>(0)).ok_or_else(|| {
                let held = postgres.query_one("SELECT held FROM awty.future_job WHERE id = $1", &[&id]);
                format!("no run after {} signals; held: {:?}", ended.len(), held.map(|row| row.get::<_, bool>(0)))
            })
        });
        if ended.len() < 5 {
            field.sql("guard", &format!("SELECT pg_terminate_backend({pid})"));
        }
        ended.push(pid);
    }
    field.sql("alice", "UPDATE alice.door SET open = true");
    field.end_of(id).is_done();
}
