//! VACUUM of `awty.future_job`, as a client would say it: SPI has no such statement, because it commits on the way.
//!
//! Invariant: nobody waits for it but who wants to change the table, and it waits for nobody's lock.
//! Does not: decide when (see `awty_core::dead_rows`), or give space back to the file system, for which it would have to
//! lock everybody out.

use crate::extension;
use crate::run::session;
use pgrx::pg_sys;
use std::ffi::CStr;

const VACUUM: &CStr = c"VACUUM (SKIP_LOCKED, TRUNCATE false, PARALLEL 0) awty.future_job";

/// Vacuums it, unless somebody else does, and ends the transaction in which it is called; another one is open when it
/// returns, with a snapshot.
///
/// The table must be known to be there (see `extension::lock`).
pub fn future_job() {
    const LOCK: pg_sys::LOCKMODE = pg_sys::ShareUpdateExclusiveLock as pg_sys::LOCKMODE;
    let Some(table) = extension::table(c"future_job") else { return };
    // SAFETY: the lock of a VACUUM on a relation, in a transaction, for as long as that lasts.
    if !unsafe { pg_sys::ConditionalLockRelationOid(table, LOCK) } {
        // Most likely autovacuum is there. The VACUUM below would say in the log that it was skipped.
        return;
    }
    // As for autovacuum (see the table's own parameters); it outlasts the transaction, and the process has nothing else to do.
    session::set(c"vacuum_cost_delay", c"0");
    // SAFETY: a transaction is open, and not in a block of several statements. The statement lives in a context that outlasts
    // the commits; PostgreSQL expects to find it in PortalContext, which a background process does not have. The list
    // of tables has the one that was written there; by its OID it is that one, whatever its name is by now.
    unsafe {
        let context = pg_sys::AllocSetContextCreateInternal(
            pg_sys::TopMemoryContext,
            c"awty vacuum".as_ptr(),
            0,
            pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        );
        pg_sys::PortalContext = context;
        pg_sys::MemoryContextSwitchTo(context);
        let parsed = pg_sys::list_nth(pg_sys::raw_parser(VACUUM.as_ptr(), pg_sys::RawParseMode::RAW_PARSE_DEFAULT), 0);
        let statement = (*parsed.cast::<pg_sys::RawStmt>()).stmt.cast::<pg_sys::VacuumStmt>();
        (*pg_sys::list_nth((*statement).rels, 0).cast::<pg_sys::VacuumRelation>()).oid = table;
        pg_sys::ExecVacuum(pg_sys::make_parsestate(std::ptr::null_mut()), statement, true);
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        pg_sys::PortalContext = std::ptr::null_mut();
        pg_sys::MemoryContextDelete(context);
    }
}

/// How large it is without its indexes, in pages.
///
/// The table must be known to be there.
pub fn pages_of_future_job() -> u32 {
    let Some(table) = extension::table(c"future_job") else { return 0 };
    // SAFETY: a table that exists; closed again, its lock kept until the transaction ends.
    unsafe {
        let relation = pg_sys::table_open(table, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
        let pages = pg_sys::RelationGetNumberOfBlocksInFork(relation, pg_sys::ForkNumber::MAIN_FORKNUM);
        pg_sys::table_close(relation, pg_sys::NoLock as pg_sys::LOCKMODE);
        pages
    }
}
