//! An HTTP call and its result.

use super::fault::Failure;
use awty_core::uri::Uri;
use bytes::Bytes;
use hyper::Method;
use hyper::header::HeaderMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Maximum number of bytes that are read of an answer's body.
pub const BODY: usize = 64 * 1024;

#[derive(Clone, Debug)]
pub struct Call {
    pub endpoint: Uri,
    pub method: Method,
    /// All headers of the request except `Host` and the length, which are added later.
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Time limit from the look-up of the host's name to the end of the answer.
    pub timeout: Duration,
    pub connect_timeout: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Phases {
    pub name: Option<Duration>,
    pub connect: Option<Duration>,
    pub tls: Option<Duration>,
    /// Time from sending the request to receiving the head of the answer.
    pub first_byte: Option<Duration>,
    pub total: Duration,
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    /// The part of the body that was read, at most [`BODY`] bytes.
    pub body: Bytes,
}

#[derive(Clone, Debug)]
pub struct Report {
    pub address: Option<SocketAddr>,
    /// Whether a byte of the request may have been sent.
    pub sent: bool,
    pub phases: Phases,
    pub outcome: Result<Answer, Failure>,
}
