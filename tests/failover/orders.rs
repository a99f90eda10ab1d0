//! An order counts as acknowledged only after its COMMIT has returned.

use crate::member::Member;
use crate::place::{ELECTED_WITHIN, Place};
use crate::random::Random;
use crate::reaper::pass;
use awty_testkit::poll;
use awty_testkit::postgres::{Client, Config, NoTls};
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub const TABLES: &str = "
CREATE EXTENSION awty;
CREATE ROLE shop LOGIN;
CREATE SCHEMA shop AUTHORIZATION shop;
GRANT USAGE ON SCHEMA awty TO shop;
SET SESSION AUTHORIZATION shop;
CREATE TABLE shop.orders (id bigint PRIMARY KEY, placed_at timestamptz NOT NULL DEFAULT now(), shipped boolean NOT NULL DEFAULT false);
CREATE TABLE shop.outbox (order_id bigint NOT NULL, timeline text NOT NULL);
CREATE FUNCTION shop.tell(a awty.alert) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  timeline text := left(pg_walfile_name(pg_current_wal_insert_lsn()), 8);
BEGIN
  RAISE LOG 'order % runs on timeline %', a.entity_key, timeline;
  INSERT INTO shop.outbox VALUES (a.entity_key::bigint, timeline);
  PERFORM pg_notify('told', a.entity_key || ' ' || timeline);
END $$;
SELECT awty.watch('shop.orders', since => 'placed_at', until => 'shipped', within => '4 seconds', call => 'shop.tell');
RESET SESSION AUTHORIZATION;";

pub const WITHIN: Duration = Duration::from_secs(4);

const WRITERS: u64 = 8;
const ORDERS_PER_SECOND: u64 = 200;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    pub is_placed: bool,
    pub shipped: Shipped,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shipped {
    #[default]
    Never,
    Asked,
    At(DateTime<Utc>),
}

pub struct Desk {
    seed: u64,
    told: Mutex<BTreeMap<i64, Told>>,
    ships: Mutex<BTreeMap<(Instant, i64), ()>>,
    next: AtomicI64,
    /// Number of primaries so far. When the number grows, the threads that write to the old primary end.
    epoch: AtomicU64,
    is_over: AtomicBool,
    /// Writers to the present primary
    writers: Mutex<Vec<JoinHandle<()>>>,
}

fn ships_after(seed: u64, order: i64) -> Option<Duration> {
    let mut random = Random::new(seed, order.unsigned_abs());
    match random.below(10) {
        0..5 => Some(Duration::from_millis(200 + random.below(2_000))),
        5 => Some(WITHIN + Duration::from_secs(2 + random.below(4))),
        _ => None,
    }
}

impl Desk {
    pub fn open(place: &Place, seed: u64) -> Arc<Self> {
        let desk = Arc::new(Self {
            seed,
            told: Mutex::default(),
            ships: Mutex::default(),
            next: AtomicI64::new(1),
            epoch: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            writers: Mutex::default(),
        });
        let members: Vec<(u16, Config)> =
            place.members.iter().map(|member| (member.rest_port, member.address(&place.folder, "shop"))).collect();
        let manager = desk.clone();
        std::thread::spawn(move || manager.follow(&members));
        desk
    }

    /// Waits until the present primary has committed each change that the writers have begun.
    pub fn close(&self) -> Result<(), String> {
        self.is_over.store(true, Ordering::Relaxed);
        poll("the writers to end", ELECTED_WITHIN, || {
            let writing = self.writers.lock().unwrap().iter().filter(|writer| !writer.is_finished()).count();
            if writing == 0 { Ok(()) } else { Err(format!("{writing} write")) }
        })
    }

    pub fn told(&self) -> BTreeMap<i64, Told> {
        self.told.lock().unwrap().clone()
    }

    pub fn acknowledged(&self) -> usize {
        self.told.lock().unwrap().values().filter(|told| told.is_placed).count()
    }

    fn goes_on(&self, epoch: u64) -> bool {
        !self.is_over.load(Ordering::Relaxed) && self.epoch.load(Ordering::Relaxed) == epoch
    }

    /// Starts new writers for each new primary, because the old writers may hang in COMMIT on the lost primary.
    fn follow(self: Arc<Self>, members: &[(u16, Config)]) {
        let mut current = None;
        while !self.is_over.load(Ordering::Relaxed) {
            let leader = members.iter().position(|(port, _)| Member::leads(*port));
            if leader.is_some() && leader != current {
                current = leader;
                let epoch = self.epoch.fetch_add(1, Ordering::Relaxed) + 1;
                let config = &members[leader.unwrap_or(0)].1;
                let writer = |_| {
                    let (desk, config) = (self.clone(), config.clone());
                    std::thread::spawn(move || desk.write(&config, epoch))
                };
                *self.writers.lock().unwrap() = (0..WRITERS).map(writer).collect();
            }
            pass(Duration::from_millis(200));
        }
    }

    fn write(&self, config: &Config, epoch: u64) {
        while self.goes_on(epoch) {
            if let Ok(mut client) = config.connect(NoTls) {
                let _ = self.orders(&mut client, epoch);
            }
            pass(Duration::from_millis(100));
        }
    }

    fn orders(&self, client: &mut Client, epoch: u64) -> Result<(), awty_testkit::postgres::Error> {
        let place = client.prepare("INSERT INTO shop.orders (id) VALUES ($1)")?;
        let ship = client.prepare("UPDATE shop.orders SET shipped = true WHERE id = $1")?;
        while self.goes_on(epoch) {
            let next = Instant::now() + Duration::from_millis(1_000 * WRITERS / ORDERS_PER_SECOND);
            let order = self.next.fetch_add(1, Ordering::Relaxed);
            self.told.lock().unwrap().insert(order, Told::default());
            client.execute(&place, &[&order])?;
            self.tell(order, |told| told.is_placed = true);
            if let Some(after) = ships_after(self.seed, order) {
                self.ships.lock().unwrap().insert((Instant::now() + after, order), ());
            }
            while self.goes_on(epoch)
                && let Some(order) = self.due_ship()
            {
                self.tell(order, |told| told.shipped = Shipped::Asked);
                client.execute(&ship, &[&order])?;
                self.tell(order, |told| told.shipped = Shipped::At(Utc::now()));
            }
            pass(next.saturating_duration_since(Instant::now()));
        }
        Ok(())
    }

    fn tell(&self, order: i64, change: impl FnOnce(&mut Told)) {
        change(self.told.lock().unwrap().entry(order).or_default());
    }

    fn due_ship(&self) -> Option<i64> {
        let mut ships = self.ships.lock().unwrap();
        let (&(at, order), ()) = ships.first_key_value()?;
        (at <= Instant::now()).then(|| {
            ships.remove(&(at, order));
            order
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_orders_ship_in_time_and_some_late() {
        let all: Vec<Option<Duration>> = (1..=1_000).map(|order| ships_after(7, order)).collect();
        let in_time = all.iter().flatten().filter(|after| **after < WITHIN - Duration::from_secs(1)).count();
        let late = all.iter().flatten().filter(|after| **after > WITHIN + Duration::from_secs(1)).count();
        assert!((400..600).contains(&in_time) && (50..150).contains(&late), "{in_time} {late}");
    }
}
