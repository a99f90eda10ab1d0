//! Each worker of examples/workers claims checks, reports a failure, retries, dies and is replaced.

use awty_testkit::{Cluster, Signal};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

struct Worker(Child);

impl Worker {
    fn start(cluster: &Cluster, command: &dyn Fn() -> Command) -> Self {
        let mut command = command();
        command.env("PGHOST", cluster.socket_directory()).env("PGPORT", Cluster::PORT.to_string());
        command.env("PGDATABASE", "postgres").env("PGUSER", "app").stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn try_worker(command: &dyn Fn() -> Command) {
    let cluster = Cluster::builder().start();
    cluster.create_extension("postgres");
    cluster.create_user("postgres", "app");
    let app = |script: &str| cluster.client("postgres", "app").batch_execute(script).unwrap();
    app("SELECT awty.register('mail', max_attempts => 2, retry_after => '1 ms', timeout => '10 min');
         SELECT awty.schedule('mail', 'good', 'mail', after => '0', args => '{\"to\": \"a@example.com\"}');
         SELECT awty.schedule('mail', 'bad', 'mail', after => '0', args => '{}')");
    let worker = Worker::start(&cluster, command);
    let ended = "SELECT count(*) = 2 AND bool_and(CASE entity_key WHEN 'good' THEN outcome = 'done' AND attempts = 1
                     ELSE outcome = 'failed' AND attempts = 2 END) FROM awty.future_job_history";
    cluster.await_sql("postgres", "the good one to be done, and the bad one to have failed twice", ended);
    app("SELECT awty.alter('mail', timeout => '3 s')");
    app(
        "SELECT awty.schedule('mail', 'slow', 'mail', after => '0', args => '{\"to\": \"b@example.com\", \"seconds\": 60}')",
    );
    let at_work =
        "SELECT EXISTS (SELECT FROM awty.lease) OR EXISTS (SELECT FROM awty.attempt WHERE entity_key = 'slow')";
    cluster.await_sql("postgres", "the worker to be at work", at_work);
    cluster.kill(Signal::KILL, i32::try_from(worker.0.id()).unwrap());
    drop(worker);
    app("SELECT awty.alter('mail', timeout => '10 min')");
    cluster.execute("postgres", &["UPDATE awty.future_job SET args = args || '{\"seconds\": 0}'"]);
    let _next = Worker::start(&cluster, command);
    let done = "SELECT count(*) = 1 FROM awty.future_job_history WHERE entity_key = 'slow' AND outcome = 'done' AND attempts = 2";
    cluster.await_sql("postgres", "another worker to take its place", done);
    let keys = "SELECT count(DISTINCT key) = 1 AND count(*) = 2 FROM awty.attempt WHERE entity_key = 'slow'";
    assert!(cluster.value::<bool>("postgres", keys));
}

fn is_there(what: &str, found: bool) -> bool {
    if !found {
        eprintln!("skipped: {what} is not installed");
    }
    found
}

#[test]
fn a_worker_in_python() {
    let python = root().join("target/venv/bin/python");
    let has = Command::new(&python).args(["-c", "import psycopg"]).stderr(Stdio::null()).status();
    if is_there("psycopg", has.is_ok_and(|status| status.success())) {
        try_worker(&|| {
            let mut command = Command::new(&python);
            command.arg(root().join("examples/workers/worker.py"));
            command
        });
    }
}

#[test]
fn a_worker_in_node() {
    let modules = root().join("target/bench/npm/node_modules");
    if is_there("pg for Node", modules.join("pg").is_dir()) {
        try_worker(&|| {
            let mut command = Command::new("node");
            command.arg(root().join("examples/workers/worker.cjs")).env("NODE_PATH", &modules);
            command
        });
    }
}

#[test]
fn a_worker_with_psql() {
    try_worker(&|| Command::new(root().join("examples/workers/worker.sh")));
}
