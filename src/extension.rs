//! awty's own relations: where they are, and the locks that keep the extension there while something is done with them.
//!
//! The locks are on the relations and not on the extension itself, which any role may lock for as long as it likes (ALTER
//! FUNCTION … DEPENDS ON EXTENSION).
//!
//! Invariant: none of the locks is waited for while another is held, so they are part of no deadlock, in whatever order
//! DROP EXTENSION takes its own. What a worker keeps between its runs it keeps for [`HOLD`] at the most.
//! Does not: look at versions, or at the rows.

use crate::{catalog, clock};
use awty_core::Mono;
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::time::Duration;

/// All tables and sequences of awty, the one that tells two installations apart first.
const RELATIONS: [&CStr; 9] = [
    c"future_job",
    c"future_job_id_seq",
    c"job",
    c"future_job_history",
    c"future_job_history_default",
    c"tally",
    c"intent",
    c"origin",
    c"identity",
];
type Relations = [pg_sys::Oid; RELATIONS.len()];

const READ: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
const WRITE: pg_sys::LOCKMODE = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;
/// The places of the history and of its default partition in the list.
const HISTORY: usize = 3;
const DEFAULT: usize = 4;

/// What the locks are for. What is going to be written is locked for that from the beginning: REINDEX keeps writers out first and
/// readers afterwards, and would meet in a deadlock with a reader that comes to write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To look.
    Read,
    /// To write what a client says. It ends few checks, and not always one, so the history is locked when one ends: a transaction that
    /// lasts long must not keep partitions from being made.
    Write,
    /// To run checks, which end in the history.
    Run,
}

/// A worker whose runs are quick keeps its locks from one to the next for so long: to take them anew for each costs more than
/// what many of them do.
const HOLD: Duration = Duration::from_millis(20);

thread_local! {
    /// The relations as they were last found. Another extension would have others.
    static KNOWN: Cell<Option<Relations>> = const { Cell::new(None) };
    /// What is locked beyond the transaction.
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

struct Held {
    since: Mono,
    relations: Relations,
    locks: Vec<(pg_sys::Oid, pg_sys::LOCKMODE)>,
}

/// The OID of one of awty's tables, or `None` when it is not there.
pub fn table(name: &CStr) -> Option<pg_sys::Oid> {
    let held = HELD.with_borrow(|held| {
        let index = RELATIONS.iter().position(|known| *known == name)?;
        held.as_ref().map(|held| held.relations[index])
    });
    held.or_else(|| catalog::table(name))
}

/// The first locks of a transaction on awty's rows: they keep DROP EXTENSION out until it ends. Locks that the transaction has
/// already are had again at once. `false` if the extension is gone, so that there is nothing to do.
pub fn lock(purpose: Purpose) -> bool {
    loop {
        let Some(relations) = KNOWN.get().or_else(find) else { return false };
        let locks = with_modes(relations, purpose);
        // SAFETY: locks on OIDs, whether or not anything has them, in an open transaction, released at its end or here.
        // Taking one takes in what has changed in the catalogs.
        unsafe {
            let had = locks.iter().take_while(|(oid, mode)| pg_sys::ConditionalLockRelationOid(*oid, *mode)).count();
            if had == locks.len() && catalog::table(RELATIONS[0]) == Some(relations[0]) {
                KNOWN.set(Some(relations));
                return true;
            }
            KNOWN.set(None);
            locks[..had].iter().for_each(|(oid, mode)| pg_sys::UnlockRelationOid(*oid, *mode));
            if let Some((busy, mode)) = locks.get(had) {
                pg_sys::LockRelationOid(*busy, *mode);
                pg_sys::UnlockRelationOid(*busy, *mode);
            }
        }
    }
}

/// The same for one of a worker's many short transactions: what was locked a moment ago still is.
pub fn hold() -> bool {
    let now = clock::mono();
    if HELD.with_borrow(|held| held.as_ref().is_some_and(|held| now.since(held.since) < HOLD.as_micros() as i64)) {
        return true;
    }
    let_go();
    if !lock(Purpose::Run) {
        return false;
    }
    let Some(relations) = KNOWN.get() else { return false };
    HELD.set(Some(Held { since: now, relations, locks: Vec::new() }));
    with_modes(relations, Purpose::Run).into_iter().for_each(|(oid, mode)| hold_too(oid, mode));
    true
}

/// Keeps a lock that the transaction has on a relation for as long as the others, if there are any.
pub fn hold_too(relation: pg_sys::Oid, mode: pg_sys::LOCKMODE) {
    HELD.with_borrow_mut(|held| {
        if let Some(held) = held
            && !held.locks.contains(&(relation, mode))
        {
            // SAFETY: as the transaction has it locked, it is had at once.
            unsafe { pg_sys::LockAcquire(&tag(relation), mode, true, true) };
            held.locks.push((relation, mode));
        }
    });
}

/// Gives back what is locked beyond the transaction. To be called before a worker sleeps.
pub fn let_go() {
    for (relation, mode) in HELD.take().into_iter().flat_map(|held| held.locks) {
        // SAFETY: locked by `hold_too`, and for the session by nothing else.
        unsafe { pg_sys::LockRelease(&tag(relation), mode, true) };
    }
}

/// An abort has given all of it back.
pub fn forget() {
    HELD.set(None);
}

fn with_modes(relations: Relations, purpose: Purpose) -> Vec<(pg_sys::Oid, pg_sys::LOCKMODE)> {
    let mode = |index| match (purpose, index) {
        (Purpose::Read, _) | (_, DEFAULT) | (Purpose::Write, HISTORY) => READ,
        _ => WRITE,
    };
    relations.into_iter().enumerate().map(|(index, oid)| (oid, mode(index))).collect()
}

/// What PostgreSQL locks for a relation of this database.
fn tag(relation: pg_sys::Oid) -> pg_sys::LOCKTAG {
    pg_sys::LOCKTAG {
        locktag_field1: catalog::database().to_u32(),
        locktag_field2: relation.to_u32(),
        locktag_field3: 0,
        locktag_field4: 0,
        locktag_type: pg_sys::LockTagType::LOCKTAG_RELATION as u8,
        locktag_lockmethodid: pg_sys::DEFAULT_LOCKMETHOD as u8,
    }
}

/// Where the extension's relations are; `None` without the extension.
fn find() -> Option<Relations> {
    catalog::extension()?;
    catalog::table(RELATIONS[0])?;
    Some(RELATIONS.map(|name| catalog::table(name).unwrap_or(pg_sys::InvalidOid)))
}
