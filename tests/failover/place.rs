use crate::member::Member;
use crate::orders::TABLES;
use crate::reaper;
use awty_testkit::{Folder, poll, postgres::Client, stage_directory};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Seconds until the primary's key in etcd expires, unless Patroni renews the key. 20 s is the minimum that Patroni
/// accepts.
const TTL: u64 = 20;
pub const ELECTED_WITHIN: Duration = Duration::from_secs(4 * TTL);
const WHOLE_WITHIN: Duration = Duration::from_secs(180);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    Synchronous,
    Asynchronous,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Synchronous => "synchronous",
            Self::Asynchronous => "asynchronous",
        }
    }
}

pub struct Place {
    pub mode: Mode,
    pub members: Vec<Member>,
    etcd: Option<Child>,
    etcd_ports: [u16; 2],
    pub folder: Folder,
}

/// Returns ports below the range of outgoing connections, so that no connection takes the port of a stopped server.
fn free_ports<const N: usize>() -> [u16; N] {
    let first = 12_000 + std::process::id() as u16 % 1_000 * 16;
    let mut free = (first..30_000).filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    std::array::from_fn(|_| free.next().unwrap())
}

fn etcd_program() -> String {
    std::env::var("AWTY_ETCD").unwrap_or_else(|_| "etcd".into())
}

/// Returns whether etcd offers its v2 interface. With v3, Patroni 3.0.2 can make a frozen old primary the leader again
/// and lose the new primary's commits.
fn has_v2() -> bool {
    let help = Command::new(etcd_program()).arg("--help").output();
    help.is_ok_and(|output| [output.stdout, output.stderr].concat().windows(11).any(|part| part == b"--enable-v2"))
}

impl Place {
    pub fn open(mode: Mode) -> Result<Self, String> {
        reaper::start();
        let folder = Folder::new();
        folder.directory("archive");
        let [client, peer, ports @ ..] = free_ports::<8>();
        let members = (0..3).map(|number| Member::new(&folder, number, [ports[number], ports[number + 3]])).collect();
        let mut place = Self { mode, members, etcd: None, etcd_ports: [client, peer], folder };
        place.start_etcd();
        for number in 0..3 {
            let text = place.patroni_config(number);
            std::fs::write(place.members[number].config(&place.folder), text).map_err(|error| error.to_string())?;
        }
        for number in 0..3 {
            place.members[number].start_patroni(&place.folder);
            if number == 0 {
                // The first member must be the primary, because the other members copy its data.
                poll("the first primary", Duration::from_secs(90), || place.leader().ok_or("none".into()))?;
            }
        }
        place.await_whole()?;
        let mut client = place.primary()?;
        client.batch_execute(TABLES).map_err(|error| format!("{error:?}"))?;
        Ok(place)
    }

    pub fn start_etcd(&mut self) {
        let [client, peer] = self.etcd_ports.map(|port| format!("http://127.0.0.1:{port}"));
        let log =
            std::fs::OpenOptions::new().create(true).append(true).open(self.folder.path().join("etcd.log")).unwrap();
        let mut etcd = self.folder.command(etcd_program());
        etcd.args(has_v2().then_some("--enable-v2"));
        etcd.args(["--name", "one", "--data-dir"]).arg(self.folder.path().join("etcd"));
        etcd.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        etcd.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        etcd.args(["--initial-cluster", &format!("one={peer}"), "--unsafe-no-fsync"]);
        etcd.stdout(Stdio::null()).stderr(log);
        self.etcd = Some(etcd.spawn().unwrap_or_else(|error| panic!("cannot run {etcd:?}: {error}")));
    }

    pub fn stop_etcd(&mut self) {
        if let Some(mut etcd) = self.etcd.take() {
            let _ = etcd.kill().and_then(|()| etcd.wait().map(|_| ()));
        }
    }

    fn patroni_config(&self, number: usize) -> String {
        let member = &self.members[number];
        let (synchronous, waits) = match self.mode {
            Mode::Synchronous => ("true", "'on'"),
            Mode::Asynchronous => ("false", "'off'"),
        };
        let folder = self.folder.path().display();
        let (name, port, rest, etcd) = (&member.name, member.port, member.rest_port, self.etcd_ports[0]);
        let interface = if has_v2() { "etcd" } else { "etcd3" };
        let data = member.data.display();
        let bin = stage_directory().join("bin");
        let bin = bin.display();
        format!(
            "scope: awty
name: {name}
restapi: {{listen: '127.0.0.1:{rest}', connect_address: '127.0.0.1:{rest}'}}
{interface}: {{host: '127.0.0.1:{etcd}'}}
bootstrap:
  dcs:
    ttl: {TTL}
    loop_wait: 2
    retry_timeout: 5
    synchronous_mode: {synchronous}
    postgresql:
      use_pg_rewind: true
      use_slots: true
      parameters:
        awty.slot: '1s'
        awty.synchronous_commit: {waits}
        shared_preload_libraries: awty
        archive_mode: 'on'
        fsync: 'off'
        log_timezone: UTC
        log_error_verbosity: terse
        log_line_prefix: '%m [%p] %b '
        max_connections: 100
        wal_level: logical
  initdb: [{{encoding: UTF8}}, {{locale: C}}, data-checksums, no-sync]
  pg_hba: ['local all all trust', 'host all all 127.0.0.1/32 trust', 'host replication all 127.0.0.1/32 trust', 'local replication all trust']
postgresql:
  listen: '127.0.0.1:{port}'
  connect_address: '127.0.0.1:{port}'
  use_unix_socket: true
  data_dir: {data}
  bin_dir: {bin}
  pgpass: {folder}/{name}.pass
  authentication:
    superuser: {{username: postgres}}
    replication: {{username: postgres}}
    rewind: {{username: postgres}}
  parameters:
    unix_socket_directories: {folder}
    archive_command: 'test ! -e {folder}/archiving || {{ cp %p {folder}/archive/%f && {{ test ! -e {folder}/pgbackrest.conf || pgbackrest --config={folder}/pgbackrest.conf --stanza=awty --pg1-path={data} archive-push %p; }}; }}'
"
        )
    }

    pub fn leader(&self) -> Option<usize> {
        self.members.iter().position(Member::is_leader)
    }

    pub fn primary(&self) -> Result<Client, String> {
        let leader = poll("a primary", WHOLE_WITHIN, || self.leader().ok_or("none".into()))?;
        self.members[leader].client(&self.folder, "postgres").map_err(|error| error.to_string())
    }

    pub fn await_whole(&self) -> Result<usize, String> {
        poll("a primary with two standbys", WHOLE_WITHIN, || {
            let leader = self.leader().ok_or("there is no primary")?;
            let mut client =
                self.members[leader].client(&self.folder, "postgres").map_err(|error| error.to_string())?;
            let sql = "SELECT count(*) FILTER (WHERE state = 'streaming'), count(*) FILTER (WHERE sync_state = 'sync') FROM pg_stat_replication
                       WHERE application_name LIKE 'member%'";
            let row = client.query_one(sql, &[]).map_err(|error| error.to_string())?;
            let (streaming, synchronous): (i64, i64) = (row.get(0), row.get(1));
            let wanted = i64::from(self.mode == Mode::Synchronous);
            if streaming == 2 && synchronous == wanted {
                Ok(leader)
            } else {
                Err(format!(
                    "{}: {streaming} standbys stream, {synchronous} are synchronous",
                    self.members[leader].name
                ))
            }
        })
    }

    pub fn restart_patroni(&mut self) -> Result<(), String> {
        for number in 0..self.members.len() {
            self.members[number].kill_patroni();
            self.members[number].start_patroni(&self.folder);
        }
        self.await_whole().map(|_| ())
    }

    pub fn close(mut self) {
        for member in &mut self.members {
            member.end_patroni();
        }
        self.stop_etcd();
    }
}
