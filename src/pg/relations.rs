//! Locks awty's own relations, so that DROP EXTENSION waits while awty uses them.
//!
//! Invariant: this module never waits for a lock while it holds another lock, so it cannot deadlock with DROP
//! EXTENSION.

use super::{catalog, changes, subtransaction};
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};
use std::ffi::CStr;

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name(pub &'static CStr, pub &'static CStr);

pub const FUTURE_JOB: Name = Name(c"awty", c"future_job");
pub const JOB: Name = Name(c"awty", c"job");
const ALERT: Name = Name(c"awty", c"alert");
/// `job_stat` is not in `RELATIONS`, because neither runs nor clients use it.
pub const JOB_STAT: Name = Name(c"awty_internal", c"job_stat");
pub const HISTORY: Name = Name(c"awty", c"future_job_history");
const DEFAULT_PARTITION: Name = Name(c"awty_internal", c"future_job_history_default");

pub const LEASE: Name = Name(c"awty_internal", c"lease");

pub const BREAKER: Name = Name(c"awty_internal", c"breaker");

/// Only external workers use the last six relations of the list.
const RELATIONS: [Name; 21] = [
    FUTURE_JOB,
    Name(c"awty", c"future_job_id_seq"),
    JOB,
    HISTORY,
    DEFAULT_PARTITION,
    Name(c"awty", c"rule"),
    ALERT,
    Name(c"awty", c"calendar"),
    Name(c"awty_internal", c"repetition"),
    Name(c"awty_internal", c"check_stat"),
    Name(c"awty_internal", c"hold"),
    Name(c"awty_internal", c"stop"),
    Name(c"awty_internal", c"in_flight"),
    Name(c"awty_internal", c"origin"),
    Name(c"awty_internal", c"identity"),
    LEASE,
    Name(c"awty_internal", c"attempt"),
    Name(c"awty_internal", c"attempt_default"),
    Name(c"awty_internal", c"target"),
    Name(c"awty_internal", c"bucket"),
    BREAKER,
];
const COMMON: usize = 15;

pub type Lock = (pg_sys::Oid, pg_sys::LOCKMODE);

const READ: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
const WRITE: pg_sys::LOCKMODE = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;

/// Decides which locks a transaction takes on awty's tables. Each table gets its strongest lock at once, because a
/// later upgrade from a read lock could deadlock with REINDEX.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Read,
    /// Locks the history for writing only when a check ends, because a long client transaction with this lock would
    /// keep awty from adding partitions.
    Write,
    Run,
    Lease,
}

impl Purpose {
    fn names(self) -> &'static [Name] {
        if self == Purpose::Lease { &RELATIONS } else { &RELATIONS[..COMMON] }
    }
}

thread_local! {
    static KNOWN: RefCell<(u64, Vec<pg_sys::Oid>)> = const { RefCell::new((0, Vec::new())) };
    static TAKEN: Cell<Option<Taken>> = const { Cell::new(None) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Taken {
    transaction: (u32, u32),
    purpose: Purpose,
    changes: u64,
}

pub fn oid(name: Name) -> Option<pg_sys::Oid> {
    catalog::relation(name.0, name.1)
}

pub fn lock(purpose: Purpose) -> bool {
    let here = Taken { transaction: subtransaction::number(), purpose, changes: changes::of_relations() };
    if TAKEN.get() == Some(here) {
        return true;
    }
    let is_there = lock_all(purpose).is_some();
    TAKEN.set(is_there.then(|| Taken { changes: changes::of_relations(), ..here }));
    is_there
}

pub fn lock_all(purpose: Purpose) -> Option<Vec<Lock>> {
    let names = purpose.names();
    loop {
        let known = KNOWN.with_borrow(|known| known.1.get(..names.len()).map(<[_]>::to_vec));
        let oids = known.or_else(|| find(names))?;
        let locks = with_modes(&oids, purpose);
        // SAFETY: a transaction is open, and PostgreSQL can lock the OID of a relation that no longer exists.
        unsafe {
            let had = locks.iter().take_while(|(oid, mode)| pg_sys::ConditionalLockRelationOid(*oid, *mode)).count();
            if had == locks.len() && are_still(names, &oids) {
                return Some(locks);
            }
            KNOWN.take();
            locks[..had].iter().for_each(|(oid, mode)| pg_sys::UnlockRelationOid(*oid, *mode));
            if let Some((busy, mode)) = locks.get(had) {
                pg_sys::LockRelationOid(*busy, *mode);
                pg_sys::UnlockRelationOid(*busy, *mode);
            }
        }
    }
}

fn are_still(names: &[Name], oids: &[pg_sys::Oid]) -> bool {
    let changes = changes::of_relations();
    if KNOWN.with_borrow(|(then, known)| *then == changes && known.starts_with(oids)) {
        return true;
    }
    let are = find(names).is_some_and(|found| found == oids);
    if are {
        KNOWN.set((changes, oids.to_vec()));
    }
    are
}

fn with_modes(oids: &[pg_sys::Oid], purpose: Purpose) -> Vec<Lock> {
    let mode = |name| {
        let is_written = match purpose {
            Purpose::Read => false,
            Purpose::Write | Purpose::Lease => name != HISTORY && name != DEFAULT_PARTITION,
            Purpose::Run => name != DEFAULT_PARTITION,
        };
        if is_written { WRITE } else { READ }
    };
    oids.iter().copied().zip(RELATIONS).map(|(oid, name)| (oid, mode(name))).collect()
}

fn find(names: &[Name]) -> Option<Vec<pg_sys::Oid>> {
    catalog::extension()?;
    oid(FUTURE_JOB)?;
    Some(names.iter().map(|name| oid(*name).unwrap_or(pg_sys::InvalidOid)).collect())
}

pub fn row_type() -> pg_sys::Oid {
    // SAFETY: a transaction is open.
    unsafe { pg_sys::get_rel_type_id(oid(FUTURE_JOB).unwrap_or(pg_sys::InvalidOid)) }
}

pub fn row_array_type() -> pg_sys::Oid {
    // SAFETY: a transaction is open.
    unsafe { pg_sys::get_array_type(row_type()) }
}

pub fn alert_type() -> pg_sys::Oid {
    // SAFETY: a transaction is open.
    unsafe { pg_sys::get_rel_type_id(oid(ALERT).unwrap_or(pg_sys::InvalidOid)) }
}

pub fn alert_array_type() -> pg_sys::Oid {
    // SAFETY: a transaction is open.
    unsafe { pg_sys::get_array_type(alert_type()) }
}
