//! Endpoints that answer at once or hang, and record arrivals.

use chrono::{DateTime, Utc};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::Builder;

const STACK: usize = 96 * 1024;

#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The number at the end of its path.
    pub schedule: u32,
    /// µs since 1970, as `slot`.
    pub at: i64,
    pub slot: i64,
    /// Hash of its key.
    pub key: u64,
    /// Seconds after the slot, by this machine's clock, which the database also uses.
    pub lateness: f64,
}

/// The endpoints. Their threads end with the process.
#[derive(Clone, Default)]
pub struct Receiver {
    arrivals: Arc<Mutex<Vec<Arrival>>>,
    /// Connections that get no answer.
    hanging: Arc<Mutex<Vec<TcpStream>>>,
}

impl Receiver {
    /// Adds a target and returns its origin. A hanging target never answers.
    pub fn listen(&self, hangs: bool) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let this = self.clone();
        let accept = move || {
            for stream in listener.incoming().flatten() {
                if hangs {
                    this.hanging.lock().unwrap().push(stream);
                    continue;
                }
                let this = this.clone();
                let serve = move || drop(this.serve(&stream));
                Builder::new().stack_size(STACK).spawn(serve).unwrap();
            }
        };
        Builder::new().stack_size(STACK).spawn(accept).unwrap();
        origin
    }

    /// Returns the arrivals after the first `from`.
    pub fn since(&self, from: usize) -> Vec<Arrival> {
        self.arrivals.lock().unwrap()[from..].to_vec()
    }

    pub fn count(&self) -> usize {
        self.arrivals.lock().unwrap().len()
    }

    pub fn hanging(&self) -> usize {
        self.hanging.lock().unwrap().len()
    }

    fn serve(&self, mut stream: &TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        stream.set_nodelay(true)?;
        while let Some(arrival) = read(&mut reader)? {
            self.arrivals.lock().unwrap().push(arrival);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
        }
        Ok(())
    }
}

/// Reads the next request; `None` at the end of the connection.
fn read(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Arrival>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let now = Utc::now();
    let path = line.split(' ').nth(1).unwrap_or_default();
    let schedule = path.rsplit('/').next().and_then(|number| number.parse().ok()).unwrap_or_default();
    let mut arrival = Arrival { schedule, at: now.timestamp_micros(), slot: 0, key: 0, lateness: f64::NAN };
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().unwrap_or(0);
        } else if name.eq_ignore_ascii_case("webhook-id") {
            let mut hasher = DefaultHasher::new();
            value.hash(&mut hasher);
            arrival.key = hasher.finish();
        } else if name.eq_ignore_ascii_case("awty-slot")
            && let Ok(slot) = DateTime::parse_from_rfc3339(value)
        {
            arrival.slot = slot.timestamp_micros();
            arrival.lateness = (now - slot.to_utc()).as_seconds_f64();
        }
    }
    io::copy(&mut reader.by_ref().take(length), &mut io::sink())?;
    Ok(Some(arrival))
}
