//! `scripts/upgrade-test` runs `campaign upgrade OLD_STAGE NEW_STAGE`. The campaign's load runs before and after each
//! upgrade.
//!
//! The first upgrade copies the files, and its new server does not preload awty. The second upgrade links the files.

mod calls;
mod deadlines;
mod picture;

use crate::load::{DATABASES, ROLES, Shared};
use crate::{checker, evidence, faults, set_up};
use awty_testkit::{Builder, Cluster, PATIENCE, Stop, poll};
use picture::Picture;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const DAY: i64 = 86_400;
const CLONE: &str = "clone";

const MISSED: [&str; 3] = ["run", "next", "skip"];
const REPEAT: &str = "
    SELECT awty.repeat(job, every, cron, zone, entity_name => 'again', entity_key => 'upgrade', catch_up => '1 hour', args => '{\"act\": \"ok\", \"nap\": 0, \"again\": 0}')
    FROM (VALUES ('tick', interval '5 s', NULL, NULL), ('nightly', NULL, '30 3 1 1 *', 'Europe/Berlin'), ('still', '5 s', NULL, NULL)) AS v (job, every, cron, zone);
    SELECT awty.hold('again', 'upgrade', 'still', note => 'until after the upgrade')";
const PRELOAD: &str = "shared_preload_libraries = 'awty'\nawty.slot = '1s'";
const TO_CATCH_UP: Duration = Duration::from_secs(60);

pub fn run(old: &Path, new: &Path) {
    for mode in [
        Mode { name: "copy", options: &[], preload: false },
        Mode { name: "link", options: &["--link"], preload: true },
    ] {
        upgrade(old, new, &mode);
    }
}

struct Mode {
    name: &'static str,
    options: &'static [&'static str],
    preload: bool,
}

fn builder(stage: &Path) -> Builder {
    Cluster::builder()
        .stage(stage)
        .own_identity()
        .set("fsync", "off")
        .set("track_commit_timestamp", "on")
        .set("max_worker_processes", "24")
        .set("awty.max_workers", "12")
        .set("awty.max_crashes", &faults::MAX_CRASHES.to_string())
        .set("awty.history_retention", "0")
}

fn upgrade(old: &Path, new: &Path, mode: &Mode) {
    let mut old = builder(old).with_movable_clock().create();
    old.set_clock(-3 * DAY);
    old.start();
    set_up::set_up(&old);
    old.execute("postgres", &["CREATE DATABASE plain", "CREATE EXTENSION awty"]);
    old.execute(
        "postgres",
        &["CREATE FUNCTION public.none(awty.future_job) RETURNS timestamptz LANGUAGE sql RETURN NULL::timestamptz"],
    );
    old.execute("postgres", &["SELECT awty.register('none', 'public.none')"]);
    for database in DATABASES {
        old.execute(database, &[include_str!("jobs.sql")]);
    }
    let shared = Shared::new(old.socket_directory());
    let clients = shared.start(1);
    for day in [-3, -1, 0] {
        old.set_clock(day * DAY);
        work(&old, &format!("on day {day}"));
    }
    let expected = special_checks(&old, &shared);
    let calls = calls::set_up(&old);

    let mut new = builder(new).without_preload().create();
    if mode.preload {
        new.configure(PRELOAD);
    }
    let version = |cluster: &Cluster| cluster.value::<String>("postgres", "SHOW server_version");
    let (name, from) = (mode.name, version(&old));
    new.upgrade_from(&old, &["--check"]).unwrap_or_else(|printed| panic!("pg_upgrade --check: {printed}"));
    println!("{name}: pg_upgrade --check passes while PostgreSQL {from} works");

    leave(&old, &shared);
    schedule_missed(&old);
    old.stop(Stop::Fast);
    old.start_for_upgrade();
    let before = pictures(&old);
    runs_nothing(&old, &before);
    old.stop(Stop::Fast);

    let began = Instant::now();
    new.upgrade_from(&old, mode.options).unwrap_or_else(|printed| panic!("pg_upgrade {name}: {printed}"));
    let took = began.elapsed().as_secs_f64();

    if mode.preload {
        new.start_for_upgrade();
        runs_nothing(&new, &before);
    } else {
        new.start();
        not_preloaded(&new, &before);
        new.configure(PRELOAD);
    }
    new.restart();
    println!("{name}: PostgreSQL {from} is {} after {took:.1} s of pg_upgrade", version(&new));
    caught_up(&new);
    goes_on(&new, &before, &expected);
    repeats(&new);
    calls::go_on(&new, &calls);

    *shared.server.lock().unwrap() = new.socket_directory().into();
    shared.away.store(false, Ordering::Relaxed);
    work(&new, "in the new server");
    shared.over.store(true, Ordering::Relaxed);
    clients.into_iter().for_each(|client| client.join().unwrap());
    judge(&new, &shared);
    drops_partitions(&new);
}

fn work(cluster: &Cluster, what: &str) {
    let count = "SELECT count(*) FROM awty.future_job_history";
    for database in DATABASES {
        let ended: i64 = cluster.value(database, count);
        let more = format!("SELECT ({count}) > {}", ended + 150);
        cluster.await_sql(database, &format!("checks to end {what} in database {database}"), &more);
    }
}

/// Returns keys of checks, each with a condition. The check must satisfy the condition before and after the upgrade.
fn special_checks(old: &Cluster, shared: &Shared) -> Vec<(&'static str, &'static str)> {
    let states = [
        ("again", "check_count = 1 AND attempt = 0 AND next_check_at > now() + interval '50 minutes'"),
        ("retry", "check_count = 0 AND attempt = 1 AND next_check_at > now() + interval '50 minutes'"),
        ("deadly", "held"),
        ("run", "check_count = 0 AND next_check_at > now() + interval '20 hours'"),
        ("paused", "next_check_at < now() + interval '1 minute'"),
    ];
    for database in DATABASES {
        let mut client = old.client(database, ROLES[0]);
        for (job, _) in states {
            let act = match job {
                "retry" => "error",
                "deadly" => "leave",
                _ => "ok",
            };
            let due = if job == "run" { DAY as f64 } else { 0.0 };
            let args = serde_json::json!({ "act": act, "nap": 0, "again": 0, "times": 99 });
            let sql = "SELECT camp.schedule('special', $1, $1, $2, $3, 'replace')";
            client.execute(sql, &[&job, &due, &args]).unwrap();
        }
        client.batch_execute(REPEAT).unwrap();
        deadlines::set_up(old, database, ROLES[0]);
        for (job, state) in states {
            let sql = format!("SELECT {state} FROM awty.future_job WHERE entity_name = 'special' AND job = '{job}'");
            old.await_sql(database, &format!("the special check \"{job}\""), &sql);
        }
    }
    // PostgreSQL cannot copy a database while sessions are connected.
    leave(old, shared);
    old.execute("postgres", &[&format!("CREATE DATABASE {CLONE} TEMPLATE {}", DATABASES[0])]);
    old.await_sql(CLONE, "the clone to be held", "SELECT database_held FROM awty.status");
    shared.away.store(false, Ordering::Relaxed);
    states.to_vec()
}

fn leave(cluster: &Cluster, shared: &Shared) {
    shared.away.store(true, Ordering::Relaxed);
    let gone = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'campaign')";
    cluster.await_sql("postgres", "the clients to leave", gone);
}

fn schedule_missed(old: &Cluster) {
    for database in DATABASES {
        let mut client = old.client(database, ROLES[0]);
        for job in MISSED {
            let args = serde_json::json!({ "act": "ok", "nap": 0, "again": 0 });
            let sql =
                "SELECT camp.schedule('missed', key::text, $1, 4, $2, 'replace') FROM generate_series(1, 20) AS key";
            client.query(sql, &[&job, &args]).unwrap();
        }
    }
}

fn runs_nothing(cluster: &Cluster, before: &[Picture]) {
    for database in DATABASES {
        let due = "SELECT count(*) = 60 AND max(next_check_at) < now() - interval '2 seconds'
                   FROM awty.future_job WHERE entity_name = 'missed'";
        cluster.await_sql(database, "the missed checks to be due, and still there", due);
        assert_eq!(cluster.psql(database, "SELECT enabled FROM awty.status").trim(), "f", "in a binary upgrade");
    }
    assert_eq!(cluster.pids("awty"), Vec::<i32>::new(), "processes of awty in a binary upgrade");
    picture::compare(before, &pictures(cluster));
}

fn pictures(cluster: &Cluster) -> Vec<Picture> {
    DATABASES.iter().chain(&[CLONE, "postgres"]).map(|database| Picture::of(cluster, database)).collect()
}

fn not_preloaded(new: &Cluster, before: &[Picture]) {
    for database in DATABASES {
        let status =
            "SELECT NOT enabled AND NOT database_held AND why LIKE '%shared_preload_libraries%' FROM awty.status";
        assert!(new.value::<bool>(database, status), "{}", new.psql(database, "SELECT * FROM awty.status"));
        let mut client = new.client(database, ROLES[0]);
        let refused = client.execute("SELECT awty.repeat('run', every => '1 hour')", &[]).unwrap_err();
        let refused = refused.as_db_error().unwrap();
        assert_eq!(refused.code().code(), "55000", "{refused:?}");
        assert!(refused.hint().unwrap().contains("shared_preload_libraries = 'awty'"), "{refused:?}");
    }
    picture::compare(before, &pictures(new));
}

const OVERDUE: &str =
    "SELECT string_agg(DISTINCT f.job, ' ') FROM awty.future_job AS f JOIN awty.job AS j ON j.job = f.job
    WHERE NOT f.held AND j.function_name IS NOT NULL AND f.next_check_at < now() - interval '1 second'";

fn caught_up(new: &Cluster) {
    let began = Instant::now();
    for database in DATABASES {
        new.await_that(&format!("what was due in {database}"), TO_CATCH_UP, || {
            match new.psql(database, OVERDUE).trim() {
                "" | "paused" => Ok(()),
                jobs => Err(format!("overdue are {jobs}")),
            }
        });
        let first = new.value::<f64>(
            database,
            "SELECT extract(epoch FROM min(started_at) - pg_postmaster_start_time())::float8 FROM awty.future_job_history
             WHERE started_at > pg_postmaster_start_time()",
        );
        println!(
            "  {database}: first run {first:.2} s after the start, caught up in {:.1} s",
            began.elapsed().as_secs_f64()
        );
        // Only checks of the paused job and of external workers may still be pending.
        let in_the_way = "SELECT concat_ws(', ', CASE WHEN NOT enabled THEN 'disabled' END, CASE WHEN database_held THEN 'held' END, last_error,
                CASE WHEN why !~ 'job \"(paused|[a-z]+_(out|once)|parcel)\"' THEN why END) FROM awty.status";
        new.await_that(&format!("database {database} to be ready"), TO_CATCH_UP, || {
            match new.psql(database, in_the_way).trim() {
                "" => Ok(()),
                what => Err(what.to_owned()),
            }
        });
    }
    let held = new.log_since(0).matches("awty.adopt()").count();
    assert_eq!(held, 1, "only the clone, which nobody has adopted, is held");
    assert!(new.value::<bool>(CLONE, "SELECT database_held FROM awty.status"), "a clone that was not adopted runs");
    let ready = "SELECT EXISTS (SELECT FROM awty_internal.origin) AND NOT database_held FROM awty.status";
    assert!(new.value::<bool>("postgres", ready));
}

fn goes_on(new: &Cluster, before: &[Picture], expected: &[(&str, &str)]) {
    for (database, before) in DATABASES.iter().zip(before) {
        let outcomes = "SELECT string_agg(job || ' ' || outcome || ' ' || n, ', ' ORDER BY job) FROM
            (SELECT job, outcome, count(*) AS n FROM awty.future_job_history WHERE entity_name = 'missed' GROUP BY 1, 2) AS c";
        assert_eq!(new.psql(database, outcomes).trim(), "next done 20, run done 20, skip missed 20");
        for (job, state) in expected {
            let sql = format!("SELECT {state} FROM awty.future_job WHERE entity_name = 'special' AND job = '{job}'");
            new.await_sql(database, &format!("the special check \"{job}\" to be as it was"), &sql);
        }
        let mut client = new.client(database, ROLES[0]);
        let args = serde_json::json!({ "act": "ok", "nap": 0, "again": 0 });
        let sql = "SELECT camp.schedule('new', 'new', 'run', 0, $1, 'replace')";
        let id: i64 = client.query_one(sql, &[&args]).unwrap().get(0);
        assert!(id > before.last_id, "id {id} after {}", before.last_id);
        let sql = format!("SELECT outcome = 'done' FROM awty.future_job_history WHERE id = {id}");
        new.await_sql(database, "a new check to run", &sql);

        client.batch_execute("SELECT awty.cancel('special', 'again'), awty.cancel('special', 'retry')").unwrap();
        let sql = "SELECT string_agg(job || check_count || attempts, ' ' ORDER BY job) FROM awty.future_job_history
                   WHERE entity_name = 'special' AND outcome = 'cancelled'";
        assert_eq!(new.psql(database, sql).trim(), "again11 retry01");
        client.batch_execute("SELECT awty.resume('paused')").unwrap();
        let sql = "SELECT outcome = 'done' FROM awty.future_job_history WHERE job = 'paused'";
        new.await_sql(database, "the resumed job to run", sql);
        client
            .batch_execute(
                "SELECT awty.release(entity_name, entity_key, job) FROM awty.future_job WHERE held AND job = 'deadly'",
            )
            .unwrap();
        new.await_sql(
            database,
            "the released check to be held again",
            "SELECT held FROM awty.future_job WHERE job = 'deadly'",
        );
        let ahead = "SELECT count(*) > 1 AND NOT EXISTS (SELECT FROM awty_internal.future_job_history_default) FROM pg_inherits
            WHERE inhparent = 'awty.future_job_history'::regclass
              AND inhrelid::regclass::text > 'awty_internal.future_job_history_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')";
        assert!(new.value::<bool>(database, ahead), "partitions are made ahead");
        // An inspection finds the functions of rules by name and signature, because pg_upgrade gives them new OIDs.
        let found = "SELECT bool_and(coalesce(p.oid::regprocedure::text LIKE 'kept.awty_kept%', false)) AND count(*) = 8
            FROM awty_internal.rule_function AS f LEFT JOIN pg_proc AS p ON p.oid = f.function WHERE f.rule LIKE 'kept%' AND f.argument <> 'key'";
        new.await_sql(database, "the functions of the rules to be found", found);
        deadlines::go_on(new, database, ROLES[0]);
        client.batch_execute("INSERT INTO kept.parcel (id, since) VALUES (1, now() - interval '2 hours')").unwrap();
        let late = "SELECT count(*) = 1 FROM awty.alert WHERE rule = 'kept' AND cleared_at IS NULL";
        new.await_sql(database, "the alert of the rule", late);
        client.batch_execute("UPDATE kept.parcel SET state = 'there'").unwrap();
        let still = "SELECT count(*) FROM awty.alert WHERE rule = 'kept' AND cleared_at IS NULL";
        assert_eq!(new.value::<i64>(database, still), 0, "the alert is cleared");
    }
}

fn repeats(new: &Cluster) {
    for database in DATABASES {
        let ticks = "SELECT count(*) >= 3 FROM awty.future_job_history WHERE job = 'tick' AND first_check_at > pg_postmaster_start_time()";
        new.await_sql(database, "the repetition to go on", ticks);
        let state = "SELECT string_agg(concat_ws(' ', job, n, held, why), ', ' ORDER BY job) FROM (
                SELECT r.job, count(f.id) AS n, bool_or(f.held) AS held, max(h.note) AS why
                FROM awty_internal.repetition AS r LEFT JOIN awty.future_job AS f USING (entity_name, entity_key, job)
                LEFT JOIN awty_internal.hold AS h ON h.check_id = f.id
                WHERE r.entity_key = 'upgrade' GROUP BY r.job) AS s";
        let expected = "nightly 1 f, still 1 t until after the upgrade, tick 1 f";
        assert_eq!(new.psql(database, state).trim(), expected, "{database}");
        let slots = "SELECT count(*) = count(DISTINCT first_check_at) AND bool_and(outcome = 'done')
                         AND count(*) = extract(epoch FROM max(first_check_at) - min(first_check_at)) / 5 + 1
                     FROM awty.future_job_history WHERE job = 'tick'";
        let all = "SELECT string_agg(concat_ws(' ', first_check_at, outcome), E'\n' ORDER BY id) FROM awty.future_job_history WHERE job = 'tick'";
        assert!(new.value::<bool>(database, slots), "{}", new.psql(database, all));
        let mut client = new.client(database, ROLES[0]);
        client.batch_execute("SELECT awty.release('again', 'upgrade', 'still')").unwrap();
        let goes_on = "SELECT count(*) >= 2 FROM awty.future_job_history WHERE job = 'still' AND outcome = 'done'";
        new.await_sql(database, "the released repetition to go on", goes_on);
    }
}

fn judge(new: &Cluster, shared: &Shared) {
    shared.look_for_faults_of(new);
    let mut violations: Vec<String> = shared.seen.lock().unwrap().iter().map(|seen| format!("{seen:?}")).collect();
    for (number, database) in DATABASES.iter().enumerate() {
        new.await_sql(database, "the load to be done", &format!("SELECT ({OVERDUE}) IS NULL"));
        let told = shared.told[number].lock().unwrap().clone();
        let evidence = evidence::read(&mut new.superuser(database), told, false).unwrap();
        violations.extend(checker::judge(&evidence).iter().map(|violation| format!("{violation:?}")));
        println!(
            "  {database}: {} ended, {} effects, {} pending",
            evidence.ended.len(),
            evidence.effects.len(),
            evidence.pending.len()
        );
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

fn drops_partitions(new: &Cluster) {
    new.configure("awty.history_retention = '2d'");
    new.reload();
    let gone = "SELECT NOT EXISTS (SELECT FROM awty.future_job_history WHERE finished_at < now() - interval '3 days')
                   AND EXISTS (SELECT FROM awty.future_job_history WHERE finished_at < now() - interval '12 hours')";
    for database in DATABASES {
        let dropped = poll("old partitions to be dropped", PATIENCE, || {
            new.client(database, ROLES[0]).batch_execute("SELECT awty.pause('run'), awty.resume('run')").unwrap();
            if new.value::<bool>(database, gone) { Ok(()) } else { Err("still there".into()) }
        });
        dropped.unwrap();
    }
}
