//! The demo's endpoints: a sound one, one that misbehaves sometimes, and a missing one.
//!
//! Does not: end by itself; `scripts/demo stop` ends it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Answers requests until the process ends.
pub(crate) fn serve(address: &str) -> io::Result<()> {
    let listener = TcpListener::bind(address)?;
    println!("{}", listener.local_addr()?);
    let calls = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let (stream, calls) = (stream?, Arc::clone(&calls));
        std::thread::spawn(move || {
            // A lost caller ends only its own thread.
            let _ = answer(&stream, &calls);
        });
    }
    Ok(())
}

fn answer(mut stream: &TcpStream, calls: &AtomicUsize) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let Some(path) = request(&mut reader)? else { return Ok(()) };
        let status = match path.as_str() {
            "/stock" => "200 OK",
            "/carrier" => match calls.fetch_add(1, Ordering::Relaxed) % 6 {
                1 => "503 Service Unavailable",
                3 => return io::copy(&mut stream, &mut io::sink()).map(drop), // never answers
                5 => return Ok(()),                                           // hangs up
                _ => "200 OK",
            },
            _ => "404 Not Found",
        };
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")?;
    }
}

/// Reads a whole request. Returns its path.
fn request(reader: &mut BufReader<TcpStream>) -> io::Result<Option<String>> {
    let (mut first, mut length) = (String::new(), 0);
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().unwrap_or(0);
        }
    }
    io::copy(&mut reader.by_ref().take(length), &mut io::sink())?;
    Ok(Some(first.split(' ').nth(1).unwrap_or_default().to_owned()))
}
