//! Runs VACUUM through a portal, because SPI does not support VACUUM's commits.
//!
//! Invariant: this VACUUM blocks only DDL on the table, and waits for no lock.

use super::session_settings;
use crate::pg::relations;
use pgrx::pg_sys;
use std::ffi::CStr;

#[cfg(feature = "pg15")]
const VACUUM: &CStr = c"VACUUM (SKIP_LOCKED, TRUNCATE false, PARALLEL 0) awty.future_job";
#[cfg(not(feature = "pg15"))]
const VACUUM: &CStr = c"VACUUM (SKIP_LOCKED, TRUNCATE false, PARALLEL 0, SKIP_DATABASE_STATS) awty.future_job";

pub fn future_job() {
    const LOCK: pg_sys::LOCKMODE = pg_sys::ShareUpdateExclusiveLock as pg_sys::LOCKMODE;
    let Some(table) = relations::oid(relations::FUTURE_JOB) else { return };
    // SAFETY: a transaction is open, and its end releases the lock.
    if !unsafe { pg_sys::ConditionalLockRelationOid(table, LOCK) } {
        return;
    }
    // Switches off the cost-based delay, because the table's own setting for it applies only to autovacuum.
    session_settings::set(c"vacuum_cost_delay", c"0");
    // SAFETY: the current transaction was not started by BEGIN, so VACUUM may commit it and start its own transactions.
    unsafe {
        pg_sys::PopActiveSnapshot();
        execute(VACUUM);
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
    }
}

/// Executes the statement as pg_cron's `ExecuteSqlString` does.
unsafe fn execute(statement: &'static CStr) {
    // SAFETY: a transaction without a snapshot is open, and `context` survives the commits of the statement.
    unsafe {
        let context = pg_sys::AllocSetContextCreateInternal(
            pg_sys::TopMemoryContext,
            c"awty statement".as_ptr(),
            0,
            pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        );
        let before = pg_sys::MemoryContextSwitchTo(context);
        let (sql, none) = (statement.as_ptr(), std::ptr::null_mut::<std::ffi::c_void>());
        let parsed = pg_sys::list_nth(pg_sys::pg_parse_query(sql), 0).cast::<pg_sys::RawStmt>();
        let tag = pg_sys::CreateCommandTag((*parsed).stmt);
        let rewritten = pg_sys::pg_analyze_and_rewrite_fixedparams(parsed, sql, std::ptr::null(), 0, none.cast());
        let planned = pg_sys::pg_plan_queries(rewritten, sql, 0, none.cast());
        let portal = pg_sys::CreatePortal(c"".as_ptr(), true, true);
        (*portal).visible = false;
        pg_sys::PortalDefineQuery(portal, std::ptr::null(), sql, tag, planned, none.cast());
        pg_sys::PortalStart(portal, none.cast(), 0, none.cast());
        let nowhere = pg_sys::CreateDestReceiver(pg_sys::CommandDest::DestNone);
        #[cfg(not(feature = "pg18"))]
        pg_sys::PortalRun(portal, i64::MAX, true, true, nowhere, nowhere, none.cast());
        #[cfg(feature = "pg18")]
        pg_sys::PortalRun(portal, i64::MAX, true, nowhere, nowhere, none.cast());
        pg_sys::PortalDrop(portal, false);
        pg_sys::MemoryContextSwitchTo(before);
        pg_sys::MemoryContextDelete(context);
    }
}

pub fn pages_of_future_job() -> u32 {
    let Some(table) = relations::oid(relations::FUTURE_JOB) else { return 0 };
    // SAFETY: the table exists, and its lock is held until the transaction ends.
    unsafe {
        let relation = pg_sys::table_open(table, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
        let pages = pg_sys::RelationGetNumberOfBlocksInFork(relation, pg_sys::ForkNumber::MAIN_FORKNUM);
        pg_sys::table_close(relation, pg_sys::NoLock as pg_sys::LOCKMODE);
        pages
    }
}
