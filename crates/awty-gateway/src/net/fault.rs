use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Name,
    BlockedAddress,
    Connect,
    CertificateExpired,
    CertificateName,
    CertificateUnknown,
    Tls,
    Timeout,
    Closed,
    Protocol,
    Request,
}

impl Fault {
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

    pub const fn is_target_down(self) -> bool {
        match self {
            Fault::Name | Fault::Connect | Fault::CertificateExpired | Fault::CertificateName => true,
            Fault::CertificateUnknown | Fault::Tls | Fault::Timeout => true,
            Fault::BlockedAddress | Fault::Closed | Fault::Protocol | Fault::Request => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub fault: Fault,
    pub detail: String,
}

impl Failure {
    pub fn new(fault: Fault, detail: impl fmt::Display) -> Self {
        Failure { fault, detail: detail.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.fault.name(), self.detail)
    }
}
