//! A throwaway cluster with awty_http, one gateway, and schedules.

use crate::receiver::Receiver;
use awty_testkit::postgres::Client;
use awty_testkit::{Cluster, PATIENCE, poll};
use std::path::PathBuf;
use std::process::{Child, Command};

const AT_ONCE: i32 = 1_000;

pub struct Place {
    pub cluster: Cluster,
    pub receiver: Receiver,
    gateway: Option<Child>,
}

pub fn program() -> PathBuf {
    let program = std::env::var_os("AWTY_GATEWAY")
        .expect("AWTY_GATEWAY names no program; run it by make soak, make skew or make gateway-speed");
    PathBuf::from(program)
}

impl Place {
    pub fn open() -> Self {
        Self::open_with(&[])
    }

    pub fn open_with(more: &[(&str, &str)]) -> Self {
        let settings = [("shared_buffers", "1GB"), ("max_wal_size", "8GB"), ("jit", "off")];
        let all = settings.iter().chain(more);
        let cluster = all.fold(Cluster::builder(), |all, (name, value)| all.set(name, value)).start();
        cluster.execute(
            "postgres",
            &[
                "CREATE EXTENSION awty",
                "CREATE EXTENSION awty_http",
                "CREATE ROLE app LOGIN",
                "CREATE ROLE gateway LOGIN",
                "GRANT app TO gateway; GRANT USAGE ON SCHEMA awty, awty_http TO app, gateway",
                "SELECT awty_http.add_tenant('app')",
            ],
        );
        Place { cluster, receiver: Receiver::default(), gateway: None }
    }

    pub fn app(&self) -> Client {
        self.cluster.client("postgres", "app")
    }

    /// Schedules the numbers up to `count`, alternating between the origins. All begin within the next period.
    pub fn schedule(&self, origins: &[String], path: &str, count: u32, every: &str) {
        let sql =
            "SELECT count(awty_http.schedule(($1::text[])[n % cardinality($1) + 1] || $2::text || n, every => $5::text::interval))
            FROM generate_series($3::int, $4::int) AS n";
        let mut app = self.app();
        let last = i32::try_from(count).unwrap();
        for from in (1..=last).step_by(AT_ONCE as usize) {
            app.execute(sql, &[&origins, &path, &from, &last.min(from + AT_ONCE - 1), &every]).unwrap();
        }
    }

    pub fn start_gateway(&mut self) {
        self.start_gateway_with(&[]);
    }

    pub fn start_gateway_with(&mut self, flags: &[&str]) {
        self.start_gateway_at("127.0.0.1:0", flags);
    }

    pub fn start_gateway_at(&mut self, address: &str, flags: &[&str]) {
        let folder = self.cluster.socket_directory().to_path_buf();
        let credentials = folder.join("credentials");
        let init = Command::new(program()).args(["init", "--credentials"]).arg(&credentials).output().unwrap();
        assert!(init.status.success(), "{}", String::from_utf8_lossy(&init.stderr));
        let database = format!("postgresql:///postgres?user=gateway&host={}", folder.display());
        let mut command = Command::new(program());
        command.args([
            "serve",
            "--listen",
            address,
            "--listen-metrics",
            "127.0.0.1:0",
            "--allow-localhost",
            "--log-level",
            "warn",
            "--database",
            &database,
        ]);
        command.args(flags);
        let log = std::fs::File::create(folder.join("gateway.log")).unwrap();
        self.gateway = Some(command.arg("--credentials").arg(&credentials).stderr(log).spawn().unwrap());
    }

    /// In KiB.
    pub fn memory(&self) -> u64 {
        let pid = self.gateway.as_ref().map(Child::id).unwrap();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the gateway has ended");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Ends the gateway, after calls in progress are booked.
    pub fn end_gateway(&mut self) {
        let child = self.gateway.as_mut().unwrap();
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap().success());
        let ended = poll("the gateway to end", 2 * PATIENCE, || child.try_wait().unwrap().ok_or_else(String::new));
        assert!(ended.is_ok_and(|status| status.success()), "the gateway did not end well");
        self.gateway = None;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(child) = &mut self.gateway {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

pub fn pass(seconds: f64) {
    let until = std::time::Instant::now() + std::time::Duration::from_secs_f64(seconds);
    while let Some(left) = until.checked_duration_since(std::time::Instant::now()) {
        std::thread::park_timeout(left);
    }
}
