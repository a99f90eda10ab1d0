//! A throwaway cluster with awty_http, and gateways as separate processes.

pub use crate::process::{BINARY, Gateway, PATIENCE, until};
use awty_testkit::Cluster;
use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

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

    /// Makes another role a tenant of the gateway.
    pub fn add_tenant(&self, role: &str) {
        self.cluster.execute(
            "postgres",
            &[
                &format!("CREATE ROLE {role} LOGIN"),
                &format!("GRANT USAGE ON SCHEMA awty, awty_http TO {role}"),
                &format!("GRANT {role} TO gateway"),
                &format!("SELECT awty_http.add_tenant('{role}')"),
            ],
        );
    }

    /// Job of the role `app`, as an SQL literal.
    pub fn job(&self) -> &'static str {
        "'http.app'"
    }

    pub fn secret(&self, role: &str, name: &str, text: &str) {
        let folder = self.credentials.join(role);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), text).unwrap();
    }

    /// Allows a secret of a tenant for an origin, for gateways that start later with `--config`. Returns the file's path.
    pub fn let_secret(&self, role: &str, name: &str, origin: &str) -> String {
        let file = self.credentials.join("../gateway.toml");
        let mut open = std::fs::OpenOptions::new().create(true).append(true).open(&file).unwrap();
        writeln!(open, "[secrets.\"{role}/{name}\"]\norigins = [\"{origin}\"]").unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// Runs a statement as the role `app`.
    #[track_caller]
    pub fn app(&self, sql: &str) {
        self.cluster.client("postgres", "app").batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// Result of a query as text.
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

    /// The same with another database URL.
    pub fn gateway_at(&self, url: &str, name: &str) -> Gateway {
        Gateway::start(url, &self.credentials, name, &[])
    }

    /// A token that the program creates as the role itself.
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

    /// Output of `awty-gateway config`.
    pub fn config(&self, flags: &[&str]) -> String {
        let mut command = Command::new(BINARY);
        let shown = command.args(["config", "--credentials"]).arg(&self.credentials).args(flags).output().unwrap();
        assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
        String::from_utf8(shown.stdout).unwrap()
    }

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

/// A port without a listener, below the range that the system assigns.
pub fn free_port() -> u16 {
    let first = 10_000 + u16::try_from(std::process::id() % 20_000).unwrap();
    (first..32_000).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}
