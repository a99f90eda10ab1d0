//! What an inspection does to the tables: one thing after the other, each in a transaction of its own.
//!
//! Invariant: what fails is logged, shown in `awty.status`, and holds up nothing else.
//! Does not: know what is done.

use crate::failpoint::failpoint;
use crate::pg::catch::Failure;
use crate::pg::relations::{self, Purpose};
use crate::pg::transaction::{Verdict, transaction};
use crate::pg::{clock, owner};
use crate::shmem::{self, Trouble};
use awty_core::Time;
use pgrx::pg_sys;
use std::ffi::CStr;

/// How long an inspection waits for anybody, and what a client may have to wait for a change of partitions.
const LOCK_TIMEOUT: &CStr = c"200ms";

/// One thing that the tables need, in a transaction of its own, so that one does not wait for another.
pub fn task<R>(database: pg_sys::Oid, task: impl FnOnce(Time) -> R) -> Option<R> {
    let done = transaction(|| {
        if !relations::lock(Purpose::Write) {
            return Verdict::Rollback(None);
        }
        // Nobody must hold up the inspections by holding a lock.
        owner::set_local(c"lock_timeout", LOCK_TIMEOUT);
        failpoint!("maintainer.looks_after");
        Verdict::Commit(Some(task(clock::now())))
    });
    done.inspect_err(|failure| trouble(database, failure)).unwrap_or_default()
}

/// Says in the log and in `awty.status` that something failed.
pub fn trouble(database: pg_sys::Oid, failure: &Failure) {
    pgrx::log!(
        "awty: looking after database {} failed and is tried again: {} ({})",
        database.to_u32(),
        failure.message,
        failure.sqlstate
    );
    let now = clock::to_timestamp(clock::now());
    shmem::write(|shared| {
        // It keeps no check from running: what does is worth more.
        if let Some(line) = shared.database_mut(database).filter(|line| line.trouble == Trouble::None) {
            line.set_trouble(Trouble::Maintenance, now);
        }
    });
}
