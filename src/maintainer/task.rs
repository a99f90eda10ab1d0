//! Runs the maintainer's tasks. A failed task is logged and shown in `awty.status`. The other tasks still run.

use crate::failpoint::failpoint;
use crate::pg::catch::Failure;
use crate::pg::relations::{self, Purpose};
use crate::pg::{clock, owner};
use crate::process::{
    self,
    transaction::{Verdict, transaction},
};
use crate::shmem::{self, DatabaseProblem};
use awty_core::Time;
use pgrx::pg_sys;
use std::ffi::CStr;

/// Limits the time for which clients wait for a task's locks.
const LOCK_TIMEOUT: &CStr = c"200ms";

pub fn task<R>(database: pg_sys::Oid, task: impl FnOnce(Time) -> R) -> Option<R> {
    leave_if_wanted(database);
    let done = transaction(|| {
        if !relations::lock(Purpose::Write) {
            return Verdict::Rollback(None);
        }
        owner::set_local(c"lock_timeout", LOCK_TIMEOUT);
        failpoint!("maintainer.looks_after");
        Verdict::Commit(Some(task(clock::now())))
    });
    done.inspect_err(|failure| trouble(database, failure)).unwrap_or_default()
}

pub fn leave_if_wanted(database: pg_sys::Oid) {
    if !process::is_database_wanted(database) {
        return;
    }
    shmem::write(|shared| {
        if let Some(line) = shared.database_mut(database) {
            line.inspection_wanted = true;
        }
    });
    process::exit(0);
}

pub fn trouble(database: pg_sys::Oid, failure: &Failure) {
    pgrx::log!(
        "awty: looking after database {} failed and is tried again: {} ({})",
        database.to_u32(),
        failure.message,
        failure.sqlstate
    );
    let now = clock::to_timestamp(clock::now());
    shmem::write(|shared| {
        // Does not replace an earlier problem in `awty.status`, because a failed maintenance task stops no checks.
        if let Some(line) = shared.database_mut(database).filter(|line| line.trouble == DatabaseProblem::None) {
            line.set_trouble(DatabaseProblem::Maintenance, now);
        }
    });
}
