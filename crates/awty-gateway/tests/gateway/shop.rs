//! A throwaway cluster with awty_http, and gateways as processes of their own.

use awty_testkit::{Cluster, poll};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const PATIENCE: Duration = Duration::from_secs(120);

/// A database with a role `app` that schedules and a role `gateway` that may claim.
pub struct Shop {
    pub cluster: Cluster,
    credentials: PathBuf,
}

impl Shop {
    pub fn open() -> Self {
        let cluster = Cluster::builder().set("awty.slot", "1s").start();
        cluster.execute(
            "postgres",
            &[
                "CREATE EXTENSION awty",
                "CREATE EXTENSION awty_http",
                "CREATE ROLE app LOGIN",
                "CREATE ROLE gateway LOGIN NOINHERIT",
                "GRANT USAGE ON SCHEMA awty, awty_http TO app, gateway",
                "GRANT app TO gateway",
                "SELECT awty_http.add_tenant('app')",
            ],
        );
        let credentials = cluster.data().join("../credentials");
        let init = Command::new(BINARY).args(["init", "--credentials"]).arg(&credentials).output().unwrap();
        assert!(init.status.success(), "{}", String::from_utf8_lossy(&init.stderr));
        Shop { cluster, credentials }
    }

    /// The job of the role that schedules, as a literal of SQL.
    pub fn job(&self) -> &'static str {
        "'http.app'"
    }

    /// Writes a secret of a tenant.
    pub fn secret(&self, role: &str, name: &str, text: &str) {
        let folder = self.credentials.join(role);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), text).unwrap();
    }

    /// Lets a secret of a tenant go to an origin, for gateways that start later with `--config`. Returns the file's path.
    pub fn let_secret(&self, role: &str, name: &str, origin: &str) -> String {
        let file = self.credentials.join("../gateway.toml");
        let mut open = std::fs::OpenOptions::new().create(true).append(true).open(&file).unwrap();
        writeln!(open, "[secrets.\"{role}/{name}\"]\norigins = [\"{origin}\"]").unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// Runs a statement as the role that schedules.
    #[track_caller]
    pub fn app(&self, sql: &str) {
        self.cluster.client("postgres", "app").batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// One text that a query gives.
    #[track_caller]
    pub fn text(&self, sql: &str) -> String {
        self.cluster.value::<Option<String>>("postgres", &format!("SELECT ({sql})::text")).unwrap_or_default()
    }

    #[track_caller]
    pub fn await_text(&self, sql: &str, wanted: &str) {
        until(sql, || Some(self.text(sql)).filter(|found| found == wanted).ok_or_else(|| self.text(sql)));
    }

    pub fn url(&self, role: &str) -> String {
        format!("postgresql:///postgres?user={role}&host={}", self.cluster.socket_directory().display())
    }

    pub fn master_key(&self) -> Vec<u8> {
        awty_gateway::secrets::read(&self.credentials).unwrap()
    }

    /// A gateway that may call this machine.
    pub fn gateway(&self, name: &str) -> Gateway {
        Gateway::start(&self.url("gateway"), &self.credentials, name, &[])
    }

    /// The same, with another way to the database.
    pub fn gateway_at(&self, url: &str, name: &str) -> Gateway {
        Gateway::start(url, &self.credentials, name, &[])
    }

    /// A token, made by the program as the role itself.
    #[track_caller]
    pub fn token(&self, role: &str, scope: &str) -> String {
        let mut command = Command::new(BINARY);
        let made = command
            .args(["token", "create", "--role", role, "--scope", scope, "--database", &self.url(role)])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        String::from_utf8_lossy(&made.stdout).trim().to_owned()
    }

    /// What `awty-gateway config` prints.
    pub fn config(&self, flags: &[&str]) -> String {
        let mut command = Command::new(BINARY);
        let shown = command.args(["config", "--credentials"]).arg(&self.credentials).args(flags).output().unwrap();
        assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
        String::from_utf8(shown.stdout).unwrap()
    }

    /// A gateway without flags.
    pub fn gateway_by_environment(&self, variables: &[(&str, &str)]) -> Gateway {
        let mut command = Command::new(BINARY);
        command.arg("serve").envs(variables.iter().copied()).env("AWTY_CREDENTIALS", &self.credentials);
        command.env("AWTY_LISTEN_METRICS", "127.0.0.1:0");
        Gateway::spawn(command)
    }

    pub fn gateway_with(&self, role: &str, flags: &[&str]) -> Gateway {
        Gateway::start(&self.url(role), &self.credentials, "other", flags)
    }
}

const BINARY: &str = env!("CARGO_BIN_EXE_awty-gateway");

/// A port that nobody listens at. The system gives none of these to a connection or a listener that asks for any.
pub fn free_port() -> u16 {
    let first = 10_000 + u16::try_from(std::process::id() % 20_000).unwrap();
    (first..32_000).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

/// Waits for something.
#[track_caller]
pub fn until<T>(what: &str, ask: impl FnMut() -> Result<T, String>) -> T {
    poll(what, PATIENCE, ask).unwrap_or_else(|last| panic!("{last}"))
}

/// A process; it is killed at the end of the test.
pub struct Gateway {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
}

impl Gateway {
    fn start(url: &str, credentials: &std::path::Path, name: &str, flags: &[&str]) -> Self {
        let mut command = Command::new(BINARY);
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

    fn spawn(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let (log, lines) = (Arc::<Mutex<Vec<String>>>::default(), BufReader::new(child.stderr.take().unwrap()).lines());
        let kept = log.clone();
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| kept.lock().unwrap().push(line)));
        Gateway { child, log }
    }

    pub fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    /// How many threads it has.
    pub fn threads(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap().count()
    }

    /// Where it listens, as its log says.
    #[track_caller]
    pub fn address(&self) -> String {
        self.logged("listen")
    }

    /// Where its metrics are, as its log says.
    #[track_caller]
    pub fn address_of_metrics(&self) -> String {
        self.logged("metrics")
    }

    /// A field of the line by which the log says that it has started.
    #[track_caller]
    fn logged(&self, field: &str) -> String {
        until("the gateway to listen", || {
            let log = self.log();
            let value = log.split(&format!("\"{field}\":\"")).nth(1).and_then(|rest| rest.split('"').next());
            value.map(str::to_owned).ok_or(log.clone())
        })
    }

    /// The status and the body of a GET.
    #[track_caller]
    pub fn get(&self, path: &str) -> (u16, String) {
        let address = if path == "/metrics" { self.address_of_metrics() } else { self.address() };
        self.get_at(&address, path)
    }

    /// The same at an address that its log does not say.
    #[track_caller]
    pub fn get_at(&self, address: &str, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// KiB of memory that it holds.
    #[track_caller]
    pub fn memory(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// KiB of memory that it has held at most.
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

    /// Waits for its end; its exit status.
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
