use crate::place::Place;
use awty_testkit::poll;
use awty_testkit::postgres::{Client, Config, NoTls};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const BATCH: i64 = 10;
const PAUSE: Duration = Duration::from_millis(30);

pub struct Load {
    stopped: Arc<AtomicBool>,
    acknowledged: Arc<AtomicI64>,
    writer: JoinHandle<Vec<i64>>,
}

impl Load {
    /// Inserts orders of the job `tell`. The check of each order is due after the interval `after`.
    pub fn start(place: &Place, after: &'static str) -> Self {
        let config = place.coordinator.config("postgres", "shop");
        let (stopped, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI64::new(0)));
        let writer = std::thread::spawn({
            let (stopped, acknowledged) = (Arc::clone(&stopped), Arc::clone(&acknowledged));
            move || write(&config, after, &stopped, &acknowledged)
        });
        Self { stopped, acknowledged, writer }
    }

    pub fn acknowledged(&self) -> i64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    #[track_caller]
    pub fn await_more(&self, orders: i64) {
        let from = self.acknowledged();
        let seen = || {
            let seen = self.acknowledged();
            if seen >= from + orders { Ok(()) } else { Err(seen.to_string()) }
        };
        poll("more orders", awty_testkit::PATIENCE, seen).unwrap();
    }

    #[track_caller]
    pub fn stop(self, place: &Place) -> i64 {
        self.stopped.store(true, Ordering::Relaxed);
        let acknowledged = self.writer.join().unwrap();
        let mut client = place.coordinator.superuser("postgres");
        let missing =
            "SELECT count(*) FROM unnest($1::bigint[]) AS a LEFT JOIN shop.orders AS o ON o.id = a WHERE o.id IS NULL";
        let missing: i64 = client.query_one(missing, &[&acknowledged]).unwrap().get(0);
        assert_eq!(missing, 0, "acknowledged orders are lost");
        acknowledged.len() as i64
    }
}

fn write(config: &Config, after: &str, stopped: &AtomicBool, count: &AtomicI64) -> Vec<i64> {
    let sql = "INSERT INTO shop.orders SELECT n, 'tell', $3::text::interval FROM generate_series($1::bigint, $2) AS n";
    let mut acknowledged = Vec::new();
    let mut client: Option<Client> = None;
    let mut next = 1;
    while !stopped.load(Ordering::Relaxed) {
        if client.as_ref().is_none_or(Client::is_closed) {
            client = config.connect(NoTls).ok();
        }
        let last = next + BATCH - 1;
        // Never reuses an order's key, because an order whose INSERT was not confirmed may exist.
        if client.as_mut().is_some_and(|client| client.execute(sql, &[&next, &last, &after]).is_ok()) {
            acknowledged.extend(next..=last);
            count.fetch_add(BATCH, Ordering::Relaxed);
        }
        next = last + 1;
        let began = std::time::Instant::now();
        let _ = poll("the pause", PAUSE, || if began.elapsed() >= PAUSE { Ok(()) } else { Err(String::new()) });
    }
    acknowledged
}
