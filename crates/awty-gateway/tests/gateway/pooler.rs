//! These tests need PgBouncer 1.21, because earlier versions do not support prepared statements in transaction mode.

use crate::client::{Client, encoded};
use crate::receiver::Receiver;
use crate::shop::{Shop, free_port, until};
use std::io::Write;
use std::net::TcpStream;
use std::process::{Child, Command};

/// Maximum number of PgBouncer's server connections, which two gateways share.
const POOL: i64 = 3;

fn program() -> String {
    std::env::var("AWTY_PGBOUNCER").unwrap_or_else(|_| "pgbouncer".into())
}

fn lacking() -> Option<String> {
    let Ok(run) = Command::new(program()).arg("--version").output() else { return Some("there is none".into()) };
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    let version = text.split_whitespace().nth(1).unwrap_or_default();
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    let fits = (numbers.next(), numbers.next()) >= (Some(1), Some(21));
    (!fits).then(|| format!("{} is {version}", program()))
}

struct Pooler {
    child: Child,
    port: u16,
}

impl Pooler {
    fn start(shop: &Shop) -> Self {
        let folder = shop.cluster.socket_directory();
        let port = free_port();
        let (ini, users) = (folder.join("pgbouncer.ini"), folder.join("users.txt"));
        std::fs::write(&users, "\"gateway\" \"\"\n").unwrap();
        let settings = format!(
            "[databases]\npostgres = host={} port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = trust\nauth_file = {}\npool_mode = transaction\ndefault_pool_size = {POOL}\nmax_prepared_statements = 100\n",
            folder.display(),
            awty_testkit::Cluster::PORT,
            users.display(),
        );
        std::fs::write(&ini, settings).unwrap();
        // PgBouncer refuses to run as root.
        let is_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
        let mut command = if is_root {
            let mut runuser = Command::new("runuser");
            runuser.args(["-u", "postgres", "--", &program()]);
            runuser
        } else {
            Command::new(program())
        };
        let mut child = command.arg("--quiet").arg(&ini).spawn().unwrap();
        until("PgBouncer to listen", || {
            assert!(child.try_wait().unwrap().is_none(), "PgBouncer ended");
            TcpStream::connect(("127.0.0.1", port)).map(drop).map_err(|error| error.to_string())
        });
        Pooler { child, port }
    }

    fn url(&self, role: &str) -> String {
        format!("postgresql://{role}@127.0.0.1:{}/postgres", self.port)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(Command::new("kill").args(["-s", "TERM", &self.child.id().to_string()]).status());
        drop(self.child.wait());
    }
}

#[test]
fn gateways_work_behind_a_pooler_in_transaction_mode() {
    if let Some(why) = lacking() {
        let advice = "NOT TESTED behind PgBouncer 1.21 or later";
        writeln!(std::io::stderr(), "{advice}: {why}; name one in AWTY_PGBOUNCER, or see make matrix").unwrap();
        return;
    }
    let (shop, receiver) = (Shop::open(), Receiver::start());
    shop.cluster.execute("postgres", &["ALTER ROLE gateway NOINHERIT", "GRANT app TO gateway"]);
    let pooler = Pooler::start(&shop);
    let gateways = ["one", "two"].map(|name| shop.gateway_at(&pooler.url("gateway"), name));
    let client = Client { address: gateways[0].address(), token: shop.token("app", "write") };
    for number in 0..20 {
        let uri = receiver.uri(&format!("/ok?{number}"));
        let path = format!("/v1/schedules?uri={}", encoded(&uri));
        let made = client.ask("PUT", &path, "{\"every\": \"1 s\"}");
        assert_eq!(made.status, 201, "{}", made.text);
        assert_eq!(client.get(&path).status, 200);
        shop.app(&format!("SELECT awty_http.send('{}', key => 'send-{number}')", receiver.uri("/flaky")));
    }
    let by_both = "SELECT count(DISTINCT worker) = 2 AND count(*) FILTER (WHERE ok) > 200 FROM awty.attempt";
    shop.await_text(by_both, "true");
    shop.await_text("SELECT count(*) FROM awty.future_job WHERE entity_key ~ '#'", "0");
    let mine = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'gateway'";
    assert!(shop.text(mine).parse::<i64>().unwrap() <= POOL, "connections are not shared");
    for gateway in &gateways {
        let ready = gateway.get("/readyz");
        assert_eq!(ready.0, 200, "{}", ready.1);
    }
    shop.text("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'gateway'");
    let before = shop.text("SELECT count(*) FROM awty.attempt");
    shop.await_text(&format!("SELECT count(*) FILTER (WHERE ok) > {before} + 100 FROM awty.attempt"), "true");
}
