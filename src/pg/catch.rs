//! PostgreSQL's PG_TRY: calls code that may raise an ERROR, and gives the whole ERROR back.
//!
//! pgrx turns an ERROR into a panic that knows the standard SQLSTATEs only and no CONTEXT. A job may raise any code.
//!
//! Invariant: when [`catch`] returns, the stacks of handlers and of error contexts are what they were.
//! Does not: abort the transaction. The caller has to, after an error.

use super::sqlstate;
use cee_scape::{SigJmpBufFields, call_with_sigsetjmp};
use pgrx::pg_sys;
use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;

/// An ERROR.
#[derive(Clone, Debug)]
pub struct Failure {
    pub sqlstate: String,
    pub message: String,
    /// Where it was raised; empty if that is not known.
    pub context: String,
}

/// Calls PostgreSQL, and returns its ERROR if it raises one.
///
/// # Safety
/// `call` must do nothing but call C. An ERROR jumps over its frame, so it must hold nothing that has to be dropped, and must not
/// panic.
pub unsafe fn catch<R>(call: impl FnOnce() -> R) -> Result<R, Failure> {
    // SAFETY: as the caller says.
    unsafe { catch_raised(call) }.map_err(|raised| raised.failure)
}

/// An ERROR with what helps the person who has caused it.
pub struct Raised {
    pub failure: Failure,
    pub hint: String,
    /// The character of the text that was being read, from 1; 0 if it is not known.
    pub position: usize,
}

/// The same as [`catch`], with more of the ERROR.
///
/// # Safety
/// As for [`catch`].
pub unsafe fn catch_raised<R>(call: impl FnOnce() -> R) -> Result<R, Raised> {
    // SAFETY: plain globals of this process, which has one thread. They are restored on both ways out.
    unsafe {
        let memory = pg_sys::CurrentMemoryContext;
        let handlers = pg_sys::PG_exception_stack;
        let contexts = pg_sys::error_context_stack;
        let mut result = MaybeUninit::uninit();
        let jumped = call_with_sigsetjmp(false, |jump| {
            // The buffer is C's own sigjmp_buf.
            pg_sys::PG_exception_stack = std::ptr::from_ref::<SigJmpBufFields>(jump).cast_mut().cast();
            result.write(call());
            0
        });
        pg_sys::PG_exception_stack = handlers;
        pg_sys::error_context_stack = contexts;
        if jumped == 0 {
            return Ok(result.assume_init());
        }
        pg_sys::MemoryContextSwitchTo(memory);
        let error = pg_sys::CopyErrorData();
        let failure = Failure {
            sqlstate: sqlstate::text((*error).sqlerrcode),
            message: text((*error).message),
            context: text((*error).context),
        };
        let (hint, position) = (text((*error).hint), usize::try_from((*error).cursorpos).unwrap_or(0));
        pg_sys::FreeErrorData(error);
        pg_sys::FlushErrorState();
        Err(Raised { failure, hint, position })
    }
}

/// # Safety
/// Null or a valid C string.
unsafe fn text(text: *const c_char) -> String {
    // SAFETY: not null, and so a valid C string, says the caller.
    if text.is_null() { String::new() } else { unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned() }
}
