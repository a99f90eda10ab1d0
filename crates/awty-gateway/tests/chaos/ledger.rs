//! The receiver with the ledger. It records each request first, and then misbehaves as the seed says.
//!
//! Does not: know the database or the gateways. Every request in the ledger has arrived.

use crate::checker::Call;
use chrono::DateTime;
use std::collections::{BTreeMap, hash_map::DefaultHasher};
use std::hash::{Hash, Hasher};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The receiver. Its threads end with the test's process.
#[derive(Clone)]
pub struct Ledger {
    seed: u64,
    began: Instant,
    calls: Arc<Mutex<Vec<Call>>>,
}

struct Request {
    path: String,
    headers: BTreeMap<String, String>,
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

    /// Listens on an address of this machine. Returns the origin.
    pub fn listen(&self, host: &str) -> String {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let this = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let this = this.clone();
                std::thread::spawn(move || drop(this.serve(&stream)));
            }
        });
        origin
    }

    fn serve(&self, mut stream: &TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        while let Some(request) = read(&mut reader)? {
            let (number, dice) = self.write_down(&request);
            let first = request.headers.get("awty-attempt").is_some_and(|attempt| attempt.starts_with("1/"));
            let status = match dice {
                0..30 if first => 503,
                30..40 if first => return io::copy(&mut stream, &mut io::sink()).map(drop), // until the caller gives up
                40..50 if first => return Ok(()),                                           // closes
                50..100 => {
                    std::thread::park_timeout(Duration::from_millis(300 + 10 * dice));
                    200
                }
                _ => 200,
            };
            write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n")?;
            self.calls.lock().unwrap()[number].answered = Some(status);
        }
        Ok(())
    }

    /// Number in the ledger, and 0 to 999 by the seed.
    fn write_down(&self, request: &Request) -> (usize, u64) {
        let header = |name: &str| request.headers.get(name).map(String::as_str).unwrap_or_default();
        let (key, slot) = (header("webhook-id"), DateTime::parse_from_rfc3339(header("awty-slot")));
        let slot = slot.map_or(0, |slot| slot.timestamp_micros());
        let mut hasher = DefaultHasher::new();
        (self.seed, key, header("awty-attempt")).hash(&mut hasher);
        let occurrence = (request.path.clone(), slot, header("awty-count").parse().unwrap_or(-1));
        let call = Call { at: self.now(), occurrence, key: key.into(), answered: None };
        let mut calls = self.calls.lock().unwrap();
        calls.push(call);
        (calls.len() - 1, hasher.finish() % 1000)
    }
}

/// Reads a whole request; none if the connection ended before.
fn read(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) if line.ends_with('\n') => drop(headers.insert(name.to_lowercase(), value.to_owned())),
            _ if line == "\r\n" => break,
            _ => return Ok(None),
        }
    }
    let length: u64 = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let read = io::copy(&mut reader.by_ref().take(length), &mut io::sink())?;
    Ok((read == length).then_some(Request { path, headers }))
}
