use awty_testkit::receiver::{Request, accept, answer, requests};
use chrono::{DateTime, Utc};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub schedule: u32,
    /// Microseconds since 1970.
    pub at: i64,
    pub slot: i64,
    pub key: u64,
    pub lateness: f64,
}

#[derive(Clone, Default)]
pub struct Receiver {
    arrivals: Arc<Mutex<Vec<Arrival>>>,
    hanging: Arc<Mutex<Vec<TcpStream>>>,
}

impl Receiver {
    pub fn listen(&self, hangs: bool) -> String {
        let this = self.clone();
        let address = accept("127.0.0.1:0", move |stream| {
            if hangs {
                this.hanging.lock().unwrap().push(stream.try_clone()?);
                return Ok(());
            }
            stream.set_nodelay(true)?;
            requests(stream, |request| {
                this.arrivals.lock().unwrap().push(Arrival::of(&request));
                answer(stream, "200", "", "").map(|()| true)
            })
        });
        format!("http://{address}")
    }

    pub fn since(&self, from: usize) -> Vec<Arrival> {
        self.arrivals.lock().unwrap()[from..].to_vec()
    }

    pub fn count(&self) -> usize {
        self.arrivals.lock().unwrap().len()
    }

    pub fn hanging(&self) -> usize {
        self.hanging.lock().unwrap().len()
    }
}

impl Arrival {
    fn of(request: &Request) -> Self {
        let at = DateTime::<Utc>::from(request.at);
        let schedule = request.path.rsplit('/').next().and_then(|number| number.parse().ok()).unwrap_or_default();
        let slot = DateTime::parse_from_rfc3339(request.header("awty-slot")).map(|slot| slot.to_utc()).ok();
        let mut hasher = DefaultHasher::new();
        request.header("webhook-id").hash(&mut hasher);
        Arrival {
            schedule,
            at: at.timestamp_micros(),
            slot: slot.map_or(0, |slot| slot.timestamp_micros()),
            key: hasher.finish(),
            lateness: slot.map_or(f64::NAN, |slot| (at - slot).as_seconds_f64()),
        }
    }
}
