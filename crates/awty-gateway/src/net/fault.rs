use crate::files;
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
    /// The gateway has no file descriptor left, which is no fault of the call or of its target.
    NoFile,
}

pub const NO_FILE: &str = "no-file";

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
            Fault::NoFile => NO_FILE,
        }
    }

    pub const fn is_target_down(self) -> bool {
        match self {
            Fault::Name | Fault::Connect | Fault::CertificateExpired | Fault::CertificateName => true,
            Fault::CertificateUnknown | Fault::Tls | Fault::Timeout => true,
            Fault::BlockedAddress | Fault::Closed | Fault::Protocol | Fault::Request | Fault::NoFile => false,
        }
    }
}

/// The endpoint sends more than the gateway reads, as the text says.
#[derive(Debug)]
pub struct Endless(pub &'static str);

impl fmt::Display for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Endless {}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub fault: Fault,
    pub detail: String,
}

impl Failure {
    pub fn new(fault: Fault, detail: impl fmt::Display) -> Self {
        Failure { fault, detail: detail.to_string() }
    }

    /// Returns a failure of `fault`, unless the gateway itself had no file descriptor left.
    pub fn unless_own(fault: Fault, error: &std::io::Error, detail: impl fmt::Display) -> Self {
        Failure::new(if files::are_used_up(error) { Fault::NoFile } else { fault }, detail)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.fault.name(), self.detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn a_missing_file_descriptor_is_the_gateways_own_fault() {
        let fault = |errno: Errno| Failure::unless_own(Fault::Connect, &errno.into(), "why").fault;
        for own in [Errno::MFILE, Errno::NFILE] {
            assert_eq!(fault(own), Fault::NoFile);
        }
        assert_eq!(fault(Errno::CONNREFUSED), Fault::Connect);
        assert!(Fault::Connect.is_target_down() && !Fault::NoFile.is_target_down());
    }
}
