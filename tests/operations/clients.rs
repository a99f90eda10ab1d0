use awty_testkit::fixture::Shop;
use awty_testkit::postgres::Client;
use awty_testkit::{Cluster, PATIENCE};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

pub const NOTE_ID: &str =
    "BEGIN INSERT INTO shop.note (entity_key, what) VALUES (j.entity_key, j.id::text); RETURN NULL; END";

pub fn furnish(cluster: &Cluster, database: &str) {
    cluster.execute(
        database,
        &[
            "CREATE EXTENSION awty",
            "GRANT USAGE ON SCHEMA awty TO shop",
            "CREATE SCHEMA shop AUTHORIZATION shop",
            "CREATE TABLE shop.note (n integer GENERATED ALWAYS AS IDENTITY, entity_key text, what text)",
            "GRANT ALL ON shop.note TO shop",
            &format!(
                "CREATE FUNCTION shop.note(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $job$ {NOTE_ID} $job$"
            ),
            "SELECT awty.register('note', 'shop.note', run_as => 'shop')",
        ],
    );
}

pub struct Placing {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Log>,
}

pub struct Log(BTreeMap<i64, &'static str>);

/// Starts a client that schedules and cancels checks, and repeats each call that fails with an SQLSTATE in `refused`.
///
/// If `refused` contains `57P01`, the client ends when the server ends the session or the connection breaks.
pub fn place(shop: &Shop, refused: &'static [&'static str]) -> Placing {
    place_in(&shop.cluster, "postgres", refused)
}

pub fn place_in(cluster: &Cluster, database: &str, refused: &'static [&'static str]) -> Placing {
    let over = Arc::new(AtomicBool::new(false));
    let mut client = cluster.client(database, "shop");
    let name = client.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    let session = Session { client, name, refused };
    let stop = Arc::clone(&over);
    let thread = std::thread::spawn(move || session.work(&stop));
    Placing { over, thread }
}

struct Session {
    client: Client,
    name: i32,
    refused: &'static [&'static str],
}

impl Session {
    fn work(mut self, over: &AtomicBool) -> Log {
        let mut log = BTreeMap::new();
        let mut order = 0_u64;
        while !over.load(Ordering::Relaxed) && self.place(order, &mut log).is_some() {
            order += 1;
        }
        Log(log)
    }

    fn place(&mut self, order: u64, log: &mut BTreeMap<i64, &'static str>) -> Option<()> {
        let key = format!("{}.{order}", self.name);
        let now = "SELECT awty.schedule('orders', $1, 'note', after => '0')";
        let later = "SELECT awty.schedule('orders', $1, 'note', after => '1 h')";
        let cancel = "SELECT awty.cancel('orders', $1)::bigint";
        match order % 5 {
            1 => {
                let id = self.ask(later, &key)?;
                log.insert(id, "lost");
                assert_eq!(self.ask(cancel, &key)?, 1, "the check of order {key} was not there to be cancelled");
                log.insert(id, "cancelled");
            }
            2 => {
                let id = self.ask(later, &key)?;
                log.insert(id, "lost");
                log.insert(self.ask(now, &key)?, "done");
                log.insert(id, "replaced");
            }
            3 => {
                let id = self.ask(now, &key)?;
                log.insert(id, "lost");
                log.insert(id, if self.ask(cancel, &key)? == 1 { "cancelled" } else { "done" });
            }
            _ => {
                log.insert(self.ask(now, &key)?, "done");
            }
        }
        Some(())
    }

    fn ask(&mut self, call: &str, key: &str) -> Option<i64> {
        let since = Instant::now();
        loop {
            let error = match self.client.query_one(call, &[&key]) {
                Ok(row) => return Some(row.get(0)),
                Err(error) => error,
            };
            let code = error.code().map(|code| code.code().to_owned());
            if self.refused.contains(&"57P01") && code.as_deref().is_none_or(|code| code == "57P01") {
                return None;
            }
            let expected = code.as_deref().is_some_and(|code| self.refused.contains(&code));
            assert!(expected && since.elapsed() < PATIENCE, "{call} of order {key}: {error:?}");
        }
    }
}

impl Placing {
    pub fn stop(self) -> Log {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }

    #[track_caller]
    pub fn judge(self, shop: &Shop) {
        self.stop().judge(&shop.cluster, "postgres");
    }
}

impl Log {
    #[track_caller]
    pub fn judge(&self, cluster: &Cluster, database: &str) {
        assert!(!self.0.is_empty(), "nothing was placed");
        await_all_done(cluster, database);
        let (ids, ends): (Vec<i64>, Vec<&str>) = self.0.iter().map(|(id, end)| (*id, *end)).unzip();
        let sql = "SELECT l.id, l.ending, h.outcome, p.next_check_at::text
                   FROM unnest($1::bigint[], $2::text[]) AS l (id, ending)
                   LEFT JOIN awty.future_job_history AS h USING (id) LEFT JOIN awty.future_job AS p USING (id)
                   WHERE h.outcome::text IS DISTINCT FROM l.ending LIMIT 5";
        let wrong = cluster.superuser(database).query(sql, &[&ids, &ends]).unwrap();
        assert!(wrong.is_empty(), "{} checks were placed; of these: {wrong:?}", ids.len());
        judge_effects(cluster, database);
        let elsewhere = "SELECT count(*) FROM awty.future_job_history AS h JOIN shop.note AS n ON n.what::bigint = h.id
                         WHERE n.xmin <> h.xmin";
        assert_eq!(cluster.value::<i64>(database, elsewhere), 0, "an effect is not of the transaction that booked it");
    }
}

#[track_caller]
pub fn await_all_done(cluster: &Cluster, database: &str) {
    let sql = "SELECT NOT EXISTS (SELECT FROM awty.future_job WHERE next_check_at < now() + interval '10 minutes')";
    cluster.await_sql(database, "every check to have ended", sql);
}

#[track_caller]
pub fn judge_effects(cluster: &Cluster, database: &str) {
    let sql = "SELECT h.id, h.ends, p.id, e.effects
               FROM (SELECT id, count(*) AS ends, bool_or(outcome = 'done') AS done FROM awty.future_job_history GROUP BY id) AS h
               FULL JOIN (SELECT what::bigint AS id, count(*) AS effects FROM shop.note GROUP BY 1) AS e USING (id)
               LEFT JOIN awty.future_job AS p USING (id)
               WHERE h.ends > 1 OR p.id IS NOT NULL OR coalesce(e.effects, 0) <> h.done::integer OR h.id IS NULL LIMIT 5";
    let wrong = cluster.superuser(database).query(sql, &[]).unwrap();
    assert!(wrong.is_empty(), "id, rows of history, pending, effects: {wrong:?}");
}

#[track_caller]
pub fn await_more_runs(cluster: &Cluster, database: &str) {
    let before: i64 = cluster.value(database, "SELECT count(*) FROM shop.note");
    cluster.await_sql(database, "more runs", &format!("SELECT count(*) > {before} FROM shop.note"));
}
