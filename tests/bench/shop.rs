//! Most rows of the results table compare awty's runs with *the ceiling*, a single SQL statement that does the same
//! work.
//!
//! Invariant: a measurement starts after VACUUM and a checkpoint, and panics if a check has not ended. awty's times
//! come from awty's history, so that they do not include the client's time.

use crate::cpu::{of_workers, session};
use crate::stats::Spent;
use awty_testkit::postgres::{Client, Row};
use awty_testkit::{Cluster, poll};
use chrono::{DateTime, Utc};
use std::time::{Duration, Instant};

pub const ORDERS: u32 = 200_000;
const PATIENCE: Duration = Duration::from_secs(600);

pub const SETTINGS: [(&str, &str); 7] = [
    ("shared_buffers", "2GB"),
    ("maintenance_work_mem", "512MB"),
    ("max_wal_size", "16GB"),
    ("checkpoint_timeout", "1h"),
    ("max_worker_processes", "16"),
    ("max_connections", "100"),
    // Turns JIT off, because JIT compilation of the long statement in `CEILING` would take more time than JIT saves.
    ("jit", "off"),
];

pub struct Shop {
    pub cluster: Cluster,
}

#[derive(Debug, Clone, Copy)]
pub struct Ran {
    pub spent: Spent,
    pub wal: f64,
}

impl Shop {
    pub fn open(settings: &[(&str, &str)]) -> Self {
        Self::with_orders(settings, ORDERS)
    }

    pub fn with_orders(settings: &[(&str, &str)], orders: u32) -> Self {
        // Clusters of tests have fsync off.
        let builder = Cluster::builder().set("fsync", "on");
        let builder = SETTINGS.iter().chain(settings).fold(builder, |all, (name, value)| all.set(name, value));
        let shop = Shop { cluster: builder.start() };
        shop.cluster.execute("postgres", &["CREATE ROLE shop LOGIN", "CREATE ROLE other LOGIN"]);
        shop.furnish("postgres", orders);
        shop
    }

    pub fn add(&self, database: &str, orders: u32) {
        self.cluster.execute("postgres", &[&format!("CREATE DATABASE {database}")]);
        self.furnish(database, orders);
    }

    fn furnish(&self, database: &str, orders: u32) {
        self.cluster.create_extension(database);
        self.cluster.execute(database, &[include_str!("shop.sql")]);
        self.add_orders(database, 1, orders);
        self.cluster.execute(database, &["VACUUM ANALYZE shop.orders"]);
    }

    pub fn add_orders(&self, database: &str, from: u32, to: u32) {
        let insert = format!(
            "INSERT INTO shop.orders SELECT n, CASE WHEN n % 10 = 0 THEN 'UNSHIPPED' ELSE 'SHIPPED' END, now() - interval '4 h', \
             'customer ' || n % 1000 FROM generate_series({from}, {to}) AS n"
        );
        self.cluster.execute(database, &[&insert]);
    }

    pub fn client(&self, database: &str) -> Client {
        self.cluster.superuser(database)
    }

    pub fn set(&self, name: &str, value: &str) {
        self.cluster.execute("postgres", &[&format!("ALTER SYSTEM SET {name} = '{value}'"), "SELECT pg_reload_conf()"]);
        let sql = format!("SELECT current_setting('{name}') = '{value}'");
        self.cluster.await_sql("postgres", &format!("{name} to be {value}"), &sql);
    }

    /// PostgreSQL wakes the WAL writer for nearly each asynchronous commit before 17, so the goals differ.
    pub fn goal(&self, before_17: f64, since_17: f64) -> f64 {
        let sql = "SELECT current_setting('server_version_num')::int >= 170000";
        if self.cluster.value("postgres", sql) { since_17 } else { before_17 }
    }

    pub fn tidy(&self, database: &str) {
        let statements = ["TRUNCATE awty.future_job_history, shop.alert", "VACUUM awty.future_job", "CHECKPOINT"];
        self.cluster.execute(database, &statements);
    }

    fn schedule(client: &mut Client, jobs: &[&str], n: u32, seconds: f64) -> (DateTime<Utc>, Vec<i64>) {
        let sql = "SELECT max(awty.schedule('orders', n::text, ($1::text[])[n % cardinality($1::text[]) + 1], at => slot)), slot
                   FROM (SELECT awty.next_slot(clock_timestamp() + $3 * interval '1 s') AS slot) AS s,
                        generate_series(1, $2) AS n GROUP BY slot, n % cardinality($1::text[])";
        let rows = client.query(sql, &[&jobs, &(n as i32), &seconds]).unwrap();
        client.batch_execute("ANALYZE awty.future_job").unwrap();
        (rows[0].get(1), rows.iter().map(|row| row.get(0)).collect())
    }

    pub fn run_due(&self, database: &str, jobs: &[&str], n: u32) -> Ran {
        self.tidy(database);
        let mut client = self.client(database);
        let mut lead = 0.3 + f64::from(n) / 20_000.0;
        let (slot, last) = loop {
            let (slot, last) = Self::schedule(&mut client, jobs, n, lead);
            let left: f64 =
                one(&mut client, "SELECT extract(epoch FROM $1 - clock_timestamp())::float8", &[&slot]).get(0);
            if left > 0.2 {
                break (slot, last);
            }
            lead *= 2.0;
            self.await_done(&mut client, &last);
            self.tidy(database);
        };
        let wal = wal_position(&mut client);
        let ((), cpu) = of_workers(self, || {
            sleep_until(&mut client, slot);
            self.await_done(&mut client, &last);
        });
        let sql = "SELECT extract(epoch FROM max(finished_at) - min(started_at))::float8, count(*), \
                   count(*) FILTER (WHERE outcome <> 'done'), (SELECT count(*) FROM shop.alert) FROM awty.future_job_history";
        let counted = poll("all checks to be in the history", PATIENCE, || {
            let row = one(&mut client, sql, &[]);
            let there = row.get::<_, i64>(1);
            if there == i64::from(n) { Ok(row) } else { Err(format!("{there} of {n}")) }
        });
        let row = counted.unwrap_or_else(|message| panic!("{message}"));
        let (bad, alerts): (i64, i64) = (row.get(2), row.get(3));
        assert_eq!((bad, alerts), (0, i64::from(n / 10)), "checks that were not done, and alerts");
        Ran { spent: Spent { clock: row.get(0), cpu }, wal: wal_position(&mut client) - wal }
    }

    pub fn await_done(&self, client: &mut Client, checks: &[i64]) {
        let sql = "SELECT count(*) FROM awty.future_job WHERE id = ANY ($1)";
        let done = poll("the checks to be done", PATIENCE, || match one(client, sql, &[&checks]).get::<_, i64>(0) {
            0 => Ok(()),
            left => Err(format!("{left} of the last checks are pending")),
        });
        done.unwrap_or_else(|message| panic!("{message}\n{}", self.cluster.log_tail()));
    }

    pub fn ceiling(&self, database: &str, jobs: &[&str], n: u32) -> Ran {
        self.by_hand(database, jobs, n, CEILING, n / 10)
    }

    pub fn tables_alone(&self, database: &str, n: u32) -> Ran {
        let statement = CEILING.replace("shop.unshipped(due.j)", "NULL::timestamptz");
        self.by_hand(database, &["one"], n, &statement, 0)
    }

    pub fn loop_with_commits(&self, database: &str, n: u32) -> Ran {
        self.cluster.execute(database, &[LOOP]);
        self.by_hand(database, &["one"], n, "CALL public.run_each($1, $2)", n / 10)
    }

    fn by_hand(&self, database: &str, jobs: &[&str], n: u32, statement: &str, alerts: u32) -> Ran {
        self.tidy(database);
        let mut client = self.client(database);
        let (slot, _) = Self::schedule(&mut client, jobs, n, 3600.0);
        let mut sessions: Vec<_> = jobs[1..].iter().map(|_| self.client(database)).collect();
        let wal = wal_position(&mut client);
        sessions.insert(0, client);
        let prepared: Vec<_> = sessions
            .iter_mut()
            .zip(jobs)
            .map(|(session, job)| (session.prepare(statement).unwrap(), session, job))
            .collect();
        let began = Instant::now();
        let cpu = std::thread::scope(|scope| {
            let run = |(statement, client, job): (_, &mut Client, &&str)| {
                session(client, |client| client.execute(&statement, &[&slot, job]).unwrap()).cpu
            };
            let others: Vec<_> = prepared.into_iter().map(|session| scope.spawn(move || run(session))).collect();
            others.into_iter().map(|other| other.join().unwrap()).sum::<f64>()
        });
        let spent = Spent { clock: began.elapsed().as_secs_f64(), cpu };
        let mut client = sessions.swap_remove(0);
        let wal = wal_position(&mut client) - wal;
        let sql = "SELECT (SELECT count(*) FROM awty.future_job_history), (SELECT count(*) FROM shop.alert)";
        let row = one(&mut client, sql, &[]);
        assert_eq!(
            (row.get::<_, i64>(0), row.get::<_, i64>(1)),
            (i64::from(n), i64::from(alerts)),
            "history rows and alerts"
        );
        Ran { spent, wal }
    }
}

/// Unlike awty, this statement applies no limits, claims no checks, and does not isolate checks from each other.
const CEILING: &str = "
WITH due AS (
    DELETE FROM awty.future_job AS f WHERE f.job = $2 AND f.next_check_at <= $1 AND NOT f.held RETURNING f.*, f AS j
), ran AS MATERIALIZED (
    SELECT due.*, clock_timestamp() AS started_at, shop.unshipped(due.j) AS again FROM due
)
INSERT INTO awty.future_job_history (id, job, entity_name, entity_key, args, first_check_at, next_check_at, scheduled_by,
    scheduled_at, started_at, finished_at, run_time, lateness, check_count, attempts, outcome, role)
SELECT id, job, entity_name, entity_key, args, first_check_at, next_check_at, scheduled_by,
    scheduled_at, started_at, clock_timestamp(), clock_timestamp() - started_at, started_at - next_check_at, check_count + 1, 1,
    CASE WHEN again IS NULL THEN 'done' ELSE 'past' END, scheduled_by
FROM ran";

const LOOP: &str = "
CREATE OR REPLACE PROCEDURE public.run_each(slot timestamptz, job_name text) LANGUAGE plpgsql AS $$
DECLARE
    due bigint[] := ARRAY(SELECT id FROM awty.future_job WHERE job = job_name AND next_check_at <= slot AND NOT held);
    check_id bigint; j awty.future_job; again timestamptz; began timestamptz;
BEGIN
    SET synchronous_commit = off;
    FOREACH check_id IN ARRAY due LOOP
        DELETE FROM awty.future_job AS f WHERE f.id = check_id RETURNING f.* INTO j;
        began := clock_timestamp();
        again := shop.unshipped(j);
        INSERT INTO awty.future_job_history (id, job, entity_name, entity_key, args, first_check_at, next_check_at, scheduled_by,
            scheduled_at, started_at, finished_at, run_time, lateness, check_count, attempts, outcome, role)
        VALUES (j.id, j.job, j.entity_name, j.entity_key, j.args, j.first_check_at, j.next_check_at, j.scheduled_by,
            j.scheduled_at, began, clock_timestamp(), clock_timestamp() - began, began - j.next_check_at, j.check_count + 1, 1,
            CASE WHEN again IS NULL THEN 'done' ELSE 'past' END, j.scheduled_by);
        COMMIT;
    END LOOP;
END $$";

pub fn one(client: &mut Client, sql: &str, parameters: &[&(dyn awty_testkit::postgres::types::ToSql + Sync)]) -> Row {
    client.query_one(sql, parameters).unwrap_or_else(|error| panic!("{sql}: {error:?}"))
}

pub fn wal_position(client: &mut Client) -> f64 {
    one(client, "SELECT (pg_current_wal_insert_lsn() - '0/0')::float8", &[]).get(0)
}

pub fn sleep_until(client: &mut Client, time: DateTime<Utc>) {
    client.execute("SELECT pg_sleep_until($1)", &[&time]).unwrap();
}
