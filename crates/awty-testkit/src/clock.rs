//! A server's wall clock that a test can set, by a library that is preloaded into the server (`clock.c`).
//!
//! Invariant: only the wall clock of all of the server's processes is moved; their monotonic clock goes on as ever.
//! Does not: move the clock of the test itself.

use crate::{Cluster, account};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = include_str!("../clock.c");

/// The file that says how many seconds a cluster's clock is ahead, as the server maps it.
fn offset_file(cluster: &Cluster) -> PathBuf {
    cluster.socket_directory().join("clock")
}

fn library(cluster: &Cluster) -> PathBuf {
    cluster.socket_directory().join("clock.so")
}

/// Gives a cluster that has not been started a clock of its own.
#[track_caller]
pub(crate) fn install(cluster: &Cluster) {
    let source = cluster.socket_directory().join("clock.c");
    fs::write(&source, SOURCE).unwrap_or_else(|error| panic!("cannot write to {}: {error}", source.display()));
    write(cluster, 0);
    let compiler =
        Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(library(cluster)).arg(source).output();
    match compiler {
        Ok(output) if output.status.success() => {}
        Ok(output) => panic!("cc failed: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => panic!("cannot run cc: {error}"),
    }
}

/// A command that starts a program of the server under the clock of its cluster.
pub(crate) fn command(cluster: &Cluster, program: impl AsRef<OsStr>) -> Command {
    if !library(cluster).exists() {
        return account::command(program);
    }
    let mut command = account::command("env");
    command.arg(format!("LD_PRELOAD={}", library(cluster).display()));
    command.arg(format!("AWTY_CLOCK={}", offset_file(cluster).display())).arg(program);
    command
}

impl Cluster {
    /// Sets the server's clock so many seconds ahead of the real one, or behind it, in all of its processes at once. For
    /// clusters that were built [`with_movable_clock`](crate::Builder::with_movable_clock).
    #[track_caller]
    pub fn set_clock(&self, seconds: i64) {
        write(self, seconds);
    }
}

#[track_caller]
fn write(cluster: &Cluster, seconds: i64) {
    let file = offset_file(cluster);
    // In place and never shorter than it was, as the server has it mapped.
    let open = fs::OpenOptions::new().write(true).create(true).truncate(false).open(&file);
    let written = open.and_then(|open| open.write_all_at(&seconds.to_ne_bytes(), 0));
    written.unwrap_or_else(|error| panic!("cannot write to {}: {error}", file.display()));
}
