use crate::ledger::Ledger;
use crate::net::Nets;
use awty_testkit::gateway::{Gateway, create_credentials};
use awty_testkit::{Cluster, Signal};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

const BINARY: &str = env!("CARGO_BIN_EXE_awty-gateway");
pub const GATEWAYS: usize = 2;
pub type Tenant = (&'static str, &'static str);
pub const TENANTS: [Tenant; 2] = [("app", "/often"), ("careful", "/once")];

pub struct World {
    pub cluster: Cluster,
    pub ledger: Ledger,
    pub origins: Vec<String>,
    pub nets: Option<Nets>,
    gateways: [Option<Gateway>; GATEWAYS],
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
        cluster.create_gateway(&TENANTS.map(|(role, _)| role));
        cluster.execute(
            "postgres",
            &[
                "SELECT awty.alter('http.app', heartbeat => '2 s')",
                "SELECT awty.alter('http.careful', heartbeat => '2 s', delivery => 'at_most_once')",
            ],
        );
        let ledger = Ledger::new(seed);
        let origins = (0..4).map(|_| ledger.listen(&home)).collect();
        let credentials = cluster.data().join("../credentials");
        create_credentials(BINARY.as_ref(), &credentials);
        World { cluster, ledger, origins, nets, gateways: [None, None], credentials }
    }

    pub fn start_gateway(&mut self, number: usize) {
        let (command, host) = match &self.nets {
            Some(nets) => (nets.nets[number].command(BINARY), nets.home.clone()),
            None => (Command::new(BINARY), self.cluster.socket_directory().display().to_string()),
        };
        let database = format!("postgresql:///postgres?user=gateway&host={host}&port={}", Cluster::PORT);
        let name = format!("chaos-{number}");
        let flags = ["--log-level", "info", "--timeout", "2 s", "--allow-networks", "10.213.0.0/16", "--name", &name];
        self.gateways[number] = Some(Gateway::start_by(command, &database, &self.credentials, &flags));
    }

    fn gateway(&mut self, number: usize) -> &mut Gateway {
        self.gateways[number].as_mut().unwrap_or_else(|| panic!("gateway {number} does not run"))
    }

    pub fn signal(&mut self, number: usize, signal: Signal) {
        let pid = self.gateway(number).pid();
        self.cluster.kill(signal, pid);
    }

    pub fn kill_gateway(&mut self, number: usize) {
        self.assert_no_panic(number);
        self.gateway(number).kill();
    }

    pub fn end_gateway(&mut self, number: usize) {
        self.signal(number, Signal::TERM);
        let ended = self.gateway(number).ended();
        assert_eq!(ended, Some(0), "gateway {number} did not end well:\n{}", self.gateway(number).log());
        self.assert_no_panic(number);
    }

    fn assert_no_panic(&mut self, number: usize) {
        let log = self.gateway(number).log();
        assert!(!log.contains("panicked"), "gateway {number} panicked:\n{log}");
    }

    pub fn assert_gateways_run(&mut self) {
        for number in 0..GATEWAYS {
            let ended = self.gateway(number).exit();
            assert!(ended.is_none(), "gateway {number} ended by itself ({ended:?}):\n{}", self.gateway(number).log());
            self.assert_no_panic(number);
        }
    }
}
