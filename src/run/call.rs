//! Calls a job function with the rights and settings of its role, within its limits.
//!
//! Invariant: when [`call`] returns, nothing of the run is left to be executed at the commit, and settings, current user and
//! limits are what they were; when it raises, the abort of the transaction restores them.
//! Does not: begin or end the transaction, or read the answer.

use super::memory;
use crate::failpoint::failpoint;
use crate::settings;
use pgrx::pg_sys;

/// Calls a function with one argument, and with everything checked that it has deferred.
///
/// # Safety
/// The function must take one argument of the argument's type; a transaction must be open with a snapshot.
pub unsafe fn call(function: pg_sys::Oid, argument: pg_sys::Datum) -> (pg_sys::Datum, bool) {
    // SAFETY: opens a level of settings that is closed below, or by the abort.
    let nest = unsafe { pg_sys::NewGUCNestLevel() };
    if let Some(bytes) = settings::job_memory() {
        memory::limit(bytes);
    }
    failpoint!("call.before");
    // SAFETY: as the caller says; FmgrInfo and the frame live in the transaction's memory, the frame has room for one
    // argument, and an ERROR from the function is caught at the boundary and raised again as an unwinding.
    let result = unsafe {
        if let Some(hook) = pg_sys::object_access_hook {
            // What InvokeFunctionExecuteHook() does: label providers such as sepgsql decide here.
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                hook(
                    pg_sys::ObjectAccessType::OAT_FUNCTION_EXECUTE,
                    pg_sys::ProcedureRelationId,
                    function,
                    0,
                    std::ptr::null_mut(),
                );
            });
        }
        let info = pg_sys::palloc0(size_of::<pg_sys::FmgrInfo>()).cast::<pg_sys::FmgrInfo>();
        pg_sys::fmgr_info(function, info);
        let frame = pg_sys::palloc0(size_of::<pg_sys::FunctionCallInfoBaseData>() + size_of::<pg_sys::NullableDatum>())
            .cast::<pg_sys::FunctionCallInfoBaseData>();
        (*frame).flinfo = info;
        (*frame).fncollation = pg_sys::InvalidOid;
        (*frame).nargs = 1;
        *(*frame).args.as_mut_ptr() = pg_sys::NullableDatum { value: argument, isnull: false };
        let result = match (*info).fn_addr {
            Some(address) => pg_sys::ffi::pg_guard_ffi_boundary(|| address(frame)),
            None => pg_sys::Datum::from(0),
        };
        let null = (*frame).isnull;
        failpoint!("call.after");
        check_deferred();
        failpoint!("call.deferred");
        (result, null)
    };
    memory::lift();
    // SAFETY: the level opened above; `false` undoes what was set inside, also by a plain SET.
    unsafe { pg_sys::AtEOXact_GUC(false, nest) };
    result
}

/// SET CONSTRAINTS ALL IMMEDIATE: a deferred violation is an error of this run, here and now, and deferred triggers run
/// while the role's settings and limits are in force. Then what a commit would run: triggers that were deferred again, and
/// the queries of cursors WITH HOLD. At the commit itself they would run while the check's row is locked.
fn check_deferred() {
    let mut statement = pg_sys::ConstraintsSetStmt {
        type_: pg_sys::NodeTag::T_ConstraintsSetStmt,
        constraints: std::ptr::null_mut(),
        deferred: false,
    };
    // SAFETY: a statement without a list of names stands for ALL; a transaction is open. The loop is that of
    // CommitTransaction(); no portal is active, because the function was not called through one.
    unsafe {
        pg_sys::AfterTriggerSetState(&mut statement);
        loop {
            pg_sys::AfterTriggerFireDeferred();
            if !pg_sys::PreCommit_Portals(false) {
                break;
            }
        }
    }
}
