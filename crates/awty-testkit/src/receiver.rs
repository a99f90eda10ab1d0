//! An HTTP receiver for tests. It reads whole requests and leaves the answers to the test. Its threads end with the
//! process.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::SystemTime;

/// An HTTP request that has arrived completely.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// Headers of the request, by their names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
    /// Time at which the first line of the request arrived.
    pub at: SystemTime,
}

impl Request {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(String::as_str).unwrap_or_default()
    }
}

/// Listens on an address, and returns the address with its port. Each connection gets a thread that calls `serve`. An
/// error of `serve` ends the connection.
#[track_caller]
pub fn accept(
    address: impl ToSocketAddrs,
    serve: impl Fn(&TcpStream) -> io::Result<()> + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind(address).unwrap_or_else(|error| panic!("the receiver cannot listen: {error}"));
    let address = listener.local_addr().unwrap_or_else(|error| panic!("the receiver has no address: {error}"));
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || drop(serve(&stream)));
        }
    });
    address
}

/// Reads requests of a connection until the connection ends or `each` returns false.
pub fn requests(stream: &TcpStream, mut each: impl FnMut(Request) -> io::Result<bool>) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some(request) = read(&mut reader)? {
        if !each(request)? {
            break;
        }
    }
    Ok(())
}

/// Sends an HTTP answer. Each of the headers must end with `\r\n`.
pub fn answer(mut stream: &TcpStream, status: &str, headers: &str, body: &str) -> io::Result<()> {
    write!(stream, "HTTP/1.1 {status} X\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Reads without answering until the caller closes the connection.
pub fn hang(mut stream: &TcpStream) -> io::Result<()> {
    io::copy(&mut stream, &mut io::sink()).map(drop)
}

/// Reads one request. Returns none if the connection ended before a whole request.
#[allow(clippy::disallowed_methods)] // the receiver stamps arrivals
fn read(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let at = SystemTime::now();
    let mut parts = first.split_whitespace();
    let (method, path) = (parts.next().unwrap_or_default().to_owned(), parts.next().unwrap_or_default().to_owned());
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
    let mut body = Vec::new();
    let arrived = reader.by_ref().take(length).read_to_end(&mut body)?;
    Ok((arrived as u64 == length).then_some(Request { method, path, headers, body, at }))
}
