//! Measures what the machine itself costs: a plain client waits for each second, runs `SELECT 1` and makes one HTTP
//! request. It does none of awty's work.

use super::now;
use crate::client::Client;
use crate::receiver::{Receiver, Seen};
use crate::shop::Shop;
use awty_testkit::postgres::NoTls;
use chrono::{DateTime, SecondsFormat, Utc};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, UNIX_EPOCH};

/// The receiver closes the connection after an answer to this path, and the client waits for that.
const PATH: &str = "/last";

pub struct Plain {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
    receiver: Receiver,
}

impl Plain {
    pub fn start(shop: &Shop) -> Self {
        let (stop, receiver, config) =
            (Arc::<AtomicBool>::default(), Receiver::start(), shop.cluster.config("postgres", "victim"));
        let (stopped, client) = (stop.clone(), Client { address: receiver.address.to_string(), token: String::new() });
        let thread = std::thread::spawn(move || {
            let mut session = config.connect(NoTls).unwrap();
            while !stopped.load(Ordering::Relaxed) {
                let passed = now().duration_since(UNIX_EPOCH).unwrap();
                let slot = UNIX_EPOCH + Duration::from_secs(passed.as_secs() + 1);
                while let Ok(left) = slot.duration_since(now()) {
                    std::thread::park_timeout(left);
                }
                session.query_one("SELECT 1", &[]).unwrap();
                let slot = DateTime::<Utc>::from(slot).to_rfc3339_opts(SecondsFormat::Secs, true);
                client.ask_once("POST", PATH, "", &format!("Awty-Slot: {slot}\r\n"));
            }
        });
        Plain { stop, thread, receiver }
    }

    pub fn end(self) -> Vec<Seen> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.receiver.seen(PATH)
    }
}
