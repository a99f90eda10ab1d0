//! Invariant: no warning names a job, entity or argument, because many people may read the log.

use super::{Code, ErrorReport};
use crate::pg::catalog::CannotConnect;
use crate::pg::catch::Failure;
use crate::pg::report::report;
use crate::restore::Hold;
use crate::settings::{self, LogFailures};
use awty_core::Time;

use pgrx::prelude::PgLogLevel;
use std::cell::RefCell;
use std::collections::HashSet;

pub fn database_held(database: &str, why: Hold) {
    let why = match why {
        Hold::Foreign => "its rows come from another database",
        Hold::Restored => "this server was restored from a backup",
    };
    ErrorReport::new(
        Code::ERRCODE_WARNING,
        format!("awty runs no checks in database \"{database}\", because {why}"),
        "awty",
    )
    .set_hint("If this database should run its checks, execute: SELECT awty.adopt();")
    .report(PgLogLevel::WARNING);
}

pub fn unreadable(id: i64, failure: &Failure) {
    thread_local! {
        static SAID: RefCell<HashSet<i64>> = RefCell::default();
    }
    if SAID.with_borrow_mut(|said| said.insert(id)) {
        pgrx::log!("awty: check {id} could not be read, and is tried again: {}", shown(failure));
    }
}

pub fn check_held(id: i64, crashes: i32) {
    ErrorReport::new(
        Code::ERRCODE_WARNING,
        format!(
            "awty: check {id} is held, because the server or its process went down {crashes} times while it was running"
        ),
        "awty",
    )
    .set_hint(format!(
        "SELECT awty.release(entity_name, entity_key, job) FROM awty.future_job WHERE id = {id}; lets it run again."
    ))
    .report(PgLogLevel::WARNING);
}

pub fn no_room() {
    ErrorReport::new(Code::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, "awty could not start a worker process", "awty")
        .set_hint(
            "Consider increasing \"max_worker_processes\" to at least \"max_parallel_workers\" + \"awty.max_workers\" + 3, or \
             lowering \"awty.max_workers\".",
        )
        .report(PgLogLevel::WARNING);
}

pub fn no_place() {
    ErrorReport::new(Code::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, "awty has no free entry for another worker", "awty")
        .set_hint("SELECT pid, state, query_start FROM pg_stat_activity WHERE backend_type = 'awty worker';")
        .report(PgLogLevel::WARNING);
}

pub fn stuck_run(pid: i32, database: u32) {
    ErrorReport::new(
        Code::ERRCODE_QUERY_CANCELED,
        format!(
            "awty: process {pid} in the database with OID {database} continues a run that was cancelled and terminated"
        ),
        "awty",
    )
    .set_hint("The run's code does not check for interrupts. A restart of the server ends the run.")
    .report(PgLogLevel::WARNING);
}

pub fn cannot_connect(role: &str, database: u32, why: CannotConnect) {
    let (code, reason) = match why {
        CannotConnect::NoDatabase => {
            (Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "the database accepts no connections")
        }
        CannotConnect::Gone => (Code::ERRCODE_UNDEFINED_OBJECT, "the role does not exist"),
        CannotConnect::NoLogin => (Code::ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION, "the role has no LOGIN"),
        CannotConnect::NoConnect => (Code::ERRCODE_INSUFFICIENT_PRIVILEGE, "the role has no CONNECT on the database"),
    };
    ErrorReport::new(
        code,
        format!("awty runs no checks of role \"{role}\" in the database with OID {database}: {reason}"),
        "awty",
    )
    .set_hint("The checks stay pending, and run when the role can connect again.")
    .report(PgLogLevel::WARNING);
}

pub fn not_booked(lease: i64, failure: &Failure) {
    let message = format!("lease {lease} could not be answered: {}", failure.message);
    report(PgLogLevel::WARNING, &failure.sqlstate, &message, "", "");
}

pub fn shown(failure: &Failure) -> String {
    match settings::log_failures() {
        LogFailures::All => format!("{} ({})", failure.message, failure.sqlstate),
        _ => failure.sqlstate.clone(),
    }
}

pub fn paused(job: &str, until: Option<Time>) {
    let end = until.map_or("awty.resume()".into(), |until| until.format("%Y-%m-%d %H:%M:%S%:z").to_string());
    notice(format!("job \"{job}\" is paused, so its checks wait until {end}"));
}

pub fn notice(words: String) {
    ErrorReport::new(Code::ERRCODE_SUCCESSFUL_COMPLETION, words, "awty").report(PgLogLevel::NOTICE);
}
