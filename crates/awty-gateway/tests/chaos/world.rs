//! The database, two gateways, their networks, and the ledger.

use crate::ledger::Ledger;
use crate::net::Nets;
use awty_testkit::{Cluster, PATIENCE, Signal, poll};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command};

const BINARY: &str = env!("CARGO_BIN_EXE_awty-gateway");
pub const GATEWAYS: usize = 2;
/// Role of a tenant, and the path prefix of its calls.
pub type Tenant = (&'static str, &'static str);
/// The second tenant's job is `at_most_once`.
pub const TENANTS: [Tenant; 2] = [("app", "/often"), ("careful", "/once")];

pub struct World {
    pub cluster: Cluster,
    pub ledger: Ledger,
    /// Origins of the receivers; each is a target.
    pub origins: Vec<String>,
    /// None if networks cannot be created.
    pub nets: Option<Nets>,
    gateways: [Option<Child>; GATEWAYS],
    credentials: PathBuf,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let nets = Nets::new(GATEWAYS);
        let (home, all) = match &nets {
            Ok(nets) => (nets.home.clone(), nets.all.clone()),
            Err(why) => {
                println!("no networks can be made, so no cable is pulled; gateways and the server are killed: {why}");
                ("127.0.0.1".into(), "127.0.0.1/32".into())
            }
        };
        let nets = nets.ok();
        let builder = Cluster::builder().set("awty.max_crashes", "1000");
        let mut cluster = if nets.is_some() { builder.set("listen_addresses", &home) } else { builder }.create();
        let file = File::options().append(true).open(cluster.data().join("pg_hba.conf"));
        writeln!(file.unwrap(), "host all all {all} trust").unwrap();
        cluster.start();
        cluster.execute(
            "postgres",
            &[
                "CREATE EXTENSION awty",
                "CREATE EXTENSION awty_http",
                "CREATE ROLE app LOGIN",
                "CREATE ROLE careful LOGIN",
                "CREATE ROLE gateway LOGIN",
                "GRANT USAGE ON SCHEMA awty, awty_http TO app, careful, gateway",
                "GRANT app, careful TO gateway",
                "SELECT awty_http.add_tenant('app'), awty_http.add_tenant('careful')",
                "SELECT awty.alter('http.app', heartbeat => '2 s')",
                "SELECT awty.alter('http.careful', heartbeat => '2 s', delivery => 'at_most_once')",
            ],
        );
        let ledger = Ledger::new(seed);
        let origins = (0..4).map(|_| ledger.listen(&home)).collect();
        let credentials = cluster.data().join("../credentials");
        let init = Command::new(BINARY).args(["init", "--credentials"]).arg(&credentials).output().unwrap();
        assert!(init.status.success(), "{}", String::from_utf8_lossy(&init.stderr));
        World { cluster, ledger, origins, nets, gateways: [None, None], credentials }
    }

    pub fn start_gateway(&mut self, number: usize) {
        let (mut command, host) = match &self.nets {
            Some(nets) => (nets.nets[number].command(BINARY), nets.home.clone()),
            None => (Command::new(BINARY), self.cluster.socket_directory().display().to_string()),
        };
        let database = format!("postgresql:///postgres?user=gateway&host={host}&port={}", Cluster::PORT);
        let name = format!("chaos-{number}");
        command.args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--listen-metrics",
            "127.0.0.1:0",
            "--allow-localhost",
            "true",
            "--timeout",
            "2 s",
        ]);
        command.args(["--allow-networks", "10.213.0.0/16", "--database", &database, "--name", &name, "--credentials"]);
        let log = File::options().create(true).append(true).open(self.log(number)).unwrap();
        self.gateways[number] = Some(command.arg(&self.credentials).stderr(log).spawn().unwrap());
    }

    fn log(&self, number: usize) -> PathBuf {
        self.cluster.socket_directory().join(format!("gateway-{number}.log"))
    }

    fn child(&mut self, number: usize) -> &mut Child {
        self.gateways[number].as_mut().unwrap_or_else(|| panic!("gateway {number} does not run"))
    }

    pub fn signal(&mut self, number: usize, signal: Signal) {
        let pid = i32::try_from(self.child(number).id()).unwrap();
        self.cluster.kill(signal, pid);
    }

    pub fn kill_gateway(&mut self, number: usize) {
        let child = self.child(number);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Ends a gateway by SIGTERM. It must drain and exit with success.
    pub fn end_gateway(&mut self, number: usize) {
        self.signal(number, Signal::TERM);
        let ended = poll("the gateway to end", 2 * PATIENCE, || {
            self.child(number).try_wait().unwrap().ok_or_else(|| "it runs".to_owned())
        });
        let log = || std::fs::read_to_string(self.log(number)).unwrap_or_default();
        assert!(ended.is_ok_and(|status| status.success()), "gateway {number} did not end well:\n{}", log());
    }

    pub fn assert_gateways_run(&mut self) {
        for number in 0..GATEWAYS {
            let ended = self.child(number).try_wait().unwrap();
            let log = std::fs::read_to_string(self.log(number)).unwrap_or_default();
            assert!(ended.is_none(), "gateway {number} ended by itself ({ended:?}):\n{log}");
            assert!(!log.contains("panicked"), "gateway {number} panicked:\n{log}");
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for child in self.gateways.iter_mut().flatten() {
            drop(child.kill());
            drop(child.wait());
        }
        if std::thread::panicking() {
            for number in 0..GATEWAYS {
                let log = std::fs::read_to_string(self.log(number)).unwrap_or_default();
                let lines: Vec<&str> = log.lines().rev().take(40).collect();
                eprintln!("--- the end of the log of gateway {number}, newest first\n{}", lines.join("\n"));
            }
        }
    }
}
