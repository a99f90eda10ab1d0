//! A gateway as a separate process.

use awty_testkit::poll;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const PATIENCE: Duration = Duration::from_secs(120);
pub const BINARY: &str = env!("CARGO_BIN_EXE_awty-gateway");

#[track_caller]
pub fn until<T>(what: &str, ask: impl FnMut() -> Result<T, String>) -> T {
    poll(what, PATIENCE, ask).unwrap_or_else(|last| panic!("{last}"))
}

/// A process that is killed at the end of the test.
pub struct Gateway {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
}

impl Gateway {
    pub fn start(url: &str, credentials: &std::path::Path, name: &str, flags: &[&str]) -> Self {
        // scripts/neighbours sets a release build.
        let mut command = Command::new(std::env::var_os("AWTY_GATEWAY").unwrap_or_else(|| BINARY.into()));
        command.args(["serve", "--log", "json", "--log-level", "debug"]);
        let defaults =
            [("--listen", "127.0.0.1:0"), ("--listen-metrics", "127.0.0.1:0"), ("--allow-localhost", "true")];
        for (flag, value) in defaults {
            if !flags.contains(&flag) {
                command.args([flag, value]);
            }
        }
        command.args(["--database", url, "--name", name, "--credentials"]).arg(credentials).args(flags);
        Self::spawn(command)
    }

    pub fn spawn(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let (log, lines) = (Arc::<Mutex<Vec<String>>>::default(), BufReader::new(child.stderr.take().unwrap()).lines());
        let kept = log.clone();
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| kept.lock().unwrap().push(line)));
        Gateway { child, log }
    }

    pub fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    pub fn threads(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap().count()
    }

    /// Returns the main address from the gateway's log.
    #[track_caller]
    pub fn address(&self) -> String {
        self.logged("listen")
    }

    /// Returns the address of `/metrics` from the gateway's log.
    #[track_caller]
    pub fn address_of_metrics(&self) -> String {
        self.logged("metrics")
    }

    /// Returns a field of the log's line about the start.
    #[track_caller]
    fn logged(&self, field: &str) -> String {
        until("the gateway to listen", || {
            let log = self.log();
            let value = log.split(&format!("\"{field}\":\"")).nth(1).and_then(|rest| rest.split('"').next());
            value.map(str::to_owned).ok_or(log.clone())
        })
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> (u16, String) {
        let address = if path == "/metrics" { self.address_of_metrics() } else { self.address() };
        self.get_at(&address, path)
    }

    /// The same at another address.
    #[track_caller]
    pub fn get_at(&self, address: &str, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// KiB of memory now.
    #[track_caller]
    pub fn memory(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// Largest memory so far, in KiB.
    #[track_caller]
    pub fn most_memory(&self) -> u64 {
        self.status("VmHWM:")
    }

    #[track_caller]
    fn status(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Waits for the end. Returns the exit status.
    #[track_caller]
    pub fn ended(&mut self) -> Option<i32> {
        until("the gateway to end", || self.child.try_wait().unwrap().ok_or_else(|| "it runs".to_owned())).code()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            eprintln!("--- the gateway's log\n{}", self.log());
        }
    }
}
