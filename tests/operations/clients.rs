//! A client that schedules all the time, and the judgement on what became of its checks.

use crate::shop::Shop;
use awty_testkit::postgres::Client;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A client that places one order after the other, and those that the server has confirmed.
pub struct Placing {
    over: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

/// Orders `1`, `2`, … with a check of the job `note`. An SQLSTATE of `refused` means: try again.
pub fn place(shop: &Shop, refused: &'static [&'static str]) -> Placing {
    let over = Arc::new(AtomicBool::new(false));
    let (stop, mut client) = (Arc::clone(&over), shop.client());
    let thread = std::thread::spawn(move || {
        let mut placed = 0;
        while !stop.load(Ordering::Relaxed) {
            match schedule(&mut client, placed + 1) {
                Ok(()) => placed += 1,
                Err(error) if refused.contains(&error.as_str()) => {}
                Err(error) => panic!("order {}: {error}", placed + 1),
            }
        }
        placed
    });
    Placing { over, thread }
}

fn schedule(client: &mut Client, order: u64) -> Result<(), String> {
    let sql = "SELECT awty.schedule('orders', $1, 'note', after => '0')";
    let done = client.execute(sql, &[&order.to_string()]);
    done.map(drop).map_err(|error| error.code().map_or(error.to_string(), |code| code.code().to_owned()))
}

impl Placing {
    /// P1, P3: ends it; each order has its check in the history, and its effect, once.
    #[track_caller]
    pub fn judge(self, shop: &Shop) {
        self.over.store(true, Ordering::Relaxed);
        let placed = self.thread.join().unwrap();
        assert!(placed > 0, "nothing was placed");
        shop.await_all_ended();
        let sql = "SELECT (SELECT count(*) FROM awty.future_job_history WHERE outcome = 'done'),
                          (SELECT count(DISTINCT entity_key) FROM awty.future_job_history WHERE outcome = 'done'),
                          (SELECT count(*) FROM shop.note), (SELECT count(DISTINCT entity_key) FROM shop.note)";
        assert_eq!(shop.cluster.psql("postgres", sql).trim(), [placed.to_string().as_str(); 4].join("|"));
    }
}
