use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::SystemTime;

#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
    pub at: SystemTime,
}

impl Request {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(String::as_str).unwrap_or_default()
    }
}

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

pub fn requests(stream: &TcpStream, mut each: impl FnMut(Request) -> io::Result<bool>) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some(request) = read(&mut reader)? {
        if !each(request)? {
            break;
        }
    }
    Ok(())
}

/// Each header must end with `\r\n`.
pub fn answer(mut stream: &TcpStream, status: &str, headers: &str, body: &str) -> io::Result<()> {
    write!(stream, "HTTP/1.1 {status} X\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

pub fn hang(mut stream: &TcpStream) -> io::Result<()> {
    io::copy(&mut stream, &mut io::sink()).map(drop)
}

/// Returns `None` if the connection ended before the whole request had arrived.
#[allow(clippy::disallowed_methods)] // records the time of arrival
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
