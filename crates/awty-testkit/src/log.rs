//! The server's log, as tests read it.

use std::fs;

use crate::Cluster;
use crate::poll::{PATIENCE, poll};

impl Cluster {
    /// How long the server's log is now: pass it to [`Cluster::log_since`] to see only what comes after.
    pub fn log_position(&self) -> usize {
        self.log_since(0).len()
    }

    /// What the server logged after a position.
    pub fn log_since(&self, position: usize) -> String {
        let bytes = fs::read(self.log_file()).unwrap_or_default();
        String::from_utf8_lossy(bytes.get(position..).unwrap_or_default()).into_owned()
    }

    /// Waits until a line after a position contains all the given parts, and returns that line.
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

    /// The end of the server's log, for the message of a failing test.
    pub fn log_tail(&self) -> String {
        const LINES: usize = 40;
        let log = self.log_since(0);
        let lines: Vec<&str> = log.lines().collect();
        let tail = &lines[lines.len().saturating_sub(LINES)..];
        format!("--- end of the server's log ---\n{}\n--- ({}) ---", tail.join("\n"), self.log_file().display())
    }
}
