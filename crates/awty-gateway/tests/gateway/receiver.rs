//! An HTTP receiver that misbehaves as its path says, and records the requests.

use awty_testkit::{PATIENCE, poll};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::SystemTime;

#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
    pub at: SystemTime,
}

/// The receiver. Its threads end with the test's process.
#[derive(Clone)]
pub struct Receiver {
    pub address: SocketAddr,
    pub connections: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    seen: Arc<Mutex<Vec<Seen>>>,
    reached_at: Arc<Mutex<Vec<IpAddr>>>,
    gate: Arc<(Mutex<bool>, Condvar)>,
}

impl Receiver {
    pub fn start() -> Self {
        Self::start_on("127.0.0.1")
    }

    pub fn start_on(host: &str) -> Self {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let receiver = Receiver {
            address,
            connections: Arc::default(),
            open: Arc::default(),
            seen: Arc::default(),
            reached_at: Arc::default(),
            gate: Arc::default(),
        };
        let this = receiver.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                this.connections.fetch_add(1, Ordering::Relaxed);
                this.reached_at.lock().unwrap().extend(stream.local_addr().map(|address| address.ip()));
                let this = this.clone();
                std::thread::spawn(move || {
                    this.open.fetch_add(1, Ordering::Relaxed);
                    drop(this.serve(stream));
                    this.open.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        receiver
    }

    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn uri(&self, path: &str) -> String {
        format!("{}{path}", self.origin())
    }

    /// Lets the waiting calls of `/gate/...` be answered.
    pub fn open_gate(&self) {
        *self.gate.0.lock().unwrap() = true;
        self.gate.1.notify_all();
    }

    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// The local addresses that callers have reached.
    pub fn reached_at(&self) -> Vec<IpAddr> {
        self.reached_at.lock().unwrap().clone()
    }

    /// Waits for `times` requests of a path, and returns them.
    #[track_caller]
    pub fn called(&self, path: &str, times: usize) -> Vec<Seen> {
        let called = poll(&format!("{times} calls of {path}"), 2 * PATIENCE, || {
            let seen = self.seen(path);
            if seen.len() >= times { Ok(seen) } else { Err(format!("{} calls", seen.len())) }
        });
        called.unwrap_or_else(|last| panic!("{last}"))
    }

    pub fn seen(&self, path: &str) -> Vec<Seen> {
        self.seen.lock().unwrap().iter().filter(|seen| seen.path == path).cloned().collect()
    }

    pub fn all(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        while let Some(seen) = read(&mut reader)? {
            let path = seen.path.clone();
            let times = self.seen(&path).len();
            self.seen.lock().unwrap().push(seen);
            if path.starts_with("/gate/") {
                drop(self.gate.1.wait_while(self.gate.0.lock().unwrap(), |open| !*open));
            }
            if !behave(&stream, &path, times)? {
                break;
            }
        }
        Ok(())
    }
}

#[allow(clippy::disallowed_methods)] // the receiver stamps arrivals
fn read(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Seen>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut parts = line.split_whitespace();
    let (method, path) = (parts.next().unwrap_or_default().to_owned(), parts.next().unwrap_or_default().to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Seen { method, path, headers, body, at: SystemTime::now() }))
}

/// Answers as the path says. False ends the connection.
fn behave(mut stream: &TcpStream, path: &str, times: usize) -> std::io::Result<bool> {
    let words: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let answer = |mut stream: &TcpStream, status: &str, headers: &str, body: &str| {
        write!(stream, "HTTP/1.1 {status} X\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
    };
    match words[0] {
        "status" => answer(stream, words[1], "", "said\0so")?,
        "header" => answer(stream, words[1], &format!("{}: {}\r\n", words[2], words[3].replace('_', " ")), "")?,
        "flaky" => answer(stream, if times == 0 { "503" } else { "200" }, "", "")?,
        "hang" => drop(std::io::copy(&mut stream, &mut std::io::sink())?),
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

/// Waits a tenth of a second on a condition that is never notified.
fn pause() {
    let (never, lock) = (Condvar::new(), Mutex::new(()));
    drop(never.wait_timeout(lock.lock().unwrap(), std::time::Duration::from_millis(100)));
}

/// Closes with RST instead of FIN.
fn reset(stream: &TcpStream, linger: Option<std::time::Duration>) -> std::io::Result<()> {
    let stream = tokio::net::TcpSocket::from_std_stream(stream.try_clone()?);
    #[allow(deprecated)] // a linger of zero does not block
    stream.set_linger(linger)
}
