use crate::reaper;
use awty_testkit::postgres::{Client, Config, NoTls};
use awty_testkit::{Folder, Signal};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

pub struct Member {
    pub name: String,
    pub data: PathBuf,
    pub log: PathBuf,
    pub port: u16,
    pub rest_port: u16,
    patroni: Option<Child>,
}

impl Member {
    pub fn new(folder: &Folder, number: usize, [port, rest_port]: [u16; 2]) -> Self {
        let name = format!("member{}", number + 1);
        let data = folder.path().join(&name);
        let log = folder.path().join(format!("{name}.log"));
        Self { name, data, log, port, rest_port, patroni: None }
    }

    pub fn config(&self, folder: &Folder) -> PathBuf {
        folder.path().join(format!("{}.yml", self.name))
    }

    pub fn start_patroni(&mut self, folder: &Folder) {
        let open = || std::fs::OpenOptions::new().create(true).append(true).open(&self.log).unwrap();
        let mut patroni = folder.command("patroni");
        patroni.arg(self.config(folder)).stdout(open()).stderr(open());
        self.patroni = Some(patroni.spawn().unwrap_or_else(|error| panic!("cannot run {patroni:?}: {error}")));
    }

    pub fn signal_patroni(&self, signal: Signal) {
        if let Some(pid) = self.patroni.as_ref().and_then(|patroni| i32::try_from(patroni.id()).ok()) {
            reaper::kill(pid, signal);
        }
    }

    pub fn kill_patroni(&mut self) {
        self.signal_patroni(Signal::KILL);
        let _ = self.patroni.take().map(|mut patroni| patroni.wait());
    }

    pub fn end_patroni(&mut self) {
        self.signal_patroni(Signal::TERM);
        let _ = self.patroni.take().map(|mut patroni| patroni.wait());
    }

    pub fn postmaster(&self) -> Option<i32> {
        std::fs::read_to_string(self.data.join("postmaster.pid")).ok()?.lines().next()?.parse().ok()
    }

    pub fn kill_postmaster(&self) {
        let _ = self.postmaster().map(|pid| reaper::kill(pid, Signal::KILL));
    }

    pub fn address(&self, folder: &Folder, user: &str) -> Config {
        let mut config = Config::new();
        config.host_path(folder.path()).port(self.port).dbname("postgres").user(user);
        config.connect_timeout(Duration::from_secs(5)).application_name("failover");
        config
    }

    pub fn client(&self, folder: &Folder, user: &str) -> Result<Client, awty_testkit::postgres::Error> {
        self.address(folder, user).connect(NoTls)
    }

    pub fn ask(&self, request: &str, body: &str) -> Result<(u16, String), std::io::Error> {
        ask(self.rest_port, request, body)
    }

    pub fn is_leader(&self) -> bool {
        Self::leads(self.rest_port)
    }

    /// Returns whether the member is the primary. A member whose Patroni is frozen does not count as primary.
    pub fn leads(rest_port: u16) -> bool {
        ask(rest_port, "GET /primary", "").is_ok_and(|(status, _)| status == 200)
    }
}

fn ask(port: u16, request: &str, body: &str) -> Result<(u16, String), std::io::Error> {
    // Limits the time to connect, because connecting never ends if Patroni is frozen and its queue of connections is
    // full.
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), Duration::from_secs(1))?;
    let limit = if body.is_empty() { Duration::from_secs(1) } else { Duration::from_secs(120) };
    stream.set_read_timeout(Some(limit))?;
    write!(stream, "{request} HTTP/1.0\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Ok((status, answer.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.into())))
}
