//! Declares PostgreSQL functions that pgrx lacks, or declares in an unsuitable way.
//!
//! Invariant: unsafe functions are called under `catch`, because they may raise an ERROR.

#![allow(ffi_unwind_calls, reason = "the one place where such calls are made; each says what catches an ERROR")]

use pgrx::pg_sys;
use std::ffi::{CStr, c_char, c_int, c_long, c_void};

pub type TimeoutHandler = unsafe extern "C" fn();

#[repr(C)]
pub struct PartitionTupleRouting {
    _private: [u8; 0],
}

mod c {
    use super::{PartitionTupleRouting, TimeoutHandler, c_char, c_int, c_long, c_void, pg_sys};

    unsafe extern "C-unwind" {
        // Declared in utils/timeout.h.
        pub fn RegisterTimeout(id: c_int, handler: Option<TimeoutHandler>) -> c_int;
        pub fn enable_timeout_after(id: c_int, delay_ms: c_int);
        pub fn disable_timeout(id: c_int, keep_indicator: bool);
        // Declared in commands/sequence.h.
        pub fn ResetSequenceCaches();
        // pgrx wraps tcop/tcopprot.h and postmaster/interrupt.h in Rust functions, which cannot be signal handlers.
        pub fn die(signal: c_int);
        pub fn SignalHandlerForConfigReload(signal: c_int);
        // Declared in commands/async.h.
        pub fn Async_Notify(channel: *const c_char, payload: *const c_char);
        // pgrx's wrappers of access/xact.h, fmgr.h and commands/trigger.h lose an ERROR's SQLSTATE and context.
        pub fn CommitTransactionCommand();
        pub fn fmgr_info(function: pg_sys::Oid, info: *mut pg_sys::FmgrInfo);
        pub fn AfterTriggerSetState(statement: *mut pg_sys::ConstraintsSetStmt);
        pub fn AfterTriggerFireDeferred();
        // pgrx's wrappers of executor/spi.h and utils/elog.h lose an ERROR's SQLSTATE and context.
        pub fn SPI_execute_plan_with_paramlist(
            plan: pg_sys::SPIPlanPtr,
            values: pg_sys::ParamListInfo,
            read_only: bool,
            count: c_long,
        ) -> c_int;
        pub fn SPI_cursor_fetch(cursor: pg_sys::Portal, forward: bool, count: c_long);
        pub fn ReThrowError(error: *mut pg_sys::ErrorData) -> !;
        // Declared in executor/execPartition.h.
        pub fn ExecSetupPartitionTupleRouting(
            estate: *mut pg_sys::EState,
            table: pg_sys::Relation,
        ) -> *mut PartitionTupleRouting;
        pub fn ExecFindPartition(
            state: *mut pg_sys::ModifyTableState,
            root: *mut pg_sys::ResultRelInfo,
            routing: *mut PartitionTupleRouting,
            slot: *mut pg_sys::TupleTableSlot,
            estate: *mut pg_sys::EState,
        ) -> *mut pg_sys::ResultRelInfo;
        pub fn ExecCleanupTupleRouting(state: *mut pg_sys::ModifyTableState, routing: *mut PartitionTupleRouting);
        // Declared in catalog/pg_inherits.h.
        pub fn find_all_inheritors(
            table: pg_sys::Oid,
            lock: pg_sys::LOCKMODE,
            parents: *mut *mut pg_sys::List,
        ) -> *mut pg_sys::List;
        // Declared in catalog/partition.h.
        pub fn get_partition_ancestors(table: pg_sys::Oid) -> *mut pg_sys::List;
        pub fn get_partition_parent(table: pg_sys::Oid, even_if_detached: bool) -> pg_sys::Oid;
        // pgrx's wrappers of parser/parser.h, parser/parse_expr.h and parser/analyze.h lose an ERROR's SQLSTATE and
        // position.
        pub fn parse_analyze_withcb(
            statement: *mut pg_sys::RawStmt,
            text: *const c_char,
            set_up: pg_sys::ParserSetupHook,
            argument: *mut c_void,
            environment: *mut pg_sys::QueryEnvironment,
        ) -> *mut pg_sys::Query;
        pub fn raw_parser(text: *const c_char, mode: pg_sys::RawParseMode::Type) -> *mut pg_sys::List;
        pub fn transformExpr(
            state: *mut pg_sys::ParseState,
            node: *mut pg_sys::Node,
            kind: pg_sys::ParseExprKind::Type,
        ) -> *mut pg_sys::Node;
        // pgrx's wrapper of optimizer/optimizer.h loses an ERROR's SQLSTATE.
        pub fn evaluate_expr(
            expression: *mut pg_sys::Expr,
            kind: pg_sys::Oid,
            modifier: i32,
            collation: pg_sys::Oid,
        ) -> *mut pg_sys::Expr;
    }
}

#[cfg(any(feature = "pg15", feature = "pg16"))]
const USER_TIMEOUT: c_int = 12;
#[cfg(any(feature = "pg17", feature = "pg18"))]
const USER_TIMEOUT: c_int = 13;

pub fn register_timeout(handler: TimeoutHandler) -> c_int {
    // SAFETY: for USER_TIMEOUT, PostgreSQL picks a free number, or ends the process with a FATAL.
    unsafe { c::RegisterTimeout(USER_TIMEOUT, Some(handler)) }
}

/// Can raise a FATAL, but no ERROR.
pub unsafe fn enable_timeout_after(id: c_int, delay_ms: c_int) {
    // SAFETY: the caller has registered the timeout.
    unsafe { c::enable_timeout_after(id, delay_ms) };
}

pub unsafe fn disable_timeout(id: c_int) {
    // SAFETY: the caller has registered the timeout.
    unsafe { c::disable_timeout(id, false) };
}

/// The channel's name must have 1 to 63 bytes.
pub fn async_notify(channel: &CStr, payload: &CStr) {
    // SAFETY: both arguments are C strings, and pgrx's guard catches any ERROR.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| c::Async_Notify(channel.as_ptr(), payload.as_ptr())) };
}

pub type Walker = unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut c_void) -> bool;

/// Calls a walker for the first node. Called directly, a walker's guard would raise an ERROR that jumps over the frames of
/// its caller, for example over the end of a subtransaction.
///
/// # Safety
///
/// `node` and `context` must be what the walker expects.
pub unsafe fn walk(walker: Walker, node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    // SAFETY: the caller meets the same conditions, and pgrx's guard catches any ERROR.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| walker(node, context)) }
}

pub fn reset_sequence_caches() {
    // SAFETY: the call only frees memory of this process.
    unsafe { c::ResetSequenceCaches() };
}

pub const DIE: unsafe extern "C-unwind" fn(c_int) = c::die;
pub const RELOAD: unsafe extern "C-unwind" fn(c_int) = c::SignalHandlerForConfigReload;

pub unsafe fn commit_transaction_command() {
    // SAFETY: the caller has opened a transaction.
    unsafe { c::CommitTransactionCommand() };
}

pub unsafe fn fmgr_info(function: pg_sys::Oid, info: *mut pg_sys::FmgrInfo) {
    // SAFETY: the caller passes a writable `info`.
    unsafe { c::fmgr_info(function, info) };
}

pub unsafe fn call(
    address: unsafe extern "C-unwind" fn(pg_sys::FunctionCallInfo) -> pg_sys::Datum,
    frame: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: the caller has put the function's arguments into `frame`.
    unsafe { address(frame) }
}

pub unsafe fn after_trigger_set_state(statement: *mut pg_sys::ConstraintsSetStmt) {
    // SAFETY: the caller has opened a transaction.
    unsafe { c::AfterTriggerSetState(statement) };
}

pub unsafe fn after_trigger_fire_deferred() {
    // SAFETY: the caller has opened a transaction.
    unsafe { c::AfterTriggerFireDeferred() };
}

/// # Safety
///
/// The relation is an open partitioned table. It stays open until [`exec_cleanup_tuple_routing`].
pub unsafe fn exec_setup_partition_tuple_routing(
    estate: *mut pg_sys::EState,
    table: pg_sys::Relation,
) -> *mut PartitionTupleRouting {
    // SAFETY: `table` is open, and pgrx's guard catches any ERROR.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| c::ExecSetupPartitionTupleRouting(estate, table)) }
}

/// Returns the partition for the row in `slot`, after locking it and opening its indexes.
///
/// # Safety
///
/// `state` belongs to an INSERT into the table of `routing`. The slot has a row of this table.
pub unsafe fn exec_find_partition(
    state: *mut pg_sys::ModifyTableState,
    routing: *mut PartitionTupleRouting,
    slot: *mut pg_sys::TupleTableSlot,
    estate: *mut pg_sys::EState,
) -> *mut pg_sys::ResultRelInfo {
    // SAFETY: `slot` has a row of the table, and pgrx's guard catches any ERROR.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            c::ExecFindPartition(state, (*state).rootResultRelInfo, routing, slot, estate)
        })
    }
}

pub unsafe fn exec_cleanup_tuple_routing(state: *mut pg_sys::ModifyTableState, routing: *mut PartitionTupleRouting) {
    // SAFETY: `routing` was set up for `state`, and pgrx's guard catches any ERROR.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| c::ExecCleanupTupleRouting(state, routing)) };
}

/// Returns the table and all tables that inherit from it.
pub fn find_all_inheritors(table: pg_sys::Oid, lock: pg_sys::LOCKMODE) -> *mut pg_sys::List {
    // SAFETY: a transaction is open, and pgrx's guard catches any ERROR.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| c::find_all_inheritors(table, lock, std::ptr::null_mut())) }
}

/// Returns all ancestors of the partition, the parent first.
pub unsafe fn get_partition_ancestors(table: pg_sys::Oid) -> *mut pg_sys::List {
    // SAFETY: the caller passes a partition, and pgrx's guard catches any ERROR.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| c::get_partition_ancestors(table)) }
}

/// Returns the table above the partition, also if a concurrent detachment of the partition has not ended.
pub fn get_partition_parent(table: pg_sys::Oid) -> pg_sys::Oid {
    // SAFETY: a transaction is open, and pgrx's guard catches any ERROR.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| c::get_partition_parent(table, true)) }
}

pub unsafe fn raw_parser(text: *const c_char, mode: pg_sys::RawParseMode::Type) -> *mut pg_sys::List {
    // SAFETY: the caller passes a valid C string.
    unsafe { c::raw_parser(text, mode) }
}

pub unsafe fn parse_analyze(
    statement: *mut pg_sys::RawStmt,
    text: *const c_char,
    set_up: pg_sys::ParserSetupHook,
    argument: *mut c_void,
) -> *mut pg_sys::Query {
    // SAFETY: the caller passes a statement of the parser, and a hook that accepts the argument.
    unsafe { c::parse_analyze_withcb(statement, text, set_up, argument, std::ptr::null_mut()) }
}

pub unsafe fn transform_expr(
    state: *mut pg_sys::ParseState,
    node: *mut pg_sys::Node,
    kind: pg_sys::ParseExprKind::Type,
) -> *mut pg_sys::Node {
    // SAFETY: the caller passes a node of the parser, and `state` contains the node's tables.
    unsafe { c::transformExpr(state, node, kind) }
}

pub unsafe fn evaluate(expression: *mut pg_sys::Expr, kind: pg_sys::Oid) -> *mut pg_sys::Expr {
    // SAFETY: the caller passes an expression of the type `kind` that reads no column and no parameter.
    unsafe { c::evaluate_expr(expression, kind, -1, pg_sys::InvalidOid) }
}

/// Calls the hook of security label providers such as sepgsql, as InvokeFunctionExecuteHook() does.
pub unsafe fn invoke_function_execute_hook(function: pg_sys::Oid) {
    // SAFETY: a loaded library has set the hook, and the caller has opened a transaction.
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

/// Calls the hook that another library has set before awty.
pub unsafe fn call_analyze_hook(
    hook: pg_sys::post_parse_analyze_hook_type,
    state: *mut pg_sys::ParseState,
    query: *mut pg_sys::Query,
    jumble: *mut pg_sys::JumbleState,
) {
    // SAFETY: the caller passes the arguments of PostgreSQL's parser, and its frame has no value with a destructor.
    unsafe {
        if let Some(hook) = hook {
            hook(state, query, jumble);
        }
    }
}

pub unsafe fn spi_execute_plan(plan: pg_sys::SPIPlanPtr, values: pg_sys::ParamListInfo) -> c_int {
    // SAFETY: the caller has connected SPI, and `values` has an entry for each parameter.
    unsafe { c::SPI_execute_plan_with_paramlist(plan, values, false, 0) }
}

pub unsafe fn spi_cursor_fetch(cursor: pg_sys::Portal, count: i64) {
    // SAFETY: the caller has connected SPI and opened the cursor.
    unsafe { c::SPI_cursor_fetch(cursor, true, count) }
}

/// Jumps to PostgreSQL's ERROR handler.
pub unsafe fn re_throw_error(error: *mut pg_sys::ErrorData) -> ! {
    // SAFETY: the caller guarantees that no frame up to the handler holds a value with a destructor.
    unsafe { c::ReThrowError(error) }
}
