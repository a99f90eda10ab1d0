//! Short names of the faults that leave a call without an answer.

use std::fmt;

/// Reason why a call has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The name has no address, or no name server answered.
    Name,
    /// No address of the name may be called.
    BlockedAddress,
    /// No connection was established.
    Connect,
    /// The certificate is expired or not valid yet.
    CertificateExpired,
    /// The certificate is for another name.
    CertificateName,
    /// The issuer of the certificate is unknown.
    CertificateUnknown,
    /// TLS failed in another way.
    Tls,
    /// The time limit was reached.
    Timeout,
    /// The connection ended before the answer was complete.
    Closed,
    /// The answer is not HTTP.
    Protocol,
    /// The request could not be built, for example because a secret is missing.
    Request,
}

impl Fault {
    /// Short name.
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

    /// Whether the target as a whole is down, so that the fault counts for the breaker.
    pub const fn is_target_down(self) -> bool {
        match self {
            Fault::Name | Fault::Connect | Fault::CertificateExpired | Fault::CertificateName => true,
            Fault::CertificateUnknown | Fault::Tls | Fault::Timeout => true,
            Fault::BlockedAddress | Fault::Closed | Fault::Protocol | Fault::Request => false,
        }
    }
}

/// A fault with its description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The fault.
    pub fault: Fault,
    /// Description for people.
    pub detail: String,
}

impl Failure {
    /// Creates a failure.
    pub fn new(fault: Fault, detail: impl fmt::Display) -> Self {
        Failure { fault, detail: detail.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.fault.name(), self.detail)
    }
}
