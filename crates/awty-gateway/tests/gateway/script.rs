use awty_testkit::receiver::{accept, hang};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

#[derive(Clone, Debug)]
pub enum Step {
    Say(Vec<u8>),
    Drip(Vec<u8>),
    Flood(Vec<u8>),
    Hang,
}

pub struct Script {
    address: SocketAddr,
    /// A listener that accepts no connection, and the connections that fill its queue.
    _full: Option<(Vec<TcpStream>, TcpListener)>,
}

impl Script {
    pub fn start(steps: Vec<Step>) -> Self {
        Script { address: accept("127.0.0.1:0", move |stream| serve(stream, &steps)), _full: None }
    }

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

fn serve(mut stream: &TcpStream, steps: &[Step]) -> io::Result<()> {
    // Starts `steps` after a request that ends in `body`. On a TLS connection, starts at the first byte, because the
    // server cannot decrypt the request.
    let (mut seen, mut byte) = (Vec::new(), [0; 1]);
    loop {
        seen.clear();
        while !seen.ends_with(b"\r\n\r\nbody") {
            if stream.read(&mut byte)? == 0 {
                return Ok(());
            }
            seen.push(byte[0]);
            if seen[0] == 0x16 {
                break; // TLS ClientHello
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
                Step::Hang => return hang(stream),
            }
        }
        let whole = steps.iter().any(|step| matches!(step, Step::Say(bytes) if bytes.ends_with(b"\r\n\r\n")));
        if !whole {
            return Ok(());
        }
    }
}

fn pause() {
    let (never, lock) = (Condvar::new(), Mutex::new(()));
    drop(never.wait_timeout(lock.lock().unwrap(), Duration::from_millis(100)));
}
