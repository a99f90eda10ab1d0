use std::fs;
use std::sync::atomic::Ordering;

use crate::Cluster;
use crate::poll::{PATIENCE, poll};

impl Cluster {
    pub fn log_position(&self) -> usize {
        self.log_since(0).len()
    }

    pub fn log_since(&self, position: usize) -> String {
        let bytes = fs::read(self.log_file()).unwrap_or_default();
        String::from_utf8_lossy(bytes.get(position..).unwrap_or_default()).into_owned()
    }

    #[track_caller]
    pub fn await_log(&self, parts: &[&str], position: usize) -> String {
        let what = format!("a log line with {parts:?}");
        let found = poll(&what, PATIENCE, || {
            let log = self.log_since(position);
            let line = log.lines().find(|line| parts.iter().all(|part| line.contains(part)));
            line.map(str::to_owned).ok_or_else(|| "no such line".into())
        });
        found.unwrap_or_else(|message| panic!("{message}"))
    }

    pub fn new_faults(&self) -> Vec<String> {
        let log = self.log_since(self.looked_for_faults.load(Ordering::Relaxed));
        // Ignores an incomplete last line, because the server may still be writing the line.
        let complete = log.rfind('\n').map_or(0, |end| end + 1);
        self.looked_for_faults.fetch_add(complete, Ordering::Relaxed);
        log[..complete].lines().filter(|line| is_fault(line)).map(str::to_owned).collect()
    }

    pub fn log_tail(&self) -> String {
        const LINES: usize = 40;
        let log = self.log_since(0);
        let lines: Vec<&str> = log.lines().collect();
        let tail = &lines[lines.len().saturating_sub(LINES)..];
        format!("--- end of the server's log ---\n{}\n--- ({}) ---", tail.join("\n"), self.log_file().display())
    }
}

fn is_fault(line: &str) -> bool {
    const WARNINGS: [&str; 7] = [
        " leak: ",                 // of buffers, relations, snapshots, files, ...; until PostgreSQL 16
        "resource was not closed", // the same since PostgreSQL 17
        "still active",            // said of snapshots
        "non-empty SPI stack",
        "problem in alloc set",
        "you don't own a lock",
        "while in ", // for example `AbortTransaction while in COMMIT state`
    ];
    line.starts_with("TRAP: ") || (line.contains("WARNING:  ") && WARNINGS.iter().any(|warning| line.contains(warning)))
}

#[cfg(test)]
mod tests {
    use super::is_fault;

    #[test]
    fn a_failed_assertion_or_a_leak_is_a_fault() {
        let prefix = "2026-01-01 00:00:00.000 UTC [42] awty worker alice@one";
        assert!(is_fault("TRAP: FailedAssertion(\"ActiveSnapshotSet()\", File: \"postgres.c\", Line: 1, PID: 42)"));
        assert!(is_fault("TRAP: failed Assert(\"ActiveSnapshotSet()\"), File: \"postgres.c\", Line: 1, PID: 42"));
        assert!(is_fault(&format!("{prefix} WARNING:  relcache reference leak: relation \"job\" not closed")));
        assert!(is_fault(&format!("{prefix} WARNING:  resource was not closed: relation \"job\"")));
        assert!(is_fault(&format!("{prefix} WARNING:  AbortTransaction while in COMMIT state")));
        assert!(!is_fault(&format!("{prefix} ERROR:  a job that speaks of a leak: all day")));
        assert!(!is_fault(&format!("{prefix} WARNING:  there is already a transaction in progress")));
    }
}
