//! Carries an ERROR of a user's code through Rust with all its fields.
//!
//! Invariant: Rust's frames are unwound before PostgreSQL's handler gets the ERROR.

use super::catch::catch_error;
use super::{text, unbound};
use awty_core::argument_limits::MAX_MESSAGE;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::{ErrorReport, pgrx_extern_c_guard};
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

struct Carried(*mut pg_sys::ErrorData);

// SAFETY: a PostgreSQL process has one thread.
unsafe impl Send for Carried {}

/// Raises an ERROR that unwinds Rust's frames up to [`raising`].
///
/// # Safety
///
/// The caller must meet the conditions of [`super::catch::catch`]. The call must be inside of [`raising`] or
/// [`reported`].
pub unsafe fn carried<R>(call: impl FnOnce() -> R) -> R {
    // SAFETY: guaranteed by the caller. A transaction is open.
    match unsafe { catch_error(pg_sys::TopTransactionContext, call) } {
        Ok(result) => result,
        Err(error) => resume_unwind(Box::new(Carried(error))),
    }
}

pub fn raising(body: impl FnOnce() -> pg_sys::Datum) -> pg_sys::Datum {
    let error = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => return result,
        Err(cause) => match cause.downcast::<Carried>() {
            Ok(carried) => carried.0,
            // SAFETY: pgrx raises its own panics as in its wrappers.
            Err(cause) => unsafe { return pgrx_extern_c_guard(move || resume_unwind(cause)) },
        },
    };
    // SAFETY: a complete copy of the ERROR. No value with a destructor is left in this frame or its callers.
    unsafe {
        // Sends the ERROR to the client even if the ERROR was raised while the client received no messages.
        (*error).output_to_client = pg_sys::whereToSendOutput == pg_sys::CommandDest::DestRemote;
        unbound::re_throw_error(error)
    }
}

/// Turns an ERROR in `body` into a panic that pgrx's `#[pg_extern]` wrapper reports. pgrx reports only standard
/// SQLSTATEs. Cuts the message, as in the history.
pub fn reported<R>(body: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|cause| match cause.downcast::<Carried>() {
        Ok(carried) => {
            // SAFETY: a complete copy of the ERROR, whose message is a C string.
            let (code, message) = unsafe { ((*carried.0).sqlerrcode, CStr::from_ptr((*carried.0).message)) };
            let message = text::message(&message.to_string_lossy(), MAX_MESSAGE).to_string();
            std::panic::panic_any(ErrorReport::new(code.into(), message, "awty"))
        }
        Err(cause) => resume_unwind(cause),
    })
}
