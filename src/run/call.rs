//! Calls a job function with the rights and settings of its role, within its limits.
//!
//! Invariant: when [`call`] returns, nothing of the run is left to be executed at the commit, and settings and current user are
//! what they were; after an error, the abort of the transaction restores them.
//! Does not: begin or end the transaction, or read the answer.

use crate::failpoint::failpoint;
use crate::pg::catch::{Failure, catch};
use crate::pg::unbound;
use pgrx::pg_sys;

/// Calls a function with one argument or none, and with everything checked that it has deferred. An error is the function's.
///
/// # Safety
/// The function must take as many arguments, of the argument's type; a transaction must be open with a snapshot.
pub unsafe fn call(function: pg_sys::Oid, argument: Option<pg_sys::Datum>) -> Result<(pg_sys::Datum, bool), Failure> {
    // SAFETY: opens a level of settings that is closed below, or by the abort.
    let nest = unsafe { pg_sys::NewGUCNestLevel() };
    failpoint!("call.before");
    // SAFETY: as the caller says. FmgrInfo and the frame live in the transaction's memory, and the frame has room for one argument.
    // What is caught here calls C only.
    let result = unsafe {
        catch(|| unbound::invoke_function_execute_hook(function))?;
        let info = pg_sys::palloc0(size_of::<pg_sys::FmgrInfo>()).cast::<pg_sys::FmgrInfo>();
        catch(|| unbound::fmgr_info(function, info))?;
        let frame = pg_sys::palloc0(size_of::<pg_sys::FunctionCallInfoBaseData>() + size_of::<pg_sys::NullableDatum>())
            .cast::<pg_sys::FunctionCallInfoBaseData>();
        (*frame).flinfo = info;
        (*frame).fncollation = pg_sys::InvalidOid;
        if let Some(value) = argument {
            (*frame).nargs = 1;
            *(*frame).args.as_mut_ptr() = pg_sys::NullableDatum { value, isnull: false };
        }
        let result = match (*info).fn_addr {
            Some(address) => catch(|| unbound::call(address, frame))?,
            None => pg_sys::Datum::from(0),
        };
        let null = (*frame).isnull;
        failpoint!("call.after");
        check_deferred()?;
        failpoint!("call.deferred");
        (result, null)
    };
    // SAFETY: the level opened above; `false` undoes what was set inside, also by a plain SET.
    unsafe { pg_sys::AtEOXact_GUC(false, nest) };
    Ok(result)
}

/// SET CONSTRAINTS ALL IMMEDIATE: a deferred violation is an error of this run, here and now, and deferred triggers run
/// while the role's settings and limits are in force. Then those that were deferred once more. At the commit itself they would run while
/// the check's row is locked. So would the queries of cursors WITH HOLD, whose rows nobody would read: all cursors are closed.
fn check_deferred() -> Result<(), Failure> {
    let mut statement = pg_sys::ConstraintsSetStmt {
        type_: pg_sys::NodeTag::T_ConstraintsSetStmt,
        constraints: std::ptr::null_mut(),
        deferred: false,
    };
    // SAFETY: a statement without a list of names stands for ALL; a transaction is open. No cursor is active, because the function was
    // not called through one.
    unsafe {
        catch(|| {
            unbound::after_trigger_set_state(&mut statement);
            unbound::after_trigger_fire_deferred();
        })?;
        pg_sys::PortalHashTableDeleteAll();
    }
    Ok(())
}
