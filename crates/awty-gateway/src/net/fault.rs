//! What can go wrong before there is an answer, by short names.

use std::fmt;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The name has no address, or nobody says so.
    Name,
    /// No address of the name may be called.
    BlockedAddress,
    /// No connection.
    Connect,
    /// The certificate is out of its dates.
    CertificateExpired,
    /// The certificate is of another name.
    CertificateName,
    /// Nobody known has signed the certificate.
    CertificateUnknown,
    /// TLS failed in another way.
    Tls,
    /// Time ran out.
    Timeout,
    /// The connection ended before the answer did.
    Closed,
    /// The answer is no HTTP.
    Protocol,
    /// The request could not be made: a secret is missing, the definition does not fit.
    Request,
}

impl Fault {
    /// Its short name.
    pub const fn name(self) -> &'static str {
        match self {
            Fault::Name => "name",
            Fault::BlockedAddress => "blocked-address",
            Fault::Connect => "connect",
            Fault::CertificateExpired => "certificate-expired",
            Fault::CertificateName => "certificate-name",
            Fault::CertificateUnknown => "certificate-unknown",
            Fault::Tls => "tls",
            Fault::Timeout => "timeout",
            Fault::Closed => "closed",
            Fault::Protocol => "protocol",
            Fault::Request => "request",
        }
    }

    /// It says that the target as a whole is down, so it counts for the breaker.
    pub const fn is_target_down(self) -> bool {
        match self {
            Fault::Name | Fault::Connect | Fault::CertificateExpired | Fault::CertificateName => true,
            Fault::CertificateUnknown | Fault::Tls | Fault::Timeout => true,
            Fault::BlockedAddress | Fault::Closed | Fault::Protocol | Fault::Request => false,
        }
    }
}

/// A fault, and the words for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What it was.
    pub fault: Fault,
    /// For people.
    pub detail: String,
}

impl Failure {
    /// A fault with its words.
    pub fn new(fault: Fault, detail: impl fmt::Display) -> Self {
        Failure { fault, detail: detail.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.fault.name(), self.detail)
    }
}
