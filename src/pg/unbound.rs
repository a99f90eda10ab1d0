//! Functions of PostgreSQL that pgrx does not bind, or binds in a way that does not serve: each declared by hand once, with its header.
//!
//! Invariant: what may raise an ERROR is called under `catch` only (marked *raises*), or guarded here as pgrx guards its own.
//! Does not: know what they are for.

#![allow(ffi_unwind_calls, reason = "the one place where such calls are made; each says what catches an ERROR")]

use pgrx::pg_sys;
use std::ffi::{CStr, c_char, c_int};

/// PostgreSQL's handler of a timeout.
pub type TimeoutHandler = unsafe extern "C" fn();

mod c {
    use super::{TimeoutHandler, c_char, c_int, pg_sys};

    unsafe extern "C-unwind" {
        // utils/timeout.h
        pub fn RegisterTimeout(id: c_int, handler: Option<TimeoutHandler>) -> c_int;
        pub fn enable_timeout_after(id: c_int, delay_ms: c_int);
        pub fn disable_timeout(id: c_int, keep_indicator: bool);
        // commands/sequence.h
        pub fn ResetSequenceCaches();
        // tcop/tcopprot.h, postmaster/interrupt.h: pgrx's wrappers are no signal handlers.
        pub fn die(signal: c_int);
        pub fn SignalHandlerForConfigReload(signal: c_int);
        // commands/async.h
        pub fn Async_Notify(channel: *const c_char, payload: *const c_char);
        // access/xact.h, fmgr.h, commands/trigger.h: pgrx's wrappers turn an ERROR into a panic that has lost its code and context.
        pub fn CommitTransactionCommand();
        pub fn fmgr_info(function: pg_sys::Oid, info: *mut pg_sys::FmgrInfo);
        pub fn AfterTriggerSetState(statement: *mut pg_sys::ConstraintsSetStmt);
        pub fn AfterTriggerFireDeferred();
        // catalog/partition.h
        pub fn get_partition_ancestors(table: pg_sys::Oid) -> *mut pg_sys::List;
        // parser/parser.h, parser/parse_expr.h, utils/ruleutils.h: the same, and what has to be said of where in the text.
        pub fn raw_parser(text: *const c_char, mode: pg_sys::RawParseMode::Type) -> *mut pg_sys::List;
        pub fn transformExpr(
            state: *mut pg_sys::ParseState,
            node: *mut pg_sys::Node,
            kind: pg_sys::ParseExprKind::Type,
        ) -> *mut pg_sys::Node;
        pub fn deparse_expression(
            node: *mut pg_sys::Node,
            context: *mut pg_sys::List,
            with_prefix: bool,
            with_implicit: bool,
        ) -> *mut c_char;
    }
}

/// The first timeout that is a user's, `USER_TIMEOUT` of the enum `TimeoutId`, which differs between versions.
#[cfg(any(feature = "pg15", feature = "pg16"))]
const USER_TIMEOUT: c_int = 12;
#[cfg(any(feature = "pg17", feature = "pg18"))]
const USER_TIMEOUT: c_int = 13;

/// A timeout of this process's own; its number.
pub fn register_timeout(handler: TimeoutHandler) -> c_int {
    // SAFETY: for USER_TIMEOUT, PostgreSQL picks a free one, or ends the process with a FATAL.
    unsafe { c::RegisterTimeout(USER_TIMEOUT, Some(handler)) }
}

/// # Safety
/// The timeout must be registered.
pub unsafe fn enable_timeout_after(id: c_int, delay_ms: c_int) {
    // SAFETY: as the caller says. It raises nothing but a FATAL.
    unsafe { c::enable_timeout_after(id, delay_ms) };
}

/// # Safety
/// The timeout must be registered.
pub unsafe fn disable_timeout(id: c_int) {
    // SAFETY: as the caller says. It raises nothing but a FATAL.
    unsafe { c::disable_timeout(id, false) };
}

/// NOTIFY: sent when the transaction commits. The channel must have 1 to 63 bytes.
pub fn async_notify(channel: &CStr, payload: &CStr) {
    // SAFETY: valid C strings, which PostgreSQL copies; an ERROR becomes a panic, as by pgrx's own wrappers.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| c::Async_Notify(channel.as_ptr(), payload.as_ptr())) };
}

/// Forgets what `currval()` and the like have cached.
pub fn reset_sequence_caches() {
    // SAFETY: forgets memory of this process, and raises nothing.
    unsafe { c::ResetSequenceCaches() };
}

/// What SIGTERM does to a server process.
pub const DIE: unsafe extern "C-unwind" fn(c_int) = c::die;
/// What SIGHUP does to it.
pub const RELOAD: unsafe extern "C-unwind" fn(c_int) = c::SignalHandlerForConfigReload;

/// Commits. *Raises.*
///
/// # Safety
/// A transaction must be open.
pub unsafe fn commit_transaction_command() {
    // SAFETY: as the caller says.
    unsafe { c::CommitTransactionCommand() };
}

/// Looks a function up. *Raises.*
///
/// # Safety
/// `info` must be writable.
pub unsafe fn fmgr_info(function: pg_sys::Oid, info: *mut pg_sys::FmgrInfo) {
    // SAFETY: as the caller says.
    unsafe { c::fmgr_info(function, info) };
}

/// Calls a function. *Raises.*
///
/// # Safety
/// The frame must fit the function.
pub unsafe fn call(
    address: unsafe extern "C-unwind" fn(pg_sys::FunctionCallInfo) -> pg_sys::Datum,
    frame: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: as the caller says.
    unsafe { address(frame) }
}

/// SET CONSTRAINTS. *Raises.*
///
/// # Safety
/// A transaction must be open.
pub unsafe fn after_trigger_set_state(statement: *mut pg_sys::ConstraintsSetStmt) {
    // SAFETY: as the caller says.
    unsafe { c::AfterTriggerSetState(statement) };
}

/// Fires the triggers that were deferred. *Raises.*
///
/// # Safety
/// A transaction must be open.
pub unsafe fn after_trigger_fire_deferred() {
    // SAFETY: as the caller says.
    unsafe { c::AfterTriggerFireDeferred() };
}

/// The tables of which a partition is a part, from the nearest on; guarded as pgrx's own wrappers.
///
/// # Safety
/// A partition.
pub unsafe fn get_partition_ancestors(table: pg_sys::Oid) -> *mut pg_sys::List {
    // SAFETY: as the caller says; an ERROR becomes a panic, as by pgrx's own wrappers.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| c::get_partition_ancestors(table)) }
}

/// Parses SQL. *Raises.*
///
/// # Safety
/// A valid C string.
pub unsafe fn raw_parser(text: *const c_char, mode: pg_sys::RawParseMode::Type) -> *mut pg_sys::List {
    // SAFETY: as the caller says.
    unsafe { c::raw_parser(text, mode) }
}

/// Looks up what a parsed expression means. *Raises.*
///
/// # Safety
/// What the parser has given, and a state that knows the tables.
pub unsafe fn transform_expr(
    state: *mut pg_sys::ParseState,
    node: *mut pg_sys::Node,
    kind: pg_sys::ParseExprKind::Type,
) -> *mut pg_sys::Node {
    // SAFETY: as the caller says.
    unsafe { c::transformExpr(state, node, kind) }
}

/// Writes an expression over the row of a table as SQL. *Raises.*
///
/// # Safety
/// An expression over that table only.
pub unsafe fn deparse(node: *mut pg_sys::Node, row: &CStr, relation: pg_sys::Oid) -> *mut c_char {
    // SAFETY: as the caller says.
    unsafe { c::deparse_expression(node, pg_sys::deparse_context_for(row.as_ptr(), relation), false, false) }
}

/// What InvokeFunctionExecuteHook() does: label providers such as sepgsql decide there. *Raises.*
///
/// # Safety
/// A transaction must be open.
pub unsafe fn invoke_function_execute_hook(function: pg_sys::Oid) {
    // SAFETY: a hook that a library has set; as the caller says.
    unsafe {
        if let Some(hook) = pg_sys::object_access_hook {
            hook(
                pg_sys::ObjectAccessType::OAT_FUNCTION_EXECUTE,
                pg_sys::ProcedureRelationId,
                function,
                0,
                std::ptr::null_mut(),
            );
        }
    }
}
