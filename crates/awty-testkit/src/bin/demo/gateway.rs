//! Invariant: the command line of each process contains the demo's directory, and each process writes its process id to
//! a file in the directory. `scripts/demo stop` uses both to find the processes.

use crate::report::table;
use crate::shop::{SHOP, text};
use awty_testkit::{Cluster, poll};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

const RIGHTS: &[&str] = &[
    "CREATE EXTENSION awty_http",
    "CREATE ROLE gateway LOGIN NOINHERIT",
    "GRANT shop TO gateway",
    "GRANT USAGE ON SCHEMA awty, awty_http TO shop, gateway",
    "SELECT awty_http.add_tenant('shop')",
];

const SHOWN: &str = "SELECT EXISTS (SELECT FROM awty.attempt AS f JOIN awty.attempt AS s USING (key)
    WHERE f.entity_key = '/carrier' AND NOT f.ok AND s.ok)
    AND EXISTS (SELECT FROM awty_http.endpoint WHERE failing_since IS NOT NULL)";

const CALLS: &str = "
SELECT entity_key AS endpoint, count(*) AS calls, count(*) FILTER (WHERE ok) AS ok, count(*) FILTER (WHERE attempt > 1) AS \"called again\",
       round(avg((result ->> 'lateness')::numeric) * 1000, 1) AS \"avg lateness (ms)\",
       string_agg(DISTINCT split_part(message, ':', 1), ', ') AS \"what went wrong\"
FROM awty.attempt WHERE job = 'http.shop' GROUP BY entity_key ORDER BY entity_key";

pub(crate) fn show(cluster: &Cluster) -> Result<(), String> {
    let directory = cluster.socket_directory();
    cluster.execute(SHOP, RIGHTS);
    let receiver = receiver(directory)?;
    let mut client = cluster.client(SHOP, SHOP);
    let sql = text("endpoints.sql").replace("RECEIVER", &receiver);
    client.batch_execute(&sql).map_err(|error| format!("demo/endpoints.sql: {error:?}"))?;
    let address = gateway(directory)?;
    poll("a call that failed to be repeated", PATIENCE, || match client.query_one(SHOWN, &[]) {
        Ok(row) if row.get(0) => Ok(()),
        Ok(_) => Err("not yet".into()),
        Err(error) => Err(error.to_string()),
    })?;
    table(cluster, CALLS);
    let made = client.query_one("SELECT awty_http.create_token('shop', 'admin', '1 hour')", &[]);
    let token: String = made.map_err(|error| format!("{error:?}"))?.get(0);
    println!(
        "The gateway goes on, at http://{address}, and so do the endpoints, at http://{receiver}. For an hour, this token signs you in to
the page at http://{address}/
  {token}
Look at it from a shell:
  curl -s http://{address}/readyz
  curl -s -H 'Authorization: Bearer {token}' 'http://{address}/v1/schedules?failing=true'
  curl -s -H 'Authorization: Bearer {token}' 'http://{address}/v1/schedules?label=shop'
  tail -f {}/gateway.log
Have an endpoint called, and no longer:
  curl -s -X PUT -H 'Authorization: Bearer {token}' 'http://{address}/naptime/http%3A%2F%2F{}%2Fstock%3Fmine/10%20seconds'
  curl -s -X DELETE -H 'Authorization: Bearer {token}' 'http://{address}/naptime/http%3A%2F%2F{}%2Fstock%3Fmine/10%20seconds'",
        directory.display(),
        receiver.replace(':', "%3A"),
        receiver.replace(':', "%3A"),
    );
    Ok(())
}

fn receiver(directory: &Path) -> Result<String, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(own);
    command.arg(directory).args(["endpoints", "127.0.0.1:0"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.stdin(Stdio::null()).process_group(0).spawn().map_err(|error| error.to_string())?;
    keep(directory, "endpoints", child.id())?;
    let (mut line, out) = (String::new(), child.stdout.take());
    let out = out.ok_or("the endpoints say nothing")?;
    BufReader::new(out).read_line(&mut line).map_err(|error| error.to_string())?;
    Ok(line.trim().to_owned())
}

fn gateway(directory: &Path) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?.with_file_name("awty-gateway");
    let credentials = directory.join("credentials");
    let init = Command::new(&program).args(["init", "--credentials"]).arg(&credentials).output();
    let init = init.map_err(|error| format!("{}: {error}", program.display()))?;
    if !init.status.success() {
        return Err(String::from_utf8_lossy(&init.stderr).into_owned());
    }
    let log = File::create(directory.join("gateway.log")).map_err(|error| error.to_string())?;
    let [page, metrics] = ["127.0.0.1:8470", "127.0.0.1:8471"].map(or_any_port);
    let database = format!("postgresql:///{SHOP}?user=gateway&host={}", directory.display());
    let mut command = Command::new(&program);
    command.args(["serve", "--allow-localhost", "--drain", "1 s", "--listen", page, "--database", &database]);
    command.args(["--listen-metrics", metrics]);
    command.arg("--credentials").arg(&credentials).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let child = command.process_group(0).spawn().map_err(|error| format!("{}: {error}", program.display()))?;
    keep(directory, "gateway", child.id())?;
    poll("the gateway to listen", PATIENCE, || {
        let log = std::fs::read_to_string(directory.join("gateway.log")).map_err(|error| error.to_string())?;
        let listen = log.split("listen=").nth(1).and_then(|rest| rest.split_whitespace().next());
        listen.map(str::to_owned).ok_or(log)
    })
}

fn or_any_port(usual: &'static str) -> &'static str {
    if TcpListener::bind(usual).is_ok() { usual } else { "127.0.0.1:0" }
}

fn keep(directory: &Path, name: &str, pid: u32) -> Result<(), String> {
    std::fs::write(directory.join(format!("{name}.pid")), pid.to_string()).map_err(|error| error.to_string())
}
