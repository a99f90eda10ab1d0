//! A test receiver. The path of a request says how the receiver misbehaves.

pub use awty_testkit::receiver::Request as Seen;
use awty_testkit::receiver::{accept, answer, hang, requests};
use awty_testkit::{PATIENCE, poll};
use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

#[derive(Clone)]
pub struct Receiver {
    pub address: SocketAddr,
    pub connections: Arc<AtomicUsize>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    open: AtomicUsize,
    seen: Mutex<Vec<Seen>>,
    reached_at: Mutex<Vec<IpAddr>>,
    gate: (Mutex<bool>, Condvar),
}

impl Receiver {
    pub fn start() -> Self {
        Self::start_on("127.0.0.1")
    }

    pub fn start_on(host: &str) -> Self {
        let (state, connections) = (Arc::<State>::default(), Arc::<AtomicUsize>::default());
        let (kept, counted) = (state.clone(), connections.clone());
        let address = accept((host, 0), move |stream| {
            counted.fetch_add(1, Ordering::Relaxed);
            kept.reached_at.lock().unwrap().extend(stream.local_addr().map(|address| address.ip()));
            kept.open.fetch_add(1, Ordering::Relaxed);
            drop(kept.serve(stream));
            kept.open.fetch_sub(1, Ordering::Relaxed);
            Ok(())
        });
        Receiver { address, connections, state }
    }

    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn uri(&self, path: &str) -> String {
        format!("{}{path}", self.origin())
    }

    pub fn open_gate(&self) {
        *self.state.gate.0.lock().unwrap() = true;
        self.state.gate.1.notify_all();
    }

    pub fn open(&self) -> usize {
        self.state.open.load(Ordering::Relaxed)
    }

    pub fn reached_at(&self) -> Vec<IpAddr> {
        self.state.reached_at.lock().unwrap().clone()
    }

    #[track_caller]
    pub fn called(&self, path: &str, times: usize) -> Vec<Seen> {
        let called = poll(&format!("{times} calls of {path}"), 2 * PATIENCE, || {
            let seen = self.seen(path);
            if seen.len() >= times { Ok(seen) } else { Err(format!("{} calls", seen.len())) }
        });
        called.unwrap_or_else(|last| panic!("{last}"))
    }

    pub fn seen(&self, path: &str) -> Vec<Seen> {
        self.state.seen(path)
    }

    pub fn all(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }
}

impl State {
    fn seen(&self, path: &str) -> Vec<Seen> {
        self.seen.lock().unwrap().iter().filter(|seen| seen.path == path).cloned().collect()
    }

    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        requests(stream, |seen| {
            let path = seen.path.clone();
            let times = self.seen(&path).len();
            self.seen.lock().unwrap().push(seen);
            if path.starts_with("/gate/") {
                drop(self.gate.1.wait_while(self.gate.0.lock().unwrap(), |open| !*open));
            }
            behave(stream, &path, times)
        })
    }
}

fn behave(mut stream: &TcpStream, path: &str, times: usize) -> std::io::Result<bool> {
    let words: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match words[0] {
        "status" => answer(stream, words[1], "", "said\0so")?,
        "header" => answer(stream, words[1], &format!("{}: {}\r\n", words[2], words[3].replace('_', " ")), "")?,
        "flaky" => answer(stream, if times == 0 { "503" } else { "200" }, "", "")?,
        "hang" => hang(stream)?,
        "slow" => {
            (0..15).for_each(|_| pause());
            answer(stream, "200", "", "")?;
        }
        "gate" => answer(stream, words[1], "", "")?,
        "close" => return Ok(false),
        "reset" => {
            let linger = Some(std::time::Duration::ZERO);
            return reset(stream, linger).map(|()| false);
        }
        "last" => {
            answer(stream, "200", "", "ok")?;
            return Ok(false);
        }
        "garbage" => stream.write_all(b"no HTTP at all\r\n\r\n")?,
        "short" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nten bytes.")?;
            return Ok(false);
        }
        "chunks" => stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")?,
        "drip" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nX-Drip: ")?;
            while stream.write_all(b"a").is_ok() {
                pause();
            }
        }
        "head" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
            while stream.write_all(format!("X-Much: {}\r\n", "a".repeat(1_000)).as_bytes()).is_ok() {}
        }
        "huge" => {
            write!(stream, "HTTP/1.1 {} X\r\nContent-Length: 1000000000\r\n\r\n", words[1])?;
            let block = [b'a'; 65_536];
            while stream.write_all(&block).is_ok() {}
        }
        _ => answer(stream, "200", "", "ok")?,
    }
    Ok(true)
}

fn pause() {
    let (never, lock) = (Condvar::new(), Mutex::new(()));
    drop(never.wait_timeout(lock.lock().unwrap(), std::time::Duration::from_millis(100)));
}

fn reset(stream: &TcpStream, linger: Option<std::time::Duration>) -> std::io::Result<()> {
    let stream = tokio::net::TcpSocket::from_std_stream(stream.try_clone()?);
    #[allow(deprecated)] // a linger of zero does not block
    stream.set_linger(linger)
}
