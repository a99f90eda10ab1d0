#![allow(clippy::unwrap_used)] // a panic is how a test fails

use crate::{Cluster, poll};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const PATIENCE: Duration = Duration::from_secs(120);

const DEFAULTS: [(&str, &str); 5] = [
    ("--listen", "127.0.0.1:0"),
    ("--listen-metrics", "127.0.0.1:0"),
    ("--allow-localhost", "true"),
    ("--log", "json"),
    ("--log-level", "debug"),
];

#[track_caller]
pub fn until<T>(what: &str, ask: impl FnMut() -> Result<T, String>) -> T {
    poll(what, PATIENCE, ask).unwrap_or_else(|last| panic!("{last}"))
}

impl Cluster {
    #[track_caller]
    pub fn create_gateway(&self, tenants: &[&str]) {
        self.create_extension("postgres");
        let role = ["CREATE EXTENSION awty_http", "CREATE ROLE gateway LOGIN NOINHERIT"];
        self.execute("postgres", &role);
        self.execute("postgres", &["GRANT USAGE ON SCHEMA awty, awty_http TO gateway"]);
        tenants.iter().for_each(|tenant| self.create_tenant(tenant));
    }

    #[track_caller]
    pub fn create_tenant(&self, role: &str) {
        self.execute(
            "postgres",
            &[
                &format!("CREATE ROLE {role} LOGIN"),
                &format!("GRANT USAGE ON SCHEMA awty, awty_http TO {role}"),
                &format!("GRANT {role} TO gateway"),
                &format!("SELECT awty_http.add_tenant('{role}')"),
            ],
        );
    }

    pub fn url(&self, role: &str) -> String {
        format!("postgresql:///postgres?user={role}&host={}", self.socket_directory().display())
    }
}

#[track_caller]
pub fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
pub fn create_credentials(program: &Path, directory: &Path) {
    output(Command::new(program).args(["init", "--credentials"]).arg(directory));
}

pub struct Gateway {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
}

impl Gateway {
    pub fn start(program: &Path, database: &str, credentials: &Path, flags: &[&str]) -> Self {
        Self::start_by(Command::new(program), database, credentials, flags)
    }

    pub fn start_by(mut command: Command, database: &str, credentials: &Path, flags: &[&str]) -> Self {
        command.arg("serve");
        for (flag, value) in DEFAULTS.iter().filter(|(flag, _)| !flags.contains(flag)) {
            command.args([flag, value]);
        }
        command.args(["--database", database, "--credentials"]).arg(credentials).args(flags);
        Self::spawn(command)
    }

    pub fn spawn(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
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

    /// Returns the CPU time of all threads with this name.
    pub fn cpu_of(&self, thread: &str) -> Duration {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let used = tasks.filter_map(|task| {
            let read = |name: &str| std::fs::read_to_string(task.as_ref().unwrap().path().join(name)).ok();
            let time = read("schedstat").filter(|_| read("comm").is_some_and(|name| name.trim() == thread))?;
            time.split(' ').next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(used.sum())
    }

    #[track_caller]
    pub fn address(&self) -> String {
        self.logged("listen")
    }

    #[track_caller]
    pub fn address_of_metrics(&self) -> String {
        self.logged("metrics")
    }

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

    #[track_caller]
    pub fn get_at(&self, address: &str, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    #[track_caller]
    pub fn memory(&self) -> u64 {
        self.status("VmRSS:")
    }

    #[track_caller]
    pub fn most_memory(&self) -> u64 {
        self.status("VmHWM:")
    }

    #[track_caller]
    fn status(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_else(|error| panic!("the gateway has ended: {error}"));
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    #[track_caller]
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn exit(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    #[track_caller]
    pub fn ended(&mut self) -> Option<i32> {
        until("the gateway to end", || self.exit().ok_or_else(|| "it runs".to_owned())).code()
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
