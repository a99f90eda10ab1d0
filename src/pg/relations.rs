//! awty's own relations: where they are, and the locks that keep the extension there while something is done with them.
//!
//! The locks are on the relations and not on the extension, which any role may lock for as long as it likes (ALTER FUNCTION …
//! DEPENDS ON EXTENSION).
//!
//! Invariant: no lock is waited for while another one that was taken here is held. So the locks are part of no deadlock, in whatever
//! order DROP EXTENSION takes its own.
//! Does not: look at versions or rows, or keep a lock beyond its transaction (see `session_locks`).

use super::{catalog, changes, subtransaction};
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};
use std::ffi::CStr;

/// A table or sequence by its schema and name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name(pub &'static CStr, pub &'static CStr);

pub const FUTURE_JOB: Name = Name(c"awty", c"future_job");
pub const JOB: Name = Name(c"awty", c"job");
const ALERT: Name = Name(c"awty", c"alert");
/// Runs and clients do not touch it, so it is not among those that they lock.
pub const JOB_STAT: Name = Name(c"awty_internal", c"job_stat");
const HISTORY: Name = Name(c"awty", c"future_job_history");
const DEFAULT_PARTITION: Name = Name(c"awty_internal", c"future_job_history_default");

pub const LEASE: Name = Name(c"awty_internal", c"lease");

pub const BREAKER: Name = Name(c"awty_internal", c"breaker");

/// All tables and sequences of awty, the last six for workers outside only.
const RELATIONS: [Name; 19] = [
    FUTURE_JOB,
    Name(c"awty", c"future_job_id_seq"),
    JOB,
    HISTORY,
    DEFAULT_PARTITION,
    Name(c"awty", c"rule"),
    ALERT,
    Name(c"awty_internal", c"repetition"),
    Name(c"awty_internal", c"check_stat"),
    Name(c"awty_internal", c"hold"),
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
/// So many of them are for everybody.
const COMMON: usize = 13;

/// A lock on a relation, by its OID.
pub type Lock = (pg_sys::Oid, pg_sys::LOCKMODE);

const READ: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
const WRITE: pg_sys::LOCKMODE = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;

/// What the locks are for. What is going to be written is locked for that from the beginning: REINDEX keeps writers out first and
/// readers afterwards, and would meet in a deadlock with a reader that comes to write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To look.
    Read,
    /// To write what a client says. The history is locked only when a check ends: a client's transaction that lasts long must not keep
    /// partitions from being made.
    Write,
    /// To run checks, which end in the history.
    Run,
    /// To write what a worker outside says, also of leases.
    Lease,
}

impl Purpose {
    fn names(self) -> &'static [Name] {
        if self == Purpose::Lease { &RELATIONS } else { &RELATIONS[..COMMON] }
    }
}

thread_local! {
    /// The relations as they were last found, and the count of changes then. Another extension has others.
    static KNOWN: RefCell<(u64, Vec<pg_sys::Oid>)> = const { RefCell::new((0, Vec::new())) };
    /// Where the locks were last taken.
    static TAKEN: Cell<Option<Taken>> = const { Cell::new(None) };
}

/// Locks are there until their (sub)transaction ends, and on the right relations while none has changed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Taken {
    transaction: (u32, u32),
    purpose: Purpose,
    changes: u64,
}

/// The OID of one of awty's relations, or `None` when it is not there.
pub fn oid(name: Name) -> Option<pg_sys::Oid> {
    catalog::relation(name.0, name.1)
}

/// The first locks of a transaction on awty's rows: they keep DROP EXTENSION out until it ends. Locks that the transaction has already
/// are had again at once. `false` if the extension is gone, so that there is nothing to do.
pub fn lock(purpose: Purpose) -> bool {
    let here = Taken { transaction: subtransaction::number(), purpose, changes: changes::of_relations() };
    if TAKEN.get() == Some(here) {
        return true;
    }
    let is_there = lock_all(purpose).is_some();
    TAKEN.set(is_there.then(|| Taken { changes: changes::of_relations(), ..here }));
    is_there
}

/// The same; returns the locks.
pub fn lock_all(purpose: Purpose) -> Option<Vec<Lock>> {
    let names = purpose.names();
    loop {
        let known = KNOWN.with_borrow(|known| known.1.get(..names.len()).map(<[_]>::to_vec));
        let oids = known.or_else(|| find(names))?;
        let locks = with_modes(&oids, purpose);
        // SAFETY: locks on OIDs, whether or not anything has them, in an open transaction, released at its end or here.
        // Taking one takes in what has changed in the catalogs.
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

/// Are the relations of these names still these?
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

/// Where these of the extension's relations are; `None` without the extension.
fn find(names: &[Name]) -> Option<Vec<pg_sys::Oid>> {
    catalog::extension()?;
    oid(FUTURE_JOB)?;
    Some(names.iter().map(|name| oid(*name).unwrap_or(pg_sys::InvalidOid)).collect())
}

/// The type of the rows of `awty.future_job`, which job functions take.
pub fn row_type() -> pg_sys::Oid {
    // SAFETY: a catalog lookup in a transaction.
    unsafe { pg_sys::get_rel_type_id(oid(FUTURE_JOB).unwrap_or(pg_sys::InvalidOid)) }
}

/// The type of arrays of them.
pub fn row_array_type() -> pg_sys::Oid {
    // SAFETY: a catalog lookup in a transaction.
    unsafe { pg_sys::get_array_type(row_type()) }
}

/// The type of the rows of `awty.alert`, which a rule's function takes.
pub fn alert_type() -> pg_sys::Oid {
    // SAFETY: a catalog lookup in a transaction.
    unsafe { pg_sys::get_rel_type_id(oid(ALERT).unwrap_or(pg_sys::InvalidOid)) }
}

/// The type of arrays of them.
pub fn alert_array_type() -> pg_sys::Oid {
    // SAFETY: a catalog lookup in a transaction.
    unsafe { pg_sys::get_array_type(alert_type()) }
}
