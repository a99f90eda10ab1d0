//! A call and its result.

use super::fault::Failure;
use awty_core::uri::Uri;
use bytes::Bytes;
use hyper::Method;
use hyper::header::HeaderMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Bytes of an answer's body that are read.
pub const BODY: usize = 64 * 1024;

/// Description of one HTTP call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Endpoint to call.
    pub endpoint: Uri,
    /// HTTP method.
    pub method: Method,
    /// All headers except Host and the lengths.
    pub headers: HeaderMap,
    /// Body of the request.
    pub body: Bytes,
    /// Time limit from the name lookup to the end of the answer.
    pub timeout: Duration,
    /// Time limit of TCP and TLS.
    pub connect_timeout: Duration,
}

/// Length of each phase.
#[derive(Clone, Copy, Debug, Default)]
pub struct Phases {
    /// Name lookup.
    pub name: Option<Duration>,
    /// TCP connection.
    pub connect: Option<Duration>,
    /// TLS handshake.
    pub tls: Option<Duration>,
    /// Time from the request to the head of the answer.
    pub first_byte: Option<Duration>,
    /// Whole call.
    pub total: Duration,
}

/// An endpoint's answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Status.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// The part of the body that was read.
    pub body: Bytes,
}

/// Result of a call.
#[derive(Clone, Debug)]
pub struct Report {
    /// Address that was called.
    pub address: Option<SocketAddr>,
    /// Whether a byte of the request may have been sent.
    pub sent: bool,
    /// Length of each phase.
    pub phases: Phases,
    /// The answer, or why there is none.
    pub outcome: Result<Answer, Failure>,
}
