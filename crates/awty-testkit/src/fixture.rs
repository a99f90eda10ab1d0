#![allow(clippy::unwrap_used, clippy::expect_used)] // a panic is how a test fails

use crate::{Cluster, PATIENCE};
use chrono::{DateTime, Utc};
use postgres::{Client, SimpleQueryMessage};
use std::time::{Duration, Instant};

pub const NOTE: &str = "BEGIN INSERT INTO shop.note (entity_key) VALUES (j.entity_key); RETURN NULL; END";

pub const NOTE_SET: &str = "BEGIN INSERT INTO shop.note (entity_key) SELECT c.entity_key FROM unnest(j) AS c;
    RETURN array_fill(NULL::timestamptz, ARRAY[cardinality(j)]); END";

/// SQL that makes a job's function wait while a test holds an advisory lock (the *gate*).
pub const GATE: &str = "PERFORM pg_advisory_xact_lock_shared(42);";

/// SQL that makes a job's function wait while a table (the *door*) has a row. The row survives a restart.
pub const DOOR: &str = "WHILE EXISTS (SELECT FROM shop.closed_door) LOOP PERFORM pg_sleep(0.05); END LOOP;";

const AT_GATE: &str = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)";

pub struct Shop {
    pub cluster: Cluster,
}

#[derive(Debug)]
pub struct End {
    pub id: i64,
    pub outcome: String,
    pub sqlstate: Option<String>,
    pub message: Option<String>,
    pub check_count: i32,
    pub attempts: i32,
    pub first: DateTime<Utc>,
    pub slot: DateTime<Utc>,
    pub started: Option<DateTime<Utc>>,
    pub run_time: f64,
}

impl End {
    pub fn why(&self) -> (&str, Option<&str>) {
        (&self.outcome, self.sqlstate.as_deref())
    }

    pub fn message(&self) -> &str {
        self.message.as_deref().unwrap_or_default()
    }

    #[track_caller]
    pub fn started(&self) -> DateTime<Utc> {
        self.started.unwrap_or_else(|| panic!("it ended without a run: {self:?}"))
    }

    #[track_caller]
    pub fn is_done(&self) {
        assert_eq!(self.why(), ("done", None), "{self:?}");
    }

    #[track_caller]
    pub fn failed_with(&self, sqlstate: &str) {
        assert_eq!(self.why(), ("failed", Some(sqlstate)), "{self:?}");
    }
}

#[derive(Debug)]
pub struct Refusal {
    pub sqlstate: String,
    pub message: String,
    pub detail: String,
    pub hint: String,
}

#[track_caller]
pub fn refusal(client: &mut Client, script: &str) -> Refusal {
    let Err(error) = client.batch_execute(script) else { panic!("this was not refused: {script}") };
    let db = error.as_db_error().unwrap_or_else(|| panic!("{script}: {error:?}"));
    Refusal {
        sqlstate: db.code().code().into(),
        message: db.message().into(),
        detail: db.detail().unwrap_or_default().into(),
        hint: db.hint().unwrap_or_default().into(),
    }
}

impl Cluster {
    #[track_caller]
    pub fn run_as(&self, role: &str, script: &str) {
        if let Err(error) = self.client("postgres", role).batch_execute(script) {
            panic!("{role}: {script}: {error:?}");
        }
    }

    /// The function's `body` sees the check as `j`. `options` are further arguments of `awty.register()`, such as
    /// `", timeout => '1 s'"`.
    #[track_caller]
    pub fn create_job(&self, role: &str, name: &str, body: &str, options: &str) {
        self.create_function_job(role, name, ["awty.future_job", "timestamptz"], body, options);
    }

    #[track_caller]
    fn create_function_job(&self, role: &str, name: &str, [of, to]: [&str; 2], body: &str, options: &str) {
        let script = format!(
            "CREATE FUNCTION {role}.{name}(j {of}) RETURNS {to} LANGUAGE plpgsql AS $job$ {body} $job$;
             SELECT awty.register('{name}', '{role}.{name}'{options})"
        );
        self.run_as(role, &script);
    }

    #[track_caller]
    pub fn ends(&self, condition: &str) -> Vec<End> {
        self.ends_by(&mut self.superuser("postgres"), condition)
            .unwrap_or_else(|error| panic!("ends with {condition}: {error:?}"))
    }

    fn ends_by(&self, client: &mut Client, condition: &str) -> Result<Vec<End>, postgres::Error> {
        let sql = format!(
            "SELECT id, outcome::text, sqlstate::text, message, check_count, attempts, first_check_at, next_check_at,
                    started_at, extract(epoch FROM run_time)::float8
             FROM awty.future_job_history WHERE {condition} ORDER BY id"
        );
        let rows = client.query(&sql, &[])?;
        let end = |row: &postgres::Row| End {
            id: row.get(0),
            outcome: row.get(1),
            sqlstate: row.get(2),
            message: row.get(3),
            check_count: row.get(4),
            attempts: row.get(5),
            first: row.get(6),
            slot: row.get(7),
            started: row.get(8),
            run_time: row.get(9),
        };
        Ok(rows.iter().map(end).collect())
    }

    /// Waits for the only row of the history that fits `condition`.
    #[track_caller]
    pub fn await_end(&self, what: &str, within: Duration, condition: &str) -> End {
        let pending = format!("SELECT p::text FROM awty.future_job AS p WHERE {condition}");
        let mut client = self.superuser("postgres");
        self.await_that(what, within, || {
            if client.is_closed() {
                client = self.superuser("postgres"); // the server may have been restarted
            }
            let mut ends = self.ends_by(&mut client, condition).map_err(|error| format!("{error:?}"))?;
            match ends.len() {
                1 => Ok(ends.remove(0)),
                0 => {
                    let rows = client.query(&pending, &[]).map_err(|error| format!("{error:?}"))?;
                    Err(format!("pending: {:?}", rows.iter().map(|row| row.get(0)).collect::<Vec<String>>()))
                }
                _ => Err(format!("{ends:?}")),
            }
        })
    }
}

impl Shop {
    pub fn open() -> Self {
        Self::on(Cluster::builder().start())
    }

    pub fn on(cluster: Cluster) -> Self {
        cluster.create_extension("postgres");
        cluster.create_user("postgres", "shop");
        let shop = Self { cluster };
        shop.run(
            "CREATE TABLE shop.note (n integer GENERATED ALWAYS AS IDENTITY, entity_key text, what text);
             CREATE TABLE shop.closed_door (closed boolean)",
        );
        shop
    }

    pub fn client(&self) -> Client {
        self.cluster.client("postgres", "shop")
    }

    #[track_caller]
    pub fn run(&self, script: &str) {
        self.cluster.run_as("shop", script);
    }

    /// Replaces `{first}` in `statements` by a future time, runs them, and returns the time. If the time passes before
    /// the statements end, tries again with a later time.
    #[track_caller]
    pub fn ahead(&self, seconds: i32, statements: &str) -> DateTime<Utc> {
        let first = format!("(date_trunc('second', now()) + interval '{seconds} s')");
        let script = format!(
            "SELECT to_char({first} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'); {};
             DO $$BEGIN IF clock_timestamp() >= {first} THEN RAISE 'too slow'; END IF; END$$",
            statements.replace("{first}", &first)
        );
        let started = Instant::now();
        let answers = match self.client().simple_query(&script) {
            // The statements may have failed because the time has already passed.
            Err(_) if started.elapsed().as_secs() + 1 >= seconds as u64 => return self.ahead(2 * seconds, statements),
            answers => answers.unwrap_or_else(|error| panic!("{script}: {error:?}")),
        };
        let time = answers.iter().find_map(|answer| match answer {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        time.unwrap().parse().unwrap()
    }

    #[track_caller]
    pub fn job(&self, name: &str, body: &str, options: &str) {
        self.cluster.create_job("shop", name, body, options);
    }

    /// In the function's body, `j` is the array of checks.
    #[track_caller]
    pub fn set_job(&self, name: &str, body: &str, options: &str) {
        self.cluster.create_function_job("shop", name, ["awty.future_job[]", "timestamptz[]"], body, options);
    }

    /// Makes each run with [`GATE`] wait until the returned client is dropped.
    pub fn close_gate(&self) -> Client {
        let mut holder = self.client();
        holder.batch_execute("SELECT pg_advisory_lock(42)").unwrap();
        holder
    }

    pub fn is_at_gate(&self) -> bool {
        self.cluster.value("postgres", AT_GATE)
    }

    #[track_caller]
    pub fn await_at_gate(&self) {
        self.await_true("a run at the gate", AT_GATE);
    }

    pub fn close_door(&self) {
        self.run("INSERT INTO shop.closed_door VALUES (true)");
    }

    #[track_caller]
    pub fn await_at_door(&self) {
        let sql = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'awty worker' AND wait_event = 'PgSleep')";
        self.await_true("a run at the door", sql);
    }

    pub fn open_door(&self) {
        self.run("DELETE FROM shop.closed_door");
    }

    /// `when` is SQL for the arguments that set the due time, such as `"after => '1 s'"`.
    #[track_caller]
    pub fn schedule(&self, key: &str, job: &str, when: &str) -> i64 {
        let sql = format!("SELECT awty.schedule('orders', $1, $2, {when})");
        let row = self.client().query_one(&sql, &[&key, &job]);
        row.unwrap_or_else(|error| panic!("{sql}: {error:?}")).get(0)
    }

    #[track_caller]
    pub fn end_of(&self, key: &str) -> End {
        self.end_within(key, PATIENCE)
    }

    #[track_caller]
    pub fn end_within(&self, key: &str, deadline: Duration) -> End {
        let condition = format!("entity_name = 'orders' AND entity_key = '{key}'");
        self.cluster.await_end(&format!("order {key} in the history"), deadline, &condition)
    }

    pub fn ends(&self, key: &str) -> Vec<End> {
        self.cluster.ends(&format!("entity_name = 'orders' AND entity_key = '{key}'"))
    }

    pub fn pending(&self, key: &str) -> String {
        let sql = format!("SELECT p FROM awty.future_job AS p WHERE entity_key = '{key}'");
        self.cluster.psql("postgres", &sql).trim().to_owned()
    }

    pub fn notes(&self, key: &str) -> i64 {
        self.cluster.value("postgres", &format!("SELECT count(*) FROM shop.note WHERE entity_key = '{key}'"))
    }

    #[track_caller]
    pub fn await_true(&self, what: &str, sql: &str) {
        self.cluster.await_sql("postgres", what, sql);
    }

    #[track_caller]
    pub fn await_all_ended(&self) {
        self.await_true("every check to have ended", "SELECT NOT EXISTS (SELECT FROM awty.future_job)");
    }

    /// Schedules the check and reads its due time in one transaction, because the check could run between two
    /// transactions.
    #[track_caller]
    pub fn schedule_for(&self, key: &str, job: &str, when: &str) -> DateTime<Utc> {
        let mut client = self.client();
        let mut transaction = client.transaction().unwrap();
        let sql = format!("SELECT awty.schedule('orders', $1, $2, {when})");
        transaction.execute(&sql, &[&key, &job]).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let slot =
            "SELECT next_check_at FROM awty.future_job WHERE entity_name = 'orders' AND entity_key = $1 AND job = $2";
        let slot = transaction.query_one(slot, &[&key, &job]).unwrap().get(0);
        transaction.commit().unwrap();
        slot
    }

    /// Sets the server's movable clock to two seconds after `time`.
    #[track_caller]
    pub fn pass(&self, time: DateTime<Utc>) {
        self.cluster.set_clock((time - Utc::now()).num_seconds() + 2);
    }

    #[track_caller]
    pub fn await_workers_gone(&self) {
        self.await_true("the workers to leave", "SELECT workers = 0 FROM awty.status");
    }

    #[track_caller]
    pub fn await_time(&self, time: DateTime<Utc>, seconds: i64) {
        let then = time + chrono::TimeDelta::seconds(seconds);
        let late = || if Utc::now() > then { Ok(()) } else { Err("not yet".into()) };
        self.cluster.await_that(&format!("{then}"), PATIENCE, late);
    }

    pub fn ready_at(&self) -> DateTime<Utc> {
        ready_at(&self.cluster)
    }

    pub fn slot_of(&self, key: &str) -> DateTime<Utc> {
        self.cluster.value("postgres", &format!("SELECT next_check_at FROM awty.future_job WHERE entity_key = '{key}'"))
    }
}

pub fn ready_at(cluster: &Cluster) -> DateTime<Utc> {
    let log = cluster.log_since(0);
    let line = log.lines().rfind(|line| line.contains("database system is ready to accept connections"));
    let stamp = line.and_then(|line| line.split(" UTC ").next()).expect("no such line in the log, or not in UTC");
    chrono::NaiveDateTime::parse_from_str(stamp, "%Y-%m-%d %H:%M:%S%.f").unwrap().and_utc()
}
