//! Clients write random changes to a watched table. The queries [`WRONG`] and [`MISSED`] must return no rows in any
//! snapshot (promise P12).

use crate::deadline;
use crate::load::{DATABASES, ROLES, Shared, explain, is_of_a_fault};
use crate::random::Random;
use awty_testkit::postgres::{Client, Error};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub const FRANK: &str = "frank";

const KEYS: u64 = 40;
const WRITERS: usize = 2;
const PACE: Duration = Duration::from_millis(80);
/// Average pause of the table's owner between two validations of all alerts.
const LOOK: Duration = Duration::from_millis(250);
const CHANGE: u64 = 10;

/// Finds alerts that must not be open, for example a row's second alert, or the alert of a deleted row. $1 is true if
/// the test changed the system clock.
///
/// After a change of the rule, no trigger notices that an alert's row is deleted and inserted again. Therefore the
/// alert may be wrong until awty has compared all alerts with their rows.
pub const WRONG: &str = "SELECT left(concat_ws(' ', a.*, 'but', p.*, 'by', t.*), 500)
    FROM (SELECT a.*, count(*) OVER (PARTITION BY a.entity_key) AS open FROM awty.alert AS a WHERE a.rule = 'parcel' AND a.cleared_at IS NULL) AS a
    LEFT JOIN camp.parcel AS p ON p.id::text = a.entity_key LEFT JOIN camp.terms AS t ON true
    WHERE a.open > 1 OR t.within IS NULL OR (a.due_at > clock_timestamp() AND NOT $1)
        OR ((p.id IS NULL OR p.state = ANY (t.there) OR p.since IS DISTINCT FROM a.since) AND (SELECT walk = 'done' FROM awty.rule WHERE rule = 'parcel') AND NOT EXISTS (SELECT FROM awty.future_job
            WHERE job = 'parcel' AND (entity_name = 'awty.sweep' OR entity_key = a.entity_key)))";

/// Finds rows without an open alert that awty would report too late, because the row's check is missing or planned more
/// than nine seconds after the deadline.
///
/// Nine seconds are three times the longest `awty.slot`. The query ignores rows whose check has failed or is on hold,
/// and all rows while awty compares the whole table with the rule (`walk`).
pub const MISSED: &str = "SELECT left(concat_ws(' ', p.*, 'by', t.*, 'has', f.*), 500)
    FROM camp.parcel AS p CROSS JOIN camp.terms AS t LEFT JOIN awty.future_job AS f ON f.job = 'parcel' AND f.entity_key = p.id::text
    WHERE NOT p.state = ANY (t.there) AND p.since IS NOT NULL AND (SELECT walk = 'done' FROM awty.rule WHERE rule = 'parcel')
        AND NOT EXISTS (SELECT FROM awty.alert AS a WHERE a.rule = 'parcel' AND a.entity_key = p.id::text AND a.cleared_at IS NULL)
        AND (f.id IS NULL OR (f.attempt = 0 AND NOT f.held
            AND f.next_check_at > greatest(p.since + t.within, pg_xact_commit_timestamp(f.xmin)) + interval '9 s'))";

#[derive(Clone, Debug, Default)]
pub struct Watched {
    pub wrong: Vec<String>,
    pub missed: Vec<String>,
}

impl Watched {
    pub fn faults(&self) -> Vec<String> {
        let wrong = self.wrong.iter().map(|what| format!("an alert is open: {what}"));
        wrong.chain(self.missed.iter().map(|what| format!("a row is not watched: {what}"))).collect()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Table {
    Parcels,
    Tickets,
}

pub fn start(shared: &Arc<Shared>, seed: u64, movable_clock: bool) -> Vec<JoinHandle<()>> {
    let mut threads = Vec::new();
    for (table, stream) in [(Table::Parcels, 2001), (Table::Tickets, 3001)] {
        for (number, database) in DATABASES.into_iter().enumerate() {
            for (place, role) in ROLES.into_iter().take(WRITERS).chain([FRANK]).enumerate() {
                let random = Random::new(seed, stream + (number * (WRITERS + 1) + place) as u64);
                let visitor = Visitor { shared: Arc::clone(shared), table, database, role, random, movable_clock };
                threads.push(std::thread::spawn(move || visitor.work()));
            }
        }
    }
    threads
}

pub struct Visitor {
    shared: Arc<Shared>,
    table: Table,
    database: &'static str,
    role: &'static str,
    pub random: Random,
    movable_clock: bool,
}

impl Visitor {
    fn work(mut self) {
        let mut connection: Option<Client> = None;
        let pace = if self.role == FRANK { LOOK } else { PACE };
        while !self.shared.over.load(Ordering::Relaxed) {
            std::thread::park_timeout(pace / 2 + pace.mul_f64(self.random.below(100) as f64 / 100.0));
            if self.shared.away.load(Ordering::Relaxed) {
                connection = None;
                continue;
            }
            let Some(client) = connection.as_mut() else {
                connection = self.shared.connect(self.database, self.role).ok();
                continue;
            };
            let began = Instant::now();
            let done = match self.table {
                _ if self.role != FRANK => self.write(client),
                Table::Parcels => self.own(client),
                Table::Tickets => deadline::own(&mut self, client),
            };
            if let Err(error) = done {
                if !is_of_a_fault(&error, began) {
                    self.shared.saw(
                        "P9",
                        format!("{} and {:?} in {}: {}", self.role, self.table, self.database, explain(error)),
                    );
                }
                connection = None;
            }
        }
    }

    fn write(&mut self, client: &mut Client) -> Result<(), Error> {
        let level = *self.random.pick(&["READ COMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]);
        let mut script = format!("BEGIN ISOLATION LEVEL {level};");
        if self.random.per_mille(300) {
            script += match self.table {
                Table::Parcels => "SELECT FROM camp.parcel LIMIT 1;",
                Table::Tickets => "SELECT FROM camp.ticket LIMIT 1;",
            };
            client.batch_execute(&std::mem::take(&mut script))?;
            std::thread::park_timeout(Duration::from_millis(self.random.below(1500)));
        }
        for _ in 0..=self.random.below(2) {
            let [one, other] = [(); 2].map(|()| match self.table {
                Table::Parcels => self.statement(),
                Table::Tickets => deadline::statement(&mut self.random),
            });
            script += &match self.random.below(8) {
                0 => format!("SAVEPOINT s; {one}; ROLLBACK TO s; {other};"),
                1 => format!("SAVEPOINT s; {one}; RELEASE s;"),
                _ => format!("{one};"),
            };
        }
        script += if self.random.per_mille(100) { "ROLLBACK" } else { "COMMIT" };
        self.attempt(client, &script)
    }

    /// Executes the script and ignores conflicts with other clients: serialization failures (40001), deadlocks (40P01)
    /// and duplicate keys (23505).
    pub fn attempt(&self, client: &mut Client, script: &str) -> Result<(), Error> {
        match client.batch_execute(script) {
            Err(error) if error.code().is_some_and(|code| ["40001", "40P01", "23505"].contains(&code.code())) => {
                client.batch_execute("ROLLBACK")
            }
            done => done,
        }
    }

    fn statement(&mut self) -> String {
        let key = self.random.below(KEYS);
        let since = format!("clock_timestamp() + interval '{} ms'", self.random.below(8000) as i64 - 5000);
        match self.random.below(1000) {
            0..200 => format!(
                "INSERT INTO camp.parcel SELECT {key}, {since}, 'here' WHERE NOT EXISTS (SELECT FROM camp.parcel WHERE id = {key})"
            ),
            200..280 => format!(
                "DELETE FROM camp.parcel WHERE id BETWEEN {key} AND {key} + 3; INSERT INTO camp.parcel SELECT n, {since}, 'here' FROM generate_series({key}, {key} + 3) AS n"
            ),
            280..480 => format!("UPDATE camp.parcel SET state = 'gone' WHERE id = {key}"),
            480..540 => format!("UPDATE camp.parcel SET state = 'lost' WHERE id = {key}"),
            540..680 => format!("UPDATE camp.parcel SET state = 'here' WHERE id = {key}"),
            680..800 => format!("UPDATE camp.parcel SET since = {since} WHERE id = {key}"),
            800..840 => format!("UPDATE camp.parcel SET since = NULL WHERE id = {key}"),
            840..920 => format!("DELETE FROM camp.parcel WHERE id = {key}"),
            920..940 => format!("UPDATE camp.parcel SET note = 'x' WHERE id = {key}"),
            940..970 => {
                format!("UPDATE camp.parcel SET id = {key} + {key} + 1 - id WHERE id IN ({key}, {key} + 1)")
            }
            970..990 => format!(
                "UPDATE camp.parcel SET state = CASE state WHEN 'here' THEN 'gone' ELSE 'here' END WHERE id % 5 = {key} % 5"
            ),
            _ => "TRUNCATE camp.parcel".into(),
        }
    }

    fn own(&mut self, client: &mut Client) -> Result<(), Error> {
        let wrong = client.query(WRONG, &[&self.movable_clock])?.iter().map(|row| row.get(0)).collect();
        let missed = client.query(MISSED, &[])?.iter().map(|row| row.get(0)).collect();
        Watched { wrong, missed }.faults().into_iter().for_each(|what| self.shared.saw("P12", what));
        let is_there = client.query_opt("SELECT FROM camp.terms", &[])?.is_some();
        if is_there && self.random.below(CHANGE) > 0 {
            return Ok(());
        }
        let there = *self.random.pick(&["gone", "gone,lost"]);
        let within = 1 + self.random.below(3);
        let escalate = *self.random.pick(&["{}", "{4 s}", "{4 s,5 s}"]);
        let watch = format!(
            "INSERT INTO camp.terms VALUES ('{{{there}}}', '{within} s');
             SELECT awty.watch('camp.parcel', rule => 'parcel', since => 'since', until => $$state = ANY ('{{{there}}}')$$,
                 within => '{within} s', escalate => '{escalate}', existing => 'all', replace => true);
             SELECT awty.alter('parcel', timeout => '6 s', retry_after => '1 s');"
        );
        let end = "SELECT awty.unwatch('parcel');";
        let script = match self.random.below(6) {
            _ if !is_there => watch,
            0 => end.into(),
            1 => format!("{end} {watch}"),
            _ => watch,
        };
        self.attempt(client, &format!("BEGIN; DELETE FROM camp.terms; {script} COMMIT"))
    }
}
