//! Invariant: the gateway's limits together need no more file descriptors than the system allows, so that neither
//! clients nor idle connections take the last ones from calls.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors of the listeners, of the connections to the database, of the log and of the runtime.
const REST: usize = 100;
/// A call asks for the IPv4 and the IPv6 addresses of its host name at the same time.
const OF_A_CALL: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub calls: usize,
    pub idle: usize,
    /// Connections of clients to each listener.
    pub clients: usize,
    pub listeners: usize,
}

impl Limits {
    const fn needed(self) -> usize {
        OF_A_CALL * self.calls + self.idle + self.listeners * self.clients + REST
    }

    /// Lowers the limits in proportion if they need more than `files` descriptors.
    fn within(self, files: usize) -> Self {
        if self.needed() <= files {
            return self;
        }
        let part = |limit: usize| (limit * files.saturating_sub(REST) / (self.needed() - REST)).max(1);
        Limits { calls: part(self.calls), idle: part(self.idle), clients: part(self.clients), ..self }
    }

    /// Raises the soft limit of open files to the hard limit. Lowers its own limits if that is not enough, because
    /// the gateway must also start in a small container.
    pub fn fitted(self) -> Self {
        let files = raised();
        let fitted = self.within(files);
        if fitted != self {
            let (needed, Limits { calls, idle, clients, .. }) = (self.needed(), fitted);
            tracing::warn!(
                files,
                needed,
                calls,
                idle,
                clients,
                "the hard limit of open files is low, so the gateway lowers its limits; raise it, or lower max_in_flight"
            );
        }
        fitted
    }
}

fn raised() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    if let Err(error) = raised {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
    let now = getrlimit(Resource::Nofile).current;
    now.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX))
}

/// Returns whether the process or the machine has no file descriptor left.
pub fn are_used_up(error: &std::io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Returns the error with which a file cannot be opened now, if no file descriptor is left.
pub fn missing() -> Option<std::io::Error> {
    std::fs::File::open("/dev/null").err().filter(are_used_up)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_limits_together_fit_the_files() {
        let usual = Limits { calls: 2_000, idle: 1_000, clients: 1_000, listeners: 2 };
        assert_eq!(usual.needed(), 7_100);
        assert_eq!((usual.within(7_100), usual.within(usize::MAX)), (usual, usual));
        assert_eq!(usual.within(3_600), Limits { calls: 1_000, idle: 500, clients: 500, listeners: 2 });
        for files in 150..7_100 {
            assert!(usual.within(files).needed() <= files, "{files}");
        }
        assert_eq!(usual.within(0), Limits { calls: 1, idle: 1, clients: 1, listeners: 2 });
        let largest = Limits { calls: 1_000_000, ..usual };
        assert!(largest.within(1_000_000).needed() <= 1_000_000);
    }
}
