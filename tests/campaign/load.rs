//! Invariant: a client's log contains exactly the confirmed commits. After a broken connection, the client learns from
//! the transaction's row in `camp.placed` whether the transaction committed.

use crate::checker::{Told, Violation};
use crate::integrity::{LogMark, internal_errors};
use crate::ledger::Work;
use crate::outside;
use crate::random::Random;
use crate::repeat;
use awty_testkit::Cluster;
use awty_testkit::postgres::{Client, Config, Error, NoTls};
use chrono::Utc;
use std::error::Error as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const STATEMENT_TIMEOUT: Duration = awty_testkit::PATIENCE;

pub const DATABASES: [&str; 3] = ["one", "two", "three"];
pub const ROLES: [&str; 4] = ["alice", "bob", "carol", "dave"];

/// Only the module `faults` schedules checks for this role.
pub const ERIN: &str = "erin";

const PACE: Duration = Duration::from_millis(120);

pub struct Shared {
    pub server: Mutex<PathBuf>,
    pub away: AtomicBool,
    pub over: AtomicBool,
    pub closed: AtomicBool,
    pub ledger: [Mutex<Vec<Work>>; DATABASES.len()],
    /// Number of promotions of a standby that lacked confirmed commits.
    pub epoch: AtomicU64,
    pub outside: outside::Counts,
    pub present: AtomicU64,
    pub actions: AtomicU64,
    pub unknown: AtomicU64,
    pub told: [Mutex<Vec<Told>>; DATABASES.len()],
    pub struck: [Mutex<Vec<i64>>; DATABASES.len()],
    pub timed: Mutex<Vec<(&'static str, f64)>>,
    pub seen: Mutex<Vec<Violation>>,
    log: Mutex<LogMark>,
}

impl Shared {
    pub fn new(server: &Path) -> Arc<Self> {
        Arc::new(Self {
            server: Mutex::new(server.into()),
            away: AtomicBool::new(false),
            over: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            ledger: Default::default(),
            epoch: AtomicU64::new(0),
            outside: outside::Counts::default(),
            present: AtomicU64::new(0),
            actions: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            told: Default::default(),
            struck: Default::default(),
            timed: Mutex::default(),
            seen: Mutex::default(),
            log: Mutex::default(),
        })
    }

    pub fn saw(&self, promise: &'static str, what: String) {
        self.seen.lock().unwrap().push(Violation { promise, check: 0, what });
    }

    pub fn time(&self, what: &'static str, since: Instant) {
        self.timed.lock().unwrap().push((what, since.elapsed().as_secs_f64()));
    }

    /// Stores the highest check id of each database before a fault, so that the checker knows which checks the fault
    /// may have interrupted.
    pub fn note_struck(&self) {
        for (database, struck) in DATABASES.iter().zip(&self.struck) {
            let sql = "SELECT last_value FROM awty.future_job_id_seq";
            let row = self.connect(database, "postgres").and_then(|mut client| client.query_one(sql, &[]));
            struck.lock().unwrap().push(row.map_or(i64::MAX, |row| row.get(0)));
        }
    }

    pub fn look_for_faults_of(&self, cluster: &Cluster) {
        cluster.new_faults().into_iter().for_each(|line| self.saw("P7", line));
        let news = self.log.lock().unwrap().news(cluster);
        internal_errors(&news).into_iter().for_each(|line| self.saw("integrity", format!("in the log: {line}")));
    }

    pub fn connect(&self, database: &str, role: &str) -> Result<Client, Error> {
        let mut config = Config::new();
        config.host_path(self.server.lock().unwrap().as_path()).port(Cluster::PORT).dbname(database).user(role);
        config.connect_timeout(Duration::from_secs(5)).application_name("campaign");
        config.options(&format!("-c statement_timeout={}s", STATEMENT_TIMEOUT.as_secs())).connect(NoTls)
    }

    pub fn start(self: &Arc<Self>, seed: u64) -> Vec<JoinHandle<()>> {
        let places = (0..DATABASES.len()).flat_map(|database| ROLES.map(|role| (database, role)));
        let client = |(number, (database, role)): (usize, (usize, &'static str))| {
            let shared = Arc::clone(self);
            let [random, sizes] = [1, 1001].map(|stream| Random::new(seed, number as u64 + stream));
            std::thread::spawn(move || Customer { shared, database, role, random, sizes, orders: 0 }.work())
        };
        places.enumerate().map(client).collect()
    }
}

pub struct Customer {
    pub shared: Arc<Shared>,
    database: usize,
    pub role: &'static str,
    pub random: Random,
    sizes: Random,
    orders: u64,
}

impl Customer {
    fn work(mut self) {
        let mut connection: Option<Client> = None;
        let mut counted = false;
        while !self.shared.over.load(Ordering::Relaxed) {
            std::thread::park_timeout(PACE / 2 + PACE.mul_f64(self.random.below(100) as f64 / 100.0));
            if counted != connection.is_some() {
                counted = connection.is_some();
                let present = &self.shared.present;
                if counted {
                    present.fetch_add(1, Ordering::Relaxed)
                } else {
                    present.fetch_sub(1, Ordering::Relaxed)
                };
            }
            if self.shared.away.load(Ordering::Relaxed) {
                connection = None;
                continue;
            }
            let Some(client) = connection.as_mut() else {
                connection = self.shared.connect(DATABASES[self.database], self.role).ok();
                continue;
            };
            let began = Instant::now();
            if let Err(error) = self.act(client) {
                if !is_of_a_fault(&error, began) {
                    let what = format!("{} in {}: {}", self.role, DATABASES[self.database], explain(error));
                    self.shared.saw("P9", what);
                }
                self.shared.unknown.fetch_add(1, Ordering::Relaxed);
                connection = None;
            }
            self.shared.actions.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn tell(&self, told: Told) {
        self.shared.told[self.database].lock().unwrap().push(told);
    }

    fn act(&mut self, client: &mut Client) -> Result<(), Error> {
        match self.random.below(100) {
            0..50 => self.place(client),
            50..55 => repeat::act(self, client),
            55..75 => self.ship(client),
            75..85 => self.replace(client),
            85..87 => self.change_mind(client),
            87..90 => self.fail_to_commit(client),
            90..92 => self.meddle(client),
            92..95 => self.cancel_directly(client),
            _ => self.schedule_directly(client),
        }
    }

    pub fn recent(&mut self) -> String {
        let back = self.random.below(40);
        format!("{}{}", self.role, self.orders.saturating_sub(back))
    }

    pub fn soon(&mut self) -> f64 {
        self.random.below(4000) as f64 / 1000.0 - 0.5
    }

    fn errand(&mut self) -> (&'static str, serde_json::Value) {
        let (job, act) = match self.random.below(1000) {
            0..30 => ("watch", "error"),
            30..50 => ("watch", "orphan"),
            50..80 => ("watch", "family"),
            80..110 => ("watch", "temp"),
            110..120 => ("short", "timeout"),
            120..140 => ("watch", "own_cancel"),
            140..160 => ("watch", "own_replace"),
            160..190 => ("watch", "place"),
            190..210 => ("watch", "cancel"),
            210..230 => ("watch", "replace"),
            230..260 => ("watch", "notify"),
            260..270 => ("watch", "past"),
            270..275 => ("watch", "far"),
            275..280 => ("short", "leave"),
            280..286 => ("set", "error"),
            286..289 => ("short", "stubborn"),
            289..299 => ("watch", "late"),
            299..309 => ("watch", "commit"),
            309..329 => ("watch", "session"),
            329..339 => ("watch", "own_keep"),
            339..349 => ("watch", "nudge"),
            349..500 => ("set", "ok"),
            500..550 => ("short", "ok"),
            550..650 => ("out", "ok"),
            650..700 => ("once", "ok"),
            _ => ("watch", "ok"),
        };
        let nap = match self.random.below(1000) {
            0..6 => 1000 + self.random.below(2000),
            6..12 => self.random.below(500),
            12..100 => self.random.below(60),
            _ => 0,
        };
        let again = match self.random.below(100) {
            0..30 => 1 + self.random.below(2),
            30 => 99,
            _ => 0,
        };
        let times = if self.random.per_mille(200) { 99 } else { 1 };
        let other = self.recent();
        let mut args = serde_json::json!({
            "act": act, "nap": nap as f64 / 1000.0, "again": again, "times": times, "other": other,
        });
        if let Some(bytes) = self.size(job) {
            args["load"] = self.sizes.text(bytes).into();
        }
        (job, args)
    }

    /// Returns the size of a check's arguments. The job `set` gets large arguments (TOAST) more often than other jobs,
    /// so that awty archives many large arguments at once.
    fn size(&mut self, job: &str) -> Option<usize> {
        match (self.sizes.below(1000), job) {
            (0..2, _) => Some(1_000_000),
            (2..40, _) | (40..250, "set") => Some(3_000),
            _ => None,
        }
    }

    fn place(&mut self, client: &mut Client) -> Result<(), Error> {
        self.orders += 1;
        let key = format!("{}{}", self.role, self.orders);
        let due = self.soon();
        if self.random.per_mille(5) {
            let next = ROLES.iter().cycle().skip_while(|role| **role != self.role).nth(1).unwrap_or(&self.role);
            for (first, role) in [self.role, next].into_iter().enumerate() {
                let args = serde_json::json!({"act": "deadlock", "nap": 0, "again": 0, "first": first + 1});
                self.insert(client, &key, &format!("{role}_watch"), due, &args)?;
            }
            return Ok(());
        }
        let (job, args) = self.errand();
        self.insert(client, &key, &format!("{}_{job}", self.role), due, &args)
    }

    fn insert(
        &self,
        client: &mut Client,
        key: &str,
        job: &str,
        due: f64,
        args: &serde_json::Value,
    ) -> Result<(), Error> {
        let sql = "INSERT INTO camp.orders (key, job, due, args)
                   VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3), $4) RETURNING check_id";
        let row = client.query_one(sql, &[&key, &job, &due, args])?;
        self.tell(Told::Placed { check: row.get(0) });
        Ok(())
    }

    fn ship(&mut self, client: &mut Client) -> Result<(), Error> {
        let key = self.recent();
        let rows = client.query(
            "UPDATE camp.orders SET shipped = true WHERE key = $1 AND NOT shipped
             RETURNING cancelled, pg_current_xact_id()::text::bigint",
            &[&key],
        )?;
        if let Some(first) = rows.first() {
            let count = rows.iter().map(|row| row.get::<_, i64>(0)).sum();
            self.tell(Told::Cancelled { xid: first.get(1), count, at: Utc::now() });
        }
        Ok(())
    }

    fn replace(&mut self, client: &mut Client) -> Result<(), Error> {
        let (key, due) = (self.recent(), self.soon());
        let rows = client.query(
            "UPDATE camp.orders SET due = clock_timestamp() + make_interval(secs => $2) WHERE key = $1 RETURNING check_id",
            &[&key, &due],
        )?;
        rows.iter().for_each(|row| self.tell(Told::Placed { check: row.get(0) }));
        Ok(())
    }

    fn change_mind(&mut self, client: &mut Client) -> Result<(), Error> {
        let (key, due) = (self.recent(), self.soon());
        let (job, args) = (format!("{}_watch", self.role), serde_json::json!({"act": "ok", "nap": 0, "again": 0}));
        let whole = self.random.per_mille(500);
        let mut transaction = client.transaction()?;
        let mut part = transaction.transaction()?;
        part.execute("UPDATE camp.orders SET shipped = true WHERE key = $1", &[&key])?;
        part.execute("SELECT camp.schedule('orders', $1, $2, $3, $4, 'replace')", &[&key, &job, &due, &args])?;
        part.rollback()?;
        let sql = "SELECT camp.schedule('orders', $1, $2, $3, $4, 'replace')";
        let row = transaction.query_one(sql, &[&format!("{key}x"), &job, &due, &args])?;
        if whole {
            return transaction.rollback();
        }
        transaction.commit()?;
        self.tell(Told::Placed { check: row.get(0) });
        Ok(())
    }

    fn cancel_directly(&mut self, client: &mut Client) -> Result<(), Error> {
        let key = self.recent();
        let sql = "SELECT awty.cancel('orders', $1), pg_current_xact_id()::text::bigint";
        let row = client.query_one(sql, &[&key])?;
        self.tell(Told::Cancelled { xid: row.get(1), count: row.get(0), at: Utc::now() });
        Ok(())
    }

    fn schedule_directly(&mut self, client: &mut Client) -> Result<(), Error> {
        let (key, due, conflict) = (self.recent(), self.soon(), *self.random.pick(&["keep", "earliest", "latest"]));
        let (job, args) = self.errand();
        let row = client.query_one(
            "SELECT camp.schedule('orders', $1, $2, $3, $4, $5)",
            &[&key, &format!("{}_{job}", self.role), &due, &args, &conflict],
        )?;
        self.tell(Told::Placed { check: row.get(0) });
        Ok(())
    }
}

pub fn is_of_a_fault(error: &Error, began: Instant) -> bool {
    let broken = error.source().is_some_and(|cause| cause.is::<std::io::Error>());
    // A fault may set the clock back by years after a client has computed a time. The time is then too far in the
    // future (error 22008).
    let expected = ["57P", "08", "53100", "58030", "22008"];
    let told = error.code().is_some_and(|code| expected.iter().any(|class| code.code().starts_with(class)));
    // PostgreSQL's timers use the clock. Therefore `statement_timeout` comes too early if a fault sets the clock ahead.
    let too_early = error.code().is_some_and(|code| code.code() == "57014") && began.elapsed() < STATEMENT_TIMEOUT / 2;
    error.is_closed() || broken || told || too_early
}

pub fn explain(error: Error) -> String {
    let told = error.as_db_error().map(|told| format!("{} {}", told.code().code(), told.message()));
    told.unwrap_or_else(|| error.to_string())
}
