use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use awty_testkit::postgres::Client;
use awty_testkit::{Cluster, checkout, poll};

pub(crate) const SECONDS: u32 = 20;

pub(crate) const SHOP: &str = "shop";

pub(crate) struct Shop {
    pub(crate) cluster: Cluster,
    client: Client,
}

impl Shop {
    pub(crate) fn open(directory: &Path) -> Self {
        let cluster = Cluster::builder().lasting_at(directory).start();
        cluster.execute("postgres", &["CREATE DATABASE shop"]);
        cluster.create_extension(SHOP);
        cluster.create_user(SHOP, SHOP);
        let mut client = cluster.client(SHOP, SHOP);
        client.batch_execute(&text("shop.sql")).unwrap_or_else(|error| panic!("demo/shop.sql: {error:?}"));
        Shop { cluster, client }
    }

    pub(crate) fn pending(&mut self) -> i64 {
        let row = self.client.query_one("SELECT count(*) FROM awty.future_job", &[]);
        row.unwrap_or_else(|error| panic!("cannot count the pending checks: {error:?}")).get(0)
    }

    pub(crate) fn customers(&self) -> Customers {
        let mut pgbench = self.cluster.tool("pgbench");
        pgbench.args(["-n", "-c", "2", "-j", "2", "-R", "120", "-T", &SECONDS.to_string(), "-U", SHOP]);
        for (script, weight) in [("place.sql", 1), ("ship.sql", 2)] {
            pgbench.arg("-f").arg(format!("{}@{weight}", file(script).display()));
        }
        pgbench.arg(SHOP).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        Customers(pgbench.spawn().unwrap_or_else(|error| panic!("cannot run pgbench: {error}")))
    }
}

pub(crate) struct Customers(Child);

impl Customers {
    pub(crate) fn is_busy_for(&mut self, time: Duration) -> bool {
        let ended = poll("pgbench to end", time, || match self.0.try_wait() {
            Ok(Some(_)) => Ok(()),
            _ => Err(String::new()),
        });
        ended.is_err()
    }

    pub(crate) fn result(mut self) -> Result<(), String> {
        let mut complaints = String::new();
        if let Some(stderr) = self.0.stderr.as_mut() {
            let _ = stderr.read_to_string(&mut complaints);
        }
        let status = self.0.wait().map_err(|error| error.to_string())?;
        let failed = !status.success() || complaints.contains("aborted");
        if failed { Err(format!("pgbench failed ({status}):\n{complaints}")) } else { Ok(()) }
    }
}

impl Drop for Customers {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn file(name: &str) -> PathBuf {
    checkout().join("demo").join(name)
}

pub(crate) fn text(name: &str) -> String {
    let path = file(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}
