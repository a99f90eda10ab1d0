//! Calls awty's functions with random and mostly wrong arguments.
//!
//! A call must succeed, or fail with a fitting SQLSTATE. No call may cause a crash or a log entry, or leave a lock or
//! memory behind.

mod call;
mod judge;
mod places;
mod signatures;
mod values;

use crate::load::Shared;
use crate::random::Random;
use awty_testkit::postgres::{Client, Error};
use awty_testkit::{Cluster, poll};
use judge::Refusal;
use signatures::Function;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const DATABASES: [(&str, &str); 3] =
    [("garbage", "UTF8"), ("garbage_latin1", "LATIN1"), ("garbage_ascii", "SQL_ASCII")];
const ROLES: [&str; 5] = ["postgres", "garbage_owner", "garbage_user", "garbage_stranger", "garbage_nobody"];
/// Roles of the random calls. Most entries are roles with rights, because a call without rights is refused early and
/// tests little.
const CALLERS: [&str; 9] = [
    "postgres",
    "postgres",
    "garbage_owner",
    "garbage_owner",
    "garbage_user",
    "garbage_user",
    "garbage_user",
    "garbage_stranger",
    "garbage_nobody",
];
const ENCODINGS: [&str; 7] = ["UTF8", "LATIN1", "SQL_ASCII", "WIN1252", "EUC_JP", "SJIS", "KOI8R"];

const CALLS: usize = 800;
const BY_PSQL: usize = 200;
const REPEATED: u64 = 2000;
/// Maximum number of rounds in the search for memory leaks. Each round repeats the same calls.
const TURNS: usize = 5;
/// Maximum growth of a session's memory in bytes while the session repeats the same calls. A larger growth is a leak.
const GROWTH: i64 = 256 * 1024;
const TO_RUN: Duration = Duration::from_secs(90);

static CALLED: AtomicU64 = AtomicU64::new(0);
static ACCEPTED: AtomicU64 = AtomicU64::new(0);
static DRUMMED: AtomicU64 = AtomicU64::new(0);
static RUNS: AtomicU64 = AtomicU64::new(0);

pub fn summary() -> Option<String> {
    let [called, accepted, drummed, runs] =
        [&CALLED, &ACCEPTED, &DRUMMED, &RUNS].map(|count| count.load(Ordering::Relaxed));
    (called > 0).then(|| {
        let refused = called - accepted;
        format!("bad calls: {called}, of which {accepted} were accepted and {refused} refused; {drummed} more that repeat one; {runs} runs of jobs made so")
    })
}

pub fn strike(cluster: &Cluster, shared: &Shared, random: &mut Random) -> bool {
    let position = cluster.log_position();
    let struck = set_up(shared).and_then(|()| by_driver(shared, random));
    if let Err(error) = &struck {
        shared.saw("P7", format!("a connection was lost by a bad call: {error:?}"));
    }
    by_psql(cluster, shared, random);
    for (database, _) in DATABASES {
        if let Err(what) = settle(shared, database, random.per_mille(400)) {
            shared.saw("P7", format!("database {database} after bad calls: {what}"));
        }
    }
    for line in cluster.log_since(position).lines().filter(|line| judge::is_alarming(line)).take(5) {
        let what = line.split_once("] ").map_or(line, |(_, what)| what);
        shared.saw("P9", format!("in the log after bad calls: {what}"));
    }
    struck.is_ok()
}

fn connect(shared: &Shared, database: &str, role: &str) -> Result<Client, Error> {
    shared.connect(database, role)
}

fn set_up(shared: &Shared) -> Result<(), Error> {
    let mut admin = connect(shared, "postgres", "postgres")?;
    if admin.query_opt("SELECT FROM pg_database WHERE datname = 'garbage_ascii'", &[])?.is_some() {
        return Ok(());
    }
    for role in &ROLES[1..] {
        admin.batch_execute(&format!("CREATE ROLE {role} LOGIN"))?;
    }
    admin.batch_execute("CREATE ROLE garbage_nologin; GRANT garbage_nologin TO garbage_user")?;
    for (database, encoding) in DATABASES {
        let template =
            format!("OWNER garbage_owner TEMPLATE template0 ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'");
        admin.batch_execute(&format!("CREATE DATABASE {database} {template}"))?;
        connect(shared, database, "postgres")?.batch_execute(include_str!("field.sql"))?;
    }
    Ok(())
}

fn by_driver(shared: &Shared, random: &mut Random) -> Result<(), Error> {
    let (database, role) = (DATABASES[0].0, *random.pick(&CALLERS));
    let mut witness = connect(shared, database, "postgres")?;
    let functions = signatures::read(&mut witness)?;
    let mut client = connect(shared, database, role)?;
    let pid: i32 = places::value(&mut client, "SELECT pg_backend_pid()")?.parse().unwrap_or(0);
    let mut steps = Vec::new();
    while steps.iter().map(|step: &places::Step| step.calls.len()).sum::<usize>() < CALLS {
        steps.push(places::Step::any(&functions, random));
    }
    let mut memory = vec![];
    // Each turn makes the same calls. A cache may still grow in the second turn, but only a leak grows in every turn.
    while memory.len() < 2 || memory.len() < TURNS && grown(&memory) {
        for step in &steps {
            for (call, answer) in
                step.take(&mut client, role).inspect_err(|_| println!("the step that was the last: {step:?}"))?
            {
                hear(shared, role, &call, &answer);
            }
            // Ignores SIReadLock, which PostgreSQL keeps for a while after a serializable transaction.
            let sql = "SELECT count(*) FROM pg_locks WHERE pid = $1 AND mode <> 'SIReadLock'";
            let locks: i64 = witness.query_one(sql, &[&pid])?.get(0);
            if locks > 0 {
                shared.saw("P7", format!("{locks} locks are left after {:?} as {role}", step.calls));
            }
        }
        memory.push(in_contexts(&mut client)?);
    }
    if grown(&memory) {
        shared.saw("P7", format!("a session of {role} has {memory:?} bytes after the same {CALLS} calls each"));
    }
    for _ in 0..2 {
        repeat(shared, role, &functions, random)?;
    }
    Ok(())
}

fn grown(memory: &[i64]) -> bool {
    matches!(memory, [.., before, last] if *last > before + GROWTH)
}

fn hear(shared: &Shared, role: &str, call: &str, answer: &str) {
    CALLED.fetch_add(1, Ordering::Relaxed);
    let Some(refusal) = Refusal::read(answer) else {
        ACCEPTED.fetch_add(1, Ordering::Relaxed);
        return;
    };
    if let Some(what) = judge::wrong(&refusal) {
        let call: String = call.chars().take(2000).collect();
        shared.saw("P9", format!("{role} was answered {what}, to {call}"));
    }
}

/// Repeats the call in a new session, because the heap of an old session has free gaps that would hide a leak.
fn repeat(shared: &Shared, role: &str, functions: &[Function], random: &mut Random) -> Result<(), Error> {
    let call = loop {
        let call = call::call(functions, random);
        if !["repeat", "generate_series", "array_fill", "EXPLAIN"].iter().any(|word| call.contains(word)) {
            break call;
        }
    };
    let mut client = connect(shared, DATABASES[0].0, role)?;
    let pid: i32 = places::value(&mut client, "SELECT pg_backend_pid()")?.parse().unwrap_or(0);
    let mut memory = [0; 2];
    for turn in 0..3 {
        let answer =
            places::ask(&mut client, &format!("SELECT garbage.many_times($garbage${call}$garbage$, {REPEATED})"))?;
        DRUMMED.fetch_add(REPEATED, Ordering::Relaxed);
        if !answer.is_empty() {
            hear(shared, role, &call, &answer);
        }
        let now = [in_contexts(&mut client)?, resident(pid)];
        if turn == 2 && (now[0] > memory[0] + GROWTH || now[1] > memory[1] + GROWTH) {
            let what =
                format!("contexts and process had {memory:?} bytes, {now:?} after {REPEATED} times more: {call}");
            shared.saw("P7", format!("memory of {role}'s session: {what}"));
        }
        memory = now;
    }
    Ok(())
}

fn in_contexts(client: &mut Client) -> Result<i64, Error> {
    let sql = "SELECT sum(used_bytes)::bigint FROM pg_catalog.pg_backend_memory_contexts";
    Ok(places::value(client, sql)?.parse().unwrap_or(0))
}

/// Returns a process's private memory in bytes, including memory outside of PostgreSQL's memory contexts.
fn resident(pid: i32) -> i64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse::<i64>().unwrap_or(0) * 1024
}

fn by_psql(cluster: &Cluster, shared: &Shared, random: &mut Random) {
    let Ok(mut client) = connect(shared, DATABASES[0].0, "postgres") else { return };
    let Ok(functions) = signatures::read(&mut client) else { return };
    let ((database, _), role, encoding) = (*random.pick(&DATABASES), *random.pick(&CALLERS), *random.pick(&ENCODINGS));
    let mut psql = cluster.tool("psql");
    psql.env("PGCLIENTENCODING", encoding).args(["-XAtq", "-v", "VERBOSITY=sqlstate", "-U", role, "-d", database]);
    for _ in 0..BY_PSQL {
        let mut call = call::call(&functions, random).into_bytes();
        let place = random.below(call.len() as u64) as usize;
        if random.per_mille(200) && call[place].is_ascii_alphabetic() {
            call[place] = 0x80 | random.below(128) as u8;
        }
        psql.arg("-c").arg(OsString::from_vec(call));
    }
    let output = match psql.output() {
        Ok(output) => output,
        Err(error) => return shared.saw("P9", format!("psql: {error}")),
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let states: Vec<&str> =
        said.lines().filter_map(|line| line.split_once("ERROR:  ")).map(|(_, state)| state).collect();
    CALLED.fetch_add(BY_PSQL as u64, Ordering::Relaxed);
    ACCEPTED.fetch_add(BY_PSQL.saturating_sub(states.len()) as u64, Ordering::Relaxed);
    for state in states {
        if let Some(what) = judge::wrong(&Refusal { sqlstate: state.trim().into(), message: "by psql".into() }) {
            shared.saw("P9", format!("{role} in {database} by psql with {encoding}: {what}"));
        }
    }
    if said.contains("is not supported") {
        return; // PostgreSQL has no conversion between these encodings
    }
    if output.status.code() == Some(2) {
        shared.saw("P7", format!("psql in {database} with {encoding} lost its connection: {said}"));
    }
}

fn settle(shared: &Shared, database: &str, clean: bool) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    let mut admin = connect(shared, database, "postgres").map_err(text)?;
    let sound = "SET ROLE garbage_owner; SELECT awty.register('sound', 'garbage.ok');
                 SELECT awty.schedule('sound', 'sound', 'sound', after => '0'); RESET ROLE";
    admin.batch_execute(sound).map_err(text)?;
    poll("the check of a sound job", TO_RUN, || {
        let done = "SELECT FROM awty.future_job_history WHERE job = 'sound' AND outcome = 'done'";
        admin.query_opt(done, &[]).map_err(text)?.map(drop).ok_or_else(|| "not done".into())
    })?;
    admin.batch_execute("SELECT awty.unregister('sound')").map_err(text)?;
    if clean {
        admin.batch_execute("SELECT awty.unregister(job) FROM awty.job").map_err(text)?;
    }
    let (mut runs, mut internal) = (0, Vec::new());
    for row in admin
        .query("DELETE FROM awty.future_job_history RETURNING started_at IS NOT NULL, sqlstate, message", &[])
        .map_err(text)?
    {
        runs += u64::from(row.get::<_, bool>(0));
        if row.get::<_, Option<String>>(1).is_some_and(|state| state.starts_with("XX")) {
            internal.push(row.get::<_, Option<String>>(2));
        }
    }
    RUNS.fetch_add(runs, Ordering::Relaxed);
    if internal.is_empty() { Ok(()) } else { Err(format!("runs ended with internal errors: {internal:?}")) }
}
