pub use awty_testkit::gateway::{Gateway, PATIENCE, until};
use awty_testkit::{Builder, Cluster, gateway};
use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

pub const BINARY: &str = env!("CARGO_BIN_EXE_awty-gateway");

pub struct Shop {
    pub cluster: Cluster,
    credentials: PathBuf,
}

impl Shop {
    pub fn open() -> Self {
        Self::open_on(Cluster::builder())
    }

    pub fn open_on(builder: Builder) -> Self {
        let cluster = builder.set("awty.slot", "1s").start();
        cluster.create_gateway(&["app"]);
        let credentials = cluster.data().join("../credentials");
        gateway::create_credentials(BINARY.as_ref(), &credentials);
        Shop { cluster, credentials }
    }

    pub fn add_tenant(&self, role: &str) {
        self.cluster.create_tenant(role);
    }

    pub fn job(&self) -> &'static str {
        "'http.app'"
    }

    pub fn secret(&self, role: &str, name: &str, text: &str) {
        let folder = self.credentials.join(role);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), text).unwrap();
    }

    pub fn let_secret(&self, role: &str, name: &str, origin: &str) -> String {
        let file = self.credentials.join("../gateway.toml");
        let mut open = std::fs::OpenOptions::new().create(true).append(true).open(&file).unwrap();
        writeln!(open, "[secrets.\"{role}/{name}\"]\norigins = [\"{origin}\"]").unwrap();
        file.to_str().unwrap().to_owned()
    }

    #[track_caller]
    pub fn app(&self, sql: &str) {
        self.cluster.client("postgres", "app").batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    #[track_caller]
    pub fn text(&self, sql: &str) -> String {
        self.cluster.value::<Option<String>>("postgres", &format!("SELECT ({sql})::text")).unwrap_or_default()
    }

    #[track_caller]
    pub fn await_text(&self, sql: &str, wanted: &str) {
        let text = format!("SELECT coalesce(({sql})::text, '')");
        let mut client = self.cluster.superuser("postgres");
        until(sql, || {
            if client.is_closed() {
                client = self.cluster.superuser("postgres"); // the server may have been restarted
            }
            let row = client.query_one(&text, &[]).map_err(|error| format!("{error:?}"))?;
            Some(row.get::<_, String>(0)).filter(|found| found == wanted).map(drop).ok_or_else(|| row.get(0))
        });
    }

    pub fn url(&self, role: &str) -> String {
        self.cluster.url(role)
    }

    pub fn master_key(&self) -> Vec<u8> {
        awty_gateway::secrets::read(&self.credentials).unwrap()
    }

    pub fn gateway(&self, name: &str) -> Gateway {
        self.gateway_at(&self.url("gateway"), name)
    }

    pub fn gateway_at(&self, url: &str, name: &str) -> Gateway {
        self.start(url, &["--name", name])
    }

    pub fn gateway_with(&self, role: &str, flags: &[&str]) -> Gateway {
        self.start(&self.url(role), &[&["--name", "other"], flags].concat())
    }

    fn start(&self, url: &str, flags: &[&str]) -> Gateway {
        // scripts/neighbours sets `AWTY_GATEWAY` to the path of a release build.
        let program = std::env::var_os("AWTY_GATEWAY").unwrap_or_else(|| BINARY.into());
        Gateway::start(program.as_ref(), url, &self.credentials, flags)
    }

    /// Starts a gateway whose soft and hard limits of open files are `files`, as `prlimit` writes them.
    pub fn gateway_with_files(&self, files: &str) -> Gateway {
        let mut command = Command::new("prlimit");
        command.args([&format!("--nofile={files}"), BINARY]);
        Gateway::start_by(command, &self.url("gateway"), &self.credentials, &["--name", "one"])
    }

    #[track_caller]
    pub fn token(&self, role: &str, scope: &str) -> String {
        let mut command = Command::new(BINARY);
        command.args(["token", "create", "--role", role, "--scope", scope, "--database", &self.url(role)]);
        gateway::output(&mut command).trim().to_owned()
    }

    pub fn config(&self, flags: &[&str]) -> String {
        let mut command = Command::new(BINARY);
        gateway::output(command.args(["config", "--credentials"]).arg(&self.credentials).args(flags))
    }

    pub fn gateway_by_environment(&self, variables: &[(&str, &str)]) -> Gateway {
        let mut command = Command::new(BINARY);
        command.arg("serve").envs(variables.iter().copied()).env("AWTY_CREDENTIALS", &self.credentials);
        command.env("AWTY_LISTEN_METRICS", "127.0.0.1:0");
        Gateway::spawn(command)
    }
}

/// The port is below the range that the system assigns, so that no other socket gets this port.
pub fn free_port() -> u16 {
    let first = 10_000 + u16::try_from(std::process::id() % 20_000).unwrap();
    (first..32_000).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}
