use awty_testkit::fixture::{End, Refusal, refusal};
use awty_testkit::postgres::Client;
use awty_testkit::postgres::types::FromSql;
use awty_testkit::{Builder, Cluster, PATIENCE};
use std::time::Duration;

/// Delay of a check, in seconds, that only a wait for another run can cause. A busy machine alone causes shorter
/// delays.
pub const HELD_UP: f64 = 20.0;

pub const DB: &str = "postgres";

pub struct Field {
    pub cluster: Cluster,
}

impl Field {
    pub fn new() -> Self {
        Self::with(Cluster::builder())
    }

    pub fn with(builder: Builder) -> Self {
        let field = Field { cluster: builder.start() };
        field.cluster.create_extension(DB);
        field.cluster.create_user(DB, "alice");
        field.cluster.create_user(DB, "mallory");
        field
    }

    #[track_caller]
    pub fn client(&self, role: &str) -> Client {
        let mut client = self.cluster.client(DB, role);
        client.batch_execute("SET statement_timeout = '5min'").unwrap();
        client
    }

    #[track_caller]
    pub fn sql(&self, role: &str, sql: &str) {
        if let Err(error) = self.client(role).batch_execute(sql) {
            panic!("{role}: {sql}: {error:?}");
        }
    }

    #[track_caller]
    pub fn one<T: for<'a> FromSql<'a>>(&self, role: &str, sql: &str) -> T {
        let row = self.client(role).query_one(sql, &[]);
        row.unwrap_or_else(|error| panic!("{role}: {sql}: {error:?}")).get(0)
    }

    #[track_caller]
    pub fn refused(&self, role: &str, sql: &str, sqlstate: &str) -> Refusal {
        let refusal = refusal(&mut self.client(role), sql);
        assert_eq!(refusal.sqlstate, sqlstate, "{role}: {sql}: {refusal:?}");
        refusal
    }

    #[track_caller]
    pub fn job(&self, role: &str, name: &str, body: &str) {
        self.job_with(role, name, body, "max_attempts => 1");
    }

    #[track_caller]
    pub fn job_with(&self, role: &str, name: &str, body: &str, options: &str) {
        self.cluster.create_job(role, name, body, &format!(", {options}"));
    }

    #[track_caller]
    pub fn schedule(&self, role: &str, job: &str, key: &str) -> i64 {
        self.one(role, &format!("SELECT awty.schedule('thing', '{key}', '{job}', at => now())"))
    }

    #[track_caller]
    pub fn end_of(&self, id: i64) -> End {
        self.end_within(id, PATIENCE)
    }

    #[track_caller]
    pub fn end_within(&self, id: i64, within: Duration) -> End {
        self.cluster.await_end(&format!("the end of check {id}"), within, &format!("id = {id}"))
    }

    #[track_caller]
    pub fn run(&self, role: &str, job: &str) -> End {
        let id = self.schedule(role, job, job);
        self.end_of(id)
    }

    #[track_caller]
    pub fn try_jobs(&self, role: &str, jobs: &[(&str, String)]) -> Vec<End> {
        jobs.iter().for_each(|(name, body)| self.job(role, name, body));
        let ids: Vec<i64> = jobs.iter().map(|(name, _)| self.schedule(role, name, name)).collect();
        ids.into_iter().map(|id| self.end_of(id)).collect()
    }

    #[track_caller]
    pub fn try_job(&self, role: &str, name: &str, body: &str) -> End {
        self.job(role, name, body);
        self.run(role, name)
    }

    #[track_caller]
    pub fn alice_goes_on(&self) {
        let known: bool = self.one("postgres", "SELECT EXISTS (SELECT FROM awty.job WHERE job = 'innocent')");
        if !known {
            self.job("alice", "innocent", "BEGIN RETURN NULL; END");
        }
        let id = self.schedule("alice", "innocent", "innocent");
        self.end_of(id).is_done();
        let lateness: f64 = self.one(
            "postgres",
            &format!("SELECT extract(epoch FROM lateness)::float8 FROM awty.future_job_history WHERE id = {id}"),
        );
        assert!(lateness < HELD_UP, "alice's check started {lateness} s late");
    }

    #[track_caller]
    pub fn await_sign(&self, sign: i32) {
        self.cluster.await_sql(
            DB,
            &format!("sign {sign}"),
            &format!("SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND objid = {sign} AND granted"),
        );
    }

    /// Waits until all checks of the external worker's job can be claimed.
    #[track_caller]
    pub fn await_claimable(&self, job: &str) {
        let due = format!(
            "SELECT bool_and(next_check_at <= clock_timestamp()) AND awty.next_claim_in('{{{job}}}') = '0' FROM awty.future_job WHERE job = '{job}'"
        );
        self.cluster.await_sql(DB, "the checks to be due", &due);
    }
}

/// Returns a query of whether a session waits for a lock. Leaves out locks on awty's own tables, for which a call may wait
/// before it has looked up its job: the maintainer makes partitions after a start.
pub fn waits(pid: i32) -> String {
    format!(
        "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = {pid} AND NOT granted
            AND (relation IS NULL OR relation::regclass::text NOT LIKE 'awty%'))"
    )
}

#[track_caller]
pub fn answer(client: &mut Client, sql: &str) -> String {
    match client.batch_execute(sql) {
        Ok(()) => String::new(),
        Err(error) => error.as_db_error().unwrap_or_else(|| panic!("{sql}: {error:?}")).code().code().into(),
    }
}
