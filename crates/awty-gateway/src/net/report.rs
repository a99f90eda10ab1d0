//! What a call is, and what came of it.

use super::fault::Failure;
use crate::uri::Endpoint;
use bytes::Bytes;
use hyper::Method;
use hyper::header::HeaderMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Bytes of an answer that are read.
pub const BODY: usize = 64 * 1024;

/// What to call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Where to.
    pub endpoint: Endpoint,
    /// GET, POST and so on.
    pub method: Method,
    /// All but Host and the lengths.
    pub headers: HeaderMap,
    /// What is sent.
    pub body: Bytes,
    /// From the first look at the name to the end of the answer.
    pub timeout: Duration,
    /// For TCP and TLS.
    pub connect_timeout: Duration,
}

/// How long what took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Phases {
    /// To look up the name.
    pub name: Option<Duration>,
    /// To connect.
    pub connect: Option<Duration>,
    /// To speak TLS.
    pub tls: Option<Duration>,
    /// From the request to the head of the answer.
    pub first_byte: Option<Duration>,
    /// The whole.
    pub total: Duration,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// As much of it as was read.
    pub body: Bytes,
}

/// What came of a call.
#[derive(Clone, Debug)]
pub struct Report {
    /// The address that was called.
    pub address: Option<SocketAddr>,
    /// Whether a byte of the request may have left.
    pub sent: bool,
    /// How long what took.
    pub phases: Phases,
    /// The answer, or why there is none.
    pub outcome: Result<Answer, Failure>,
}
