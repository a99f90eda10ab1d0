use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const KEPT: usize = 16 * 1024;

#[derive(Clone, Copy)]
pub enum Manner {
    Hang,
    Deaf,
    /// Sends the first text once, and then repeats the second text without end.
    Endless(&'static str, &'static str),
    /// Sends the first text once, and then the second text every 0.1 s without end.
    Slow(&'static str, &'static str),
    Answer(&'static str, &'static str),
}

pub struct Trap {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    ended: AtomicBool,
    accepted: AtomicUsize,
    open: Mutex<HashMap<usize, Arc<TcpStream>>>,
    heard: Mutex<Vec<u8>>,
}

impl Trap {
    pub fn set(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, state) = (listener.local_addr().unwrap(), Arc::<State>::default());
        let kept = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if kept.ended.load(Ordering::Relaxed) {
                    break;
                }
                let (state, stream) = (kept.clone(), Arc::new(stream));
                let number = state.accepted.fetch_add(1, Ordering::Relaxed);
                state.open.lock().unwrap().insert(number, stream.clone());
                std::thread::spawn(move || {
                    drop(state.serve(&stream, manner));
                    state.open.lock().unwrap().remove(&number);
                });
            }
        });
        Trap { address, state }
    }

    pub fn uri(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn accepted(&self) -> usize {
        self.state.accepted.load(Ordering::Relaxed)
    }

    pub fn heard(&self) -> String {
        String::from_utf8_lossy(&self.state.heard.lock().unwrap()).into_owned()
    }
}

impl Drop for Trap {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.address)); // wakes the loop, so that it looks at `ended`
        for stream in self.state.open.lock().unwrap().values() {
            drop(stream.shutdown(Shutdown::Both));
        }
    }
}

impl State {
    fn serve(&self, mut stream: &TcpStream, manner: Manner) -> io::Result<()> {
        if let Manner::Deaf = manner {
            return self.wait_for_the_end();
        }
        let mut block = [0; KEPT];
        let length = stream.read(&mut block)?;
        if length == 0 {
            return Ok(());
        }
        self.heard.lock().unwrap().extend_from_slice(&block[..length]);
        match manner {
            Manner::Hang | Manner::Deaf => io::copy(&mut stream, &mut io::sink()).map(drop),
            Manner::Endless(first, more) => {
                stream.write_all(first.as_bytes())?;
                let many = more.repeat(4_096 / more.len() + 1);
                while !self.ended.load(Ordering::Relaxed) {
                    stream.write_all(many.as_bytes())?;
                }
                Ok(())
            }
            Manner::Slow(first, more) => {
                stream.write_all(first.as_bytes())?;
                while !self.ended.load(Ordering::Relaxed) {
                    stream.write_all(more.as_bytes())?;
                    pause(Duration::from_millis(100));
                }
                Ok(())
            }
            Manner::Answer(status, headers) => {
                write!(stream, "HTTP/1.1 {status} X\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n")
            }
        }
    }

    fn wait_for_the_end(&self) -> io::Result<()> {
        while !self.ended.load(Ordering::Relaxed) {
            pause(Duration::from_millis(100));
        }
        Ok(())
    }
}

fn pause(length: Duration) {
    let (never, lock) = (Condvar::new(), Mutex::new(()));
    drop(never.wait_timeout(lock.lock().unwrap(), length));
}
