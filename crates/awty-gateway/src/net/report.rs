use super::fault::Failure;
use awty_core::uri::Uri;
use bytes::Bytes;
use hyper::Method;
use hyper::header::HeaderMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Most bytes of an answer's body that the gateway reads.
pub const BODY: usize = 64 * 1024;
/// Most bytes of an answer's body, or of one of its headers, that the gateway keeps.
pub const KEPT: usize = 1_024;
/// Headers of an answer that the gateway reads.
pub const HEADERS: [&str; 4] = ["location", "retry-after", "awty-again", "awty-stop"];

#[derive(Clone, Debug)]
pub struct Call {
    /// The tenant's random number.
    pub tenant: i64,
    pub endpoint: Uri,
    pub method: Method,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Maximum duration from the look-up of the host name to the end of the answer.
    pub timeout: Duration,
    pub connect_timeout: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Phases {
    pub name: Option<Duration>,
    pub connect: Option<Duration>,
    pub tls: Option<Duration>,
    pub first_byte: Option<Duration>,
    pub total: Duration,
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    /// The first [`KEPT`] bytes of each of [`HEADERS`]
    pub headers: HeaderMap,
    /// The first [`KEPT`] bytes
    pub body: Bytes,
}

#[derive(Clone, Debug)]
pub struct Report {
    pub address: Option<SocketAddr>,
    pub sent: bool,
    pub phases: Phases,
    pub outcome: Result<Answer, Failure>,
}
