//! A server that says what it is told to each request, byte by byte.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// What it does after a request has arrived.
#[derive(Clone, Debug)]
pub enum Step {
    Say(Vec<u8>),
    /// Now and then, until the other side goes away.
    Drip(Vec<u8>),
    /// As fast as it is taken, until the other side goes away.
    Flood(Vec<u8>),
    /// Until the other side goes away.
    Hang,
}

/// The server; its threads end with the test's process.
pub struct Script {
    address: SocketAddr,
    /// Keeps the queue full: the connections in it, and the listener that accepts none of them.
    _full: Option<(Vec<TcpStream>, TcpListener)>,
}

impl Script {
    pub fn start(steps: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let steps = Arc::new(steps);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let steps = Arc::clone(&steps);
                std::thread::spawn(move || drop(serve(stream, &steps)));
            }
        });
        Script { address, _full: None }
    }

    /// A server that accepts nobody, and whose queue is full.
    pub fn full() -> Self {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap().into_std().unwrap();
        let address = listener.local_addr().unwrap();
        let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(300));
        let fill = std::iter::from_fn(|| connect().ok()).take(10).collect::<Vec<_>>();
        assert!(fill.len() < 10, "the queue is never full");
        Script { address, _full: Some((fill, listener)) }
    }

    pub fn uri(&self, scheme: &str) -> String {
        format!("{scheme}://{}/", self.address)
    }
}

fn serve(mut stream: TcpStream, steps: &[Step]) -> io::Result<()> {
    // A request is its head and four bytes; TLS says something else, which is as good.
    let (mut seen, mut byte) = (Vec::new(), [0; 1]);
    loop {
        seen.clear();
        while !seen.ends_with(b"\r\n\r\nbody") {
            if stream.read(&mut byte)? == 0 {
                return Ok(());
            }
            seen.push(byte[0]);
            if seen[0] == 0x16 {
                break; // the hello of TLS
            }
        }
        for step in steps {
            match step {
                Step::Say(bytes) => stream.write_all(bytes)?,
                Step::Drip(bytes) => loop {
                    stream.write_all(bytes)?;
                    pause();
                },
                Step::Flood(bytes) => loop {
                    stream.write_all(bytes)?;
                },
                Step::Hang => return io::copy(&mut stream, &mut io::sink()).map(drop),
            }
        }
        // An answer without a length ends with the connection.
        let whole = steps.iter().any(|step| matches!(step, Step::Say(bytes) if bytes.ends_with(b"\r\n\r\n")));
        if !whole {
            return Ok(());
        }
    }
}

/// A tenth of a second on a condition that nobody meets.
fn pause() {
    let (never, lock) = (Condvar::new(), Mutex::new(()));
    drop(never.wait_timeout(lock.lock().unwrap(), Duration::from_millis(100)));
}
