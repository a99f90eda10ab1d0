//! A receiver that records each call and then, as the seed determines, answers late, wrongly or not at all.

use crate::checker::Call;
use awty_testkit::receiver::{Request, accept, answer, hang, requests};
use chrono::DateTime;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[derive(Clone)]
pub struct Ledger {
    seed: u64,
    began: Instant,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl Ledger {
    pub fn new(seed: u64) -> Self {
        Ledger { seed, began: Instant::now(), calls: Arc::default() }
    }

    pub fn now(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    pub fn listen(&self, host: &str) -> String {
        let this = self.clone();
        format!("http://{}", accept((host, 0), move |stream| this.serve(stream)))
    }

    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        requests(stream, |request| {
            let (number, dice) = self.write_down(&request);
            let first = request.header("awty-attempt").starts_with("1/");
            let status = match dice {
                0..30 if first => 503,
                30..40 if first => return hang(stream).map(|()| false), // until the caller gives up
                40..50 if first => return Ok(false),                    // closes the connection
                50..100 => {
                    std::thread::park_timeout(Duration::from_millis(300 + 10 * dice));
                    200
                }
                _ => 200,
            };
            answer(stream, &status.to_string(), "", "")?;
            self.calls.lock().unwrap()[number].answered = Some(status);
            Ok(true)
        })
    }

    fn write_down(&self, request: &Request) -> (usize, u64) {
        let (key, slot) = (request.header("webhook-id"), DateTime::parse_from_rfc3339(request.header("awty-slot")));
        let slot = slot.map_or(0, |slot| slot.timestamp_micros());
        let mut hasher = DefaultHasher::new();
        (self.seed, key, request.header("awty-attempt")).hash(&mut hasher);
        let occurrence = (request.path.clone(), slot, request.header("awty-count").parse().unwrap_or(-1));
        let call = Call { at: self.now(), occurrence, key: key.into(), answered: None };
        let mut calls = self.calls.lock().unwrap();
        calls.push(call);
        (calls.len() - 1, hasher.finish() % 1000)
    }
}
