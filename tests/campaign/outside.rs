//! Runs external workers, which claim checks and answer them.
//!
//! Invariant: a worker writes to the ledger before it answers a check (P14). The transaction that answers also writes a
//! row of `camp.effect` (P1).

use crate::checker::Time;
use crate::ledger::Work;
use crate::load::{DATABASES, ROLES, Shared, explain, is_of_a_fault};
use crate::random::Random;
use awty_testkit::poll;
use awty_testkit::postgres::{Client, Error, GenericClient, Row};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub const MAILER: &str = "mailer";
const VOID: &str = "void";
/// awty returns `busy` if a client has locked the check. The worker must then send its answer again.
const BUSY: &str = "busy";
const WORKERS: u64 = 2;
pub const HEARTBEAT: Duration = Duration::from_secs(1);
const TO_END: Duration = Duration::from_secs(90);

const KINDS: [&str; 2] = ["out", "once"];

pub const IS_OUTSIDE: &str = "job ~ '_(out|once)$'";

pub fn jobs(role: &str, number: usize) -> String {
    let heartbeat = if number.is_multiple_of(2) { ", heartbeat => '1 s'" } else { "" };
    format!(
        "SELECT awty.register('{role}_out', timeout => '4 s', retry_after => '1 s'{heartbeat});
         SELECT awty.register('{role}_once', timeout => '3 s', retry_after => '1 s', delivery => 'at_most_once');
         SELECT awty.allow('{role}_out', '{MAILER}', 'claim'), awty.allow('{role}_once', '{MAILER}', 'claim');"
    )
}

#[derive(Default)]
pub struct Counts {
    leased: AtomicU64,
    answered: AtomicU64,
    void: AtomicU64,
    died: AtomicU64,
    given_back: AtomicU64,
}

impl Counts {
    pub fn line(&self) -> String {
        let [leased, answered, void, died, given_back] =
            [&self.leased, &self.answered, &self.void, &self.died, &self.given_back]
                .map(|count| count.load(Ordering::Relaxed));
        format!(
            "external workers: {leased} leases, {answered} answered, {void} void, {died} died of, {given_back} given back"
        )
    }
}

pub fn start(shared: &Arc<Shared>, seed: u64) -> Vec<JoinHandle<()>> {
    let places = (0..DATABASES.len()).flat_map(|database| (0..WORKERS).map(move |number| (database, number)));
    let start = |(database, number): (usize, u64)| {
        let shared = Arc::clone(shared);
        let random = Random::new(seed, 2001 + number + WORKERS * database as u64);
        std::thread::spawn(move || Worker { shared, database, random }.work())
    };
    places.map(start).collect()
}

struct Worker {
    shared: Arc<Shared>,
    database: usize,
    random: Random,
}

enum Turn {
    GoesOn,
    Dies,
}

impl Worker {
    fn work(mut self) {
        let jobs: Vec<String> = ROLES.iter().flat_map(|role| KINDS.map(|kind| format!("{role}_{kind}"))).collect();
        while !self.shared.closed.load(Ordering::Relaxed) {
            std::thread::park_timeout(Duration::from_millis(50));
            if self.shared.away.load(Ordering::Relaxed) {
                continue;
            }
            let Ok(mut client) = self.shared.connect(DATABASES[self.database], MAILER) else { continue };
            self.shared.present.fetch_add(1, Ordering::Relaxed);
            let stays =
                |shared: &Shared| !shared.away.load(Ordering::Relaxed) && !shared.closed.load(Ordering::Relaxed);
            while stays(&self.shared) {
                let began = Instant::now();
                match self.turn(&mut client, &jobs) {
                    Ok(Turn::GoesOn) => {}
                    Ok(Turn::Dies) => break,
                    Err(error) => {
                        if !is_of_a_fault(&error, began) {
                            let what =
                                format!("an external worker in {}: {}", DATABASES[self.database], explain(error));
                            self.shared.saw("P9", what);
                        }
                        break;
                    }
                }
            }
            drop(client);
            self.shared.present.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn goes_wrong(&mut self, per_mille: u64) -> bool {
        self.random.per_mille(per_mille) && !self.shared.over.load(Ordering::Relaxed)
    }

    fn turn(&mut self, client: &mut Client, jobs: &[String]) -> Result<Turn, Error> {
        let max = *self.random.pick(&[1, 1, 2, 5, 20]);
        let aborts = self.goes_wrong(50);
        let mut transaction = client.transaction()?;
        let leased = transaction.query(CLAIM, &[&jobs, &max])?;
        if aborts {
            transaction.rollback()?;
            return Ok(Turn::GoesOn);
        }
        transaction.commit()?;
        if leased.is_empty() {
            let wait: f64 = client.query_one(WAIT, &[&jobs])?.get(0);
            std::thread::park_timeout(Duration::from_secs_f64(wait.min(0.3)));
            return Ok(Turn::GoesOn);
        }
        self.shared.outside.leased.fetch_add(leased.len() as u64, Ordering::Relaxed);
        let mut leases: Vec<Leased> = leased.iter().map(|row| self.note(row)).collect();
        match self.random.below(if self.shared.over.load(Ordering::Relaxed) { 80 } else { 100 }) {
            0..70 => self.complete(client, leases),
            70..80 => {
                self.nap(client, &mut leases)?;
                self.complete(client, leases)
            }
            80..88 => self.fail(client, leases),
            88..94 => self.give_back(client, leases),
            _ => {
                let acts = self.random.per_mille(500);
                leases.iter().filter(|_| acts).for_each(|lease| self.act(lease));
                self.die(&leases)
            }
        }
    }

    fn change(&self, lease: &Leased, change: impl FnOnce(&mut Work)) {
        change(&mut self.shared.ledger[self.database].lock().unwrap()[lease.place]);
    }

    fn act(&self, lease: &Leased) {
        self.change(lease, |work| work.acted = true);
    }

    fn let_go(&self, leases: &[Leased]) {
        leases.iter().for_each(|lease| self.change(lease, |work| work.let_go = Some(Instant::now())));
    }

    fn die(&self, leases: &[Leased]) -> Result<Turn, Error> {
        self.shared.outside.died.fetch_add(leases.len() as u64, Ordering::Relaxed);
        Ok(Turn::Dies)
    }

    fn note(&self, row: &Row) -> Leased {
        let work = Work {
            check: row.get(1),
            scheduled_at: row.get(2),
            check_count: row.get(3),
            key: row.get(4),
            at_most_once: row.get(5),
            leased_at: row.get(6),
            expires_at: row.get(7),
            deadline: row.get(8),
            claimed: Instant::now(),
            let_go: None,
            acted: false,
            epoch: self.shared.epoch.load(Ordering::Relaxed),
        };
        let mut ledger = self.shared.ledger[self.database].lock().unwrap();
        ledger.push(work);
        Leased { lease: row.get(0), place: ledger.len() - 1, again: row.get(9), slot: row.get(10) }
    }

    fn nap(&mut self, client: &mut Client, leases: &mut Vec<Leased>) -> Result<(), Error> {
        let is_alive = self.random.per_mille(700);
        for _ in 0..1 + self.random.below(4) {
            std::thread::park_timeout(HEARTBEAT / 2);
            if !is_alive {
                continue;
            }
            let numbers: Vec<i64> = leases.iter().map(|lease| lease.lease).collect();
            let row = client.query_one("SELECT clock_timestamp(), awty.heartbeat($1)", &[&numbers])?;
            let (at, void): (Time, Vec<i64>) = (row.get(0), row.get(1));
            leases.retain(|lease| !void.contains(&lease.lease));
            leases.iter().for_each(|lease| {
                self.change(lease, |work| work.expires_at = (at + HEARTBEAT).min(work.deadline).max(work.expires_at));
            });
        }
        Ok(())
    }

    fn complete(&mut self, client: &mut Client, leases: Vec<Leased>) -> Result<Turn, Error> {
        leases.iter().for_each(|lease| self.act(lease));
        let pieces = if self.random.per_mille(500) { leases.len() } else { 1 };
        for some in leases.chunks(pieces.max(1)) {
            if self.goes_wrong(50) {
                let mut transaction = client.transaction()?;
                self.answer(&mut transaction, some)?;
                transaction.rollback()?;
            }
            if self.goes_wrong(30) {
                client.batch_execute("BEGIN")?;
                self.answer(client, some)?;
                return self.die(some);
            }
            // A call with several leases skips the checks that a client has locked. A call with a single lease waits
            // until the client releases the lock.
            for lease in self.commit(client, some)? {
                self.commit(client, std::slice::from_ref(lease))?;
            }
        }
        Ok(Turn::GoesOn)
    }

    fn commit<'a>(&self, client: &mut Client, leases: &'a [Leased]) -> Result<Vec<&'a Leased>, Error> {
        let mut transaction = client.transaction()?;
        let answers = self.answer(&mut transaction, leases)?;
        let said = |word: &'static str| leases.iter().zip(&answers).filter(move |(_, answer)| *answer == word);
        leases.iter().zip(&answers).filter(|(_, answer)| *answer != BUSY).for_each(|(lease, _)| {
            self.let_go(std::slice::from_ref(lease));
        });
        transaction.commit()?;
        let void = said(VOID).count() as u64;
        let busy: Vec<&Leased> = said(BUSY).map(|(lease, _)| lease).collect();
        self.shared.outside.void.fetch_add(void, Ordering::Relaxed);
        let answered = leases.len() as u64 - void - busy.len() as u64;
        self.shared.outside.answered.fetch_add(answered, Ordering::Relaxed);
        Ok(busy)
    }

    fn answer(&self, client: &mut impl GenericClient, leases: &[Leased]) -> Result<Vec<String>, Error> {
        let answers: Vec<String> = match leases {
            [one] => vec![client.query_one(COMPLETE, &[&one.lease, &one.again])?.get(0)],
            _ => {
                let numbers: Vec<i64> = leases.iter().map(|lease| lease.lease).collect();
                let next_at: Vec<Option<f64>> = leases.iter().map(|lease| lease.again).collect();
                client.query_one(COMPLETE_MANY, &[&numbers, &next_at])?.get(0)
            }
        };
        let taken = leases.iter().zip(&answers).filter(|(_, answer)| ![VOID, BUSY].contains(&answer.as_str()));
        for (lease, _) in taken {
            let work = self.shared.ledger[self.database].lock().unwrap()[lease.place].clone();
            client.execute(EFFECT, &[&work.check, &work.check_count, &lease.slot, &work.leased_at])?;
        }
        Ok(answers)
    }

    fn fail(&mut self, client: &mut Client, leases: Vec<Leased>) -> Result<Turn, Error> {
        let how = *self.random.pick(&["", ", final => ARRAY[true]", ", not_started => ARRAY[true]"]);
        if !how.contains("not_started") {
            leases.iter().for_each(|lease| self.act(lease));
        }
        for lease in leases {
            self.let_go(std::slice::from_ref(&lease));
            let sql = format!("SELECT (awty.fail_many(ARRAY[$1::bigint], ARRAY['no']{how}))[1]");
            self.count(&client.query_one(&sql, &[&lease.lease])?.get::<_, String>(0));
        }
        Ok(Turn::GoesOn)
    }

    fn give_back(&mut self, client: &mut Client, leases: Vec<Leased>) -> Result<Turn, Error> {
        self.let_go(&leases);
        let numbers: Vec<i64> = leases.iter().map(|lease| lease.lease).collect();
        let count: i64 = client.query_one("SELECT awty.requeue($1)", &[&numbers])?.get(0);
        self.shared.outside.given_back.fetch_add(count.unsigned_abs(), Ordering::Relaxed);
        Ok(Turn::GoesOn)
    }

    fn count(&self, answer: &str) {
        let counts = &self.shared.outside;
        let count = if answer == VOID { &counts.void } else { &counts.answered };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

struct Leased {
    lease: i64,
    place: usize,
    again: Option<f64>,
    slot: Time,
}

const CLAIM: &str = "SELECT lease, id, scheduled_at, check_count, key, job ~ '_once$', leased_at, expires_at, deadline,
        CASE WHEN check_count < (args->>'again')::integer THEN 2 * random() END, next_check_at
    FROM awty.claim($1, 'campaign', $2)";
const WAIT: &str = "SELECT extract(epoch FROM awty.next_claim_in($1))::float8";
const COMPLETE: &str = "SELECT awty.complete($1, clock_timestamp() + make_interval(secs => $2))";
const COMPLETE_MANY: &str = "SELECT awty.complete_many($1, ARRAY(
    SELECT clock_timestamp() + make_interval(secs => s) FROM unnest($2::float8[]) WITH ORDINALITY AS u (s, n) ORDER BY n))";
const EFFECT: &str = "INSERT INTO camp.effect (check_id, check_count, attempt, slot, began, act, bad, own)
    VALUES ($1, $2, 0, $3, $4, 'outside', false, false)";

/// Waits until the external workers have no more work, except checks that are due far in the future. Such checks exist
/// if a fault has set the clock back.
pub fn finish(shared: &Shared) -> Result<(), String> {
    let soon = "clock_timestamp() + interval '30 s'";
    for database in DATABASES {
        poll(&format!("all of external workers in {database}"), TO_END, || {
            let mut client = shared.connect(database, "postgres").map_err(explain)?;
            let release = format!(
                "SELECT awty.release(entity_name, entity_key, job) FROM awty.future_job WHERE held AND {IS_OUTSIDE}"
            );
            client.execute(&release, &[]).map_err(explain)?;
            let left = format!(
                "SELECT left(f::text, 300) FROM awty.future_job AS f LEFT JOIN awty_internal.lease AS l USING (id)
                 WHERE f.{IS_OUTSIDE} AND f.next_check_at <= {soon} AND (l.deadline <= {soon}) IS NOT FALSE
                 UNION ALL SELECT left(l::text, 300) FROM awty_internal.lease AS l WHERE deadline BETWEEN clock_timestamp() AND {soon}"
            );
            match client.query(&left, &[]).map_err(explain)?.first() {
                None => Ok(()),
                Some(row) => Err(row.get::<_, String>(0)),
            }
        })?;
    }
    Ok(())
}
