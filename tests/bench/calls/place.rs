use crate::calls::receiver::Receiver;
use awty_testkit::Cluster;
use awty_testkit::gateway::{Gateway, create_credentials};
use awty_testkit::postgres::Client;
use std::path::PathBuf;

const AT_ONCE: i32 = 1_000;

pub struct Place {
    pub cluster: Cluster,
    pub receiver: Receiver,
    gateway: Option<Gateway>,
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
        // Clusters of tests have fsync off.
        let settings = [("fsync", "on"), ("shared_buffers", "1GB"), ("max_wal_size", "8GB"), ("jit", "off")];
        let all = settings.iter().chain(more);
        let cluster = all.fold(Cluster::builder(), |all, (name, value)| all.set(name, value)).start();
        cluster.create_gateway(&["app"]);
        Place { cluster, receiver: Receiver::default(), gateway: None }
    }

    pub fn app(&self) -> Client {
        self.cluster.client("postgres", "app")
    }

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
        let credentials = self.cluster.socket_directory().join("credentials");
        create_credentials(&program(), &credentials);
        let flags = [&["--listen", address, "--log-level", "warn"], flags].concat();
        self.gateway = Some(Gateway::start(&program(), &self.cluster.url("gateway"), &credentials, &flags));
    }

    pub fn memory(&self) -> u64 {
        self.gateway.as_ref().unwrap().memory()
    }

    pub fn end_gateway(&mut self) {
        let mut gateway = self.gateway.take().unwrap();
        gateway.signal("TERM");
        assert_eq!(gateway.ended(), Some(0), "{}", gateway.log());
    }
}

pub fn pass(seconds: f64) {
    let until = std::time::Instant::now() + std::time::Duration::from_secs_f64(seconds);
    while let Some(left) = until.checked_duration_since(std::time::Instant::now()) {
        std::thread::park_timeout(left);
    }
}
