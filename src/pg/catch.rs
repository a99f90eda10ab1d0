//! Catches and returns PostgreSQL's ERRORs, because a panic of pgrx loses the CONTEXT and any non-standard SQLSTATE.
//!
//! Invariant: [`catch`] restores the stacks of handlers and of error contexts. After an error, the caller must abort
//! the transaction.

use super::sqlstate;
use cee_scape::{SigJmpBufFields, call_with_sigsetjmp};
use pgrx::pg_sys;
use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;

#[derive(Clone, Debug)]
pub struct Failure {
    pub sqlstate: String,
    pub message: String,
    pub context: String,
}

/// # Safety
///
/// `call` may only call C functions, and must not panic. An ERROR jumps over its frame, which must not hold values with
/// a destructor.
pub unsafe fn catch<R>(call: impl FnOnce() -> R) -> Result<R, Failure> {
    // SAFETY: the caller meets the same conditions.
    unsafe { catch_raised(call) }.map_err(|raised| raised.failure)
}

pub struct Raised {
    pub failure: Failure,
    pub hint: String,
    /// The error's position in the parsed text, in characters from 1, or 0 if unknown.
    pub position: usize,
}

pub unsafe fn catch_raised<R>(call: impl FnOnce() -> R) -> Result<R, Raised> {
    // SAFETY: the caller meets the conditions of `catch`, and `error` is freed after its last use.
    unsafe {
        catch_error(pg_sys::CurrentMemoryContext, call).map_err(|error| {
            let failure = Failure {
                sqlstate: sqlstate::text((*error).sqlerrcode),
                message: text((*error).message),
                context: text((*error).context),
            };
            let (hint, position) = (text((*error).hint), usize::try_from((*error).cursorpos).unwrap_or(0));
            pg_sys::FreeErrorData(error);
            Raised { failure, hint, position }
        })
    }
}

pub(super) unsafe fn catch_error<R>(
    copy_in: pg_sys::MemoryContext,
    call: impl FnOnce() -> R,
) -> Result<R, *mut pg_sys::ErrorData> {
    // SAFETY: both ways out restore the globals, so that they never point to a dead frame.
    unsafe {
        let memory = pg_sys::CurrentMemoryContext;
        let handlers = pg_sys::PG_exception_stack;
        let contexts = pg_sys::error_context_stack;
        let mut result = MaybeUninit::uninit();
        let jumped = call_with_sigsetjmp(false, |jump| {
            pg_sys::PG_exception_stack = std::ptr::from_ref::<SigJmpBufFields>(jump).cast_mut().cast();
            result.write(call());
            0
        });
        pg_sys::PG_exception_stack = handlers;
        pg_sys::error_context_stack = contexts;
        if jumped == 0 {
            return Ok(result.assume_init());
        }
        pg_sys::MemoryContextSwitchTo(copy_in);
        let error = pg_sys::CopyErrorData();
        pg_sys::MemoryContextSwitchTo(memory);
        pg_sys::FlushErrorState();
        Err(error)
    }
}

unsafe fn text(text: *const c_char) -> String {
    // SAFETY: a `text` that is not null is a valid C string.
    if text.is_null() { String::new() } else { unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned() }
}
