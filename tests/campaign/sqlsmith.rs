//! Lets the jobs of an ordinary role execute random SQL statements from the fuzzer sqlsmith.
//!
//! Invariant: the server stays up, each check ends in the history, and another role's checks start in time.

use crate::load::Shared;
use crate::random::Random;
use awty_testkit::postgres::{Client, Error};
use awty_testkit::{Cluster, poll};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const DATABASE: &str = "smithy";
const STATEMENTS: usize = 60;
const TO_END: Duration = Duration::from_secs(120);
const LATE: f64 = 20.0;

static EXECUTED: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);
static INTERNAL: AtomicU64 = AtomicU64::new(0);

pub fn summary() -> Option<String> {
    let [executed, done, internal] = [&EXECUTED, &DONE, &INTERNAL].map(|count| count.load(Ordering::Relaxed));
    (executed > 0).then(|| {
        format!("sqlsmith: {executed} statements executed by runs, {done} of them without an error, {internal} with an internal error of PostgreSQL's")
    })
}

pub fn is_installed() -> bool {
    std::process::Command::new("sqlsmith").arg("--version").output().is_ok()
}

pub fn strike(cluster: &Cluster, shared: &Shared, random: &mut Random) -> bool {
    if !is_installed() {
        println!("sqlsmith is not installed (apt-get install sqlsmith)");
        return false;
    }
    let position = cluster.log_position();
    let struck = set_up(shared).map_err(|error| error.to_string());
    let struck = struck.and_then(|()| statements(cluster, random)).and_then(|statements| execute(shared, &statements));
    if let Err(what) = &struck {
        shared.saw("P7", format!("random SQL in a job: {what}"));
    }
    let log = cluster.log_since(position);
    for line in
        log.lines().filter(|line| ["PANIC:", "TRAP:", "terminated by signal"].iter().any(|word| line.contains(word)))
    {
        shared.saw("P7", format!("in the log, while jobs executed random SQL: {line}"));
    }
    struck.is_ok()
}

fn set_up(shared: &Shared) -> Result<(), Error> {
    let mut admin = shared.connect("postgres", "postgres")?;
    if admin.query_opt("SELECT FROM pg_database WHERE datname = $1", &[&DATABASE])?.is_some() {
        return Ok(());
    }
    admin.batch_execute("CREATE ROLE smith LOGIN; CREATE ROLE bystander LOGIN")?;
    admin.batch_execute(&format!("CREATE DATABASE {DATABASE}"))?;
    shared.connect(DATABASE, "postgres")?.batch_execute(include_str!("sqlsmith.sql"))
}

fn statements(cluster: &Cluster, random: &mut Random) -> Result<Vec<String>, String> {
    let host = cluster.socket_directory().display();
    let output = std::process::Command::new("sqlsmith")
        .arg(format!("--target=host={host} port={} dbname={DATABASE} user=smith", Cluster::PORT))
        .arg(format!("--seed={}", random.below(1 << 31)))
        .arg(format!("--max-queries={STATEMENTS}"))
        .args(["--dry-run", *random.pick(&["--exclude-catalog", "--verbose"])])
        .output()
        .map_err(|error| error.to_string())?;
    // sqlsmith uses pseudotypes as ordinary types. Without these replacements, half of its statements would fail.
    let text = String::from_utf8_lossy(&output.stdout)
        .replace("anymultirange", "int4multirange")
        .replace("anyrange", "int4range");
    let all: Vec<String> = text.split(";\n").map(str::trim).filter(|sql| !sql.is_empty()).map(str::to_owned).collect();
    if all.len() < STATEMENTS / 2 {
        return Err(format!("sqlsmith made {} statements: {}", all.len(), String::from_utf8_lossy(&output.stderr)));
    }
    Ok(all)
}

fn execute(shared: &Shared, statements: &[String]) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    let mut admin = shared.connect(DATABASE, "postgres").map_err(text)?;
    forge(&mut admin, statements).map_err(text)?;
    let ended = poll("the end of all statements", TO_END, || {
        let left: i64 = admin.query_one("SELECT count(*) FROM awty.future_job", &[]).map_err(text)?.get(0);
        if left == 0 { Ok(()) } else { Err(format!("{left} left")) }
    });
    let late = "SELECT max(extract(epoch FROM lateness))::float8, count(*) FROM awty.future_job_history WHERE job = 'bystander'";
    let row = admin.query_one(late, &[]).map_err(text)?;
    let (worst, bystanders) = (row.get::<_, Option<f64>>(0).unwrap_or(0.0), row.get::<_, i64>(1));
    let sql = "SELECT count(*), count(*) FILTER (WHERE outcome = 'done'), count(*) FILTER (WHERE sqlstate LIKE 'XX%')
               FROM awty.future_job_history WHERE job = 'smith'";
    let row = admin.query_one(sql, &[]).map_err(text)?;
    for (count, column) in [(&EXECUTED, 0), (&DONE, 1), (&INTERNAL, 2)] {
        count.fetch_add(row.get::<_, i64>(column) as u64, Ordering::Relaxed);
    }
    admin
        .batch_execute("SELECT awty.unregister(job) FROM awty.job; DELETE FROM awty.future_job_history")
        .map_err(text)?;
    ended?;
    if bystanders == 0 || worst > LATE {
        return Err(format!("{bystanders} checks of a bystander ran, the worst {worst} s late"));
    }
    Ok(())
}

fn forge(admin: &mut Client, statements: &[String]) -> Result<(), Error> {
    admin.batch_execute("SET ROLE smith; DELETE FROM smith.statement")?;
    for (number, sql) in statements.iter().enumerate() {
        admin.execute("INSERT INTO smith.statement VALUES ($1, $2)", &[&(number as i64), sql])?;
    }
    admin.batch_execute(
        "SELECT awty.register('smith', 'smith.executes', timeout => '300 ms', max_attempts => 1);
         SELECT awty.schedule('statement', id::text, 'smith', at => now()) FROM smith.statement;
         RESET ROLE;
         SELECT awty.register('bystander', 'public.nothing', run_as => 'bystander');
         SELECT awty.schedule('x', i::text, 'bystander', after => make_interval(secs => i)) FROM generate_series(1, 5) AS i",
    )
}
