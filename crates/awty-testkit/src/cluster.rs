//! Invariant: dropping a [`Cluster`] stops the server, and removes the directory unless the cluster must outlive the
//! test process. The drop panics if the server's log reports an unexpected failed assertion or leak, or if amcheck
//! finds damage in awty's tables.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicUsize;

use rustix::process::{Pid, Signal, kill_process};

use crate::builder::{append, network};
use crate::poll::PATIENCE;
use crate::{Builder, account, files, preload};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Smart,
    Fast,
    Immediate,
}

#[derive(Debug)]
pub struct Cluster {
    directory: PathBuf,
    lasting: bool,
    stage: PathBuf,
    pub(crate) looked_for_faults: AtomicUsize,
}

impl Cluster {
    /// All servers can use the same port, because each has its own socket directory.
    pub const PORT: u16 = 5432;

    /// By default, the cluster preloads awty's library and sets `awty.slot` to one second.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn at(directory: PathBuf, lasting: bool, stage: PathBuf) -> Self {
        Cluster { directory, lasting, stage, looked_for_faults: AtomicUsize::new(0) }
    }

    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    pub fn socket_directory(&self) -> &Path {
        &self.directory
    }

    pub fn stage(&self) -> &Path {
        &self.stage
    }

    pub(crate) fn executable(&self, name: &str) -> PathBuf {
        self.stage.join("bin").join(name)
    }

    pub fn log_file(&self) -> PathBuf {
        self.directory.join("log")
    }

    #[track_caller]
    pub fn start(&mut self) {
        let mut start = self.pg_ctl(&["start", "-w", "-t", "180", "-l"]);
        let output = start.arg(self.log_file()).output();
        let output = output.unwrap_or_else(|error| panic!("cannot run {start:?}: {error}"));
        if !output.status.success() {
            panic!("the server did not start: {}", String::from_utf8_lossy(&output.stderr));
        }
    }

    #[track_caller]
    pub fn stop(&mut self, how: Stop) {
        let mode = match how {
            Stop::Smart => "smart",
            Stop::Fast => "fast",
            Stop::Immediate => "immediate",
        };
        self.ctl(&["stop", "-w", "-t", "180", "-m", mode]);
    }

    #[track_caller]
    pub fn restart(&mut self) {
        self.stop(Stop::Fast);
        self.start();
    }

    /// May return before all server processes have applied the new settings.
    #[track_caller]
    pub fn reload(&self) {
        self.ctl(&["reload"]);
    }

    #[track_caller]
    pub fn promote(&mut self) {
        self.ctl(&["promote", "-w", "-t", "180"]);
    }

    /// The new settings take effect after [`reload`](Self::reload) or [`restart`](Self::restart).
    #[track_caller]
    pub fn configure(&self, lines: &str) {
        append(&self.data().join("postgresql.conf"), &format!("\n{lines}\n"));
    }

    #[track_caller]
    pub fn standby(&self) -> Cluster {
        let mut standby = self.base_backup(&["-R"]);
        standby.start();
        standby
    }

    /// Returns a copy of this cluster. The copy's server is not running.
    #[track_caller]
    pub fn base_backup(&self, options: &[&str]) -> Cluster {
        let copy = Cluster::at(files::new_directory(), false, self.stage.clone());
        let mut backup = self.server_tool("pg_basebackup");
        account::run(
            backup.args(["-U", "postgres", "-X", "stream", "-c", "fast", "-D"]).arg(copy.data()).args(options),
        );
        copy.configure(&network(&copy));
        preload::copy(self, &copy);
        copy
    }

    pub fn is_running(&self) -> bool {
        files::postmaster(&self.data()).is_some()
    }

    #[track_caller]
    pub fn postmaster_pid(&self) -> i32 {
        let pid = files::postmaster(&self.data());
        pid.unwrap_or_else(|| panic!("the server does not run")).as_raw_nonzero().get()
    }

    #[track_caller]
    pub fn single_user(&self, options: &[&str], database: &str, script: &str) -> String {
        let file = self.directory.join("single_user.sql");
        let input = std::fs::write(&file, script).and_then(|()| std::fs::File::open(&file));
        let input = input.unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
        let mut postgres = self.server_tool("postgres");
        postgres.args(["--single", "-D"]).arg(self.data()).args(options).arg(database).stdin(input);
        let output = postgres.output().unwrap_or_else(|error| panic!("cannot run {postgres:?}: {error}"));
        let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        assert!(output.status.success(), "{postgres:?} failed ({}):\n{printed}", output.status);
        printed
    }

    #[track_caller]
    pub fn kill(&self, signal: Signal, pid: i32) {
        let target = Pid::from_raw(pid).filter(|_| pid > 1);
        let target = target.unwrap_or_else(|| panic!("{pid} is no process to send a signal to"));
        match kill_process(target, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => panic!("cannot send {signal:?} to process {pid}: {error}"),
        }
    }

    #[track_caller]
    pub fn limit_memory(&self, pid: i32, more: u64) {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let has = status
            .lines()
            .find_map(|line| line.strip_prefix("VmSize:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        let has = has.unwrap_or_else(|| panic!("process {pid} has no size"));
        let limit = format!("--as={}:", has * 1024 + more);
        account::run(account::command("prlimit").args([limit, format!("--pid={pid}")]));
    }

    #[track_caller]
    pub fn allow_files(&self, pid: i32, files: u32) {
        account::run(account::command("prlimit").args([format!("--nofile={files}:"), format!("--pid={pid}")]));
    }

    #[track_caller]
    pub fn kill_server(&mut self) {
        let pid = self.postmaster_pid();
        self.kill(Signal::KILL, pid);
        files::await_end(&self.data(), PATIENCE).unwrap_or_else(|message| panic!("{message}"));
        // Without an init process, the dead postmaster stays a zombie, and lock files with its process id would stop a
        // new postmaster.
        for lock in [self.data().join("postmaster.pid"), self.directory.join(format!(".s.PGSQL.{}.lock", Self::PORT))] {
            let _ = std::fs::remove_file(lock);
        }
    }

    pub(crate) fn server_tool(&self, name: &str) -> Command {
        let mut command = account::command(self.executable(name));
        command.env("PGHOST", self.socket_directory()).env("PGPORT", Self::PORT.to_string());
        command
    }

    pub(crate) fn pg_ctl(&self, arguments: &[&str]) -> Command {
        let mut command = preload::command(self, self.executable("pg_ctl"));
        command.arg("-D").arg(self.data()).args(arguments);
        command
    }

    #[track_caller]
    fn ctl(&self, arguments: &[&str]) {
        let mut command = self.pg_ctl(arguments);
        let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            panic!("pg_ctl {} failed: {stderr}", arguments[0]);
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let panicking = std::thread::panicking();
        if panicking {
            eprintln!("{}", self.log_tail());
        }
        let corrupt = if panicking || self.lasting { Vec::new() } else { self.faults_of_tables() };
        let faults = self.new_faults();
        if !self.lasting {
            files::remove(&self.directory);
        }
        if !panicking {
            assert!(corrupt.is_empty(), "awty's tables are corrupt: {corrupt:#?}");
            assert!(faults.is_empty(), "the server's log has failed assertions or leaks: {faults:#?}");
        }
    }
}
