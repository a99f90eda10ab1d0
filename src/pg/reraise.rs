//! Carries an ERROR of a user's code through Rust with all its fields.
//!
//! Invariant: Rust's frames are unwound before PostgreSQL's handler gets the ERROR.

use super::catch::catch_error;
use super::{sqlstate, text, unbound};
use awty_core::argument_limits::MAX_MESSAGE;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::{ErrorReport, pgrx_extern_c_guard};
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

pub struct Carried(*mut pg_sys::ErrorData);

// SAFETY: the pointer stays in its thread, because a PostgreSQL process has only one.
unsafe impl Send for Carried {}

impl Carried {
    pub fn sqlstate(&self) -> String {
        // SAFETY: the pointer points to a copied ERROR, which lives as long as the transaction.
        sqlstate::text(unsafe { (*self.0).sqlerrcode })
    }

    pub fn raise(self) -> ! {
        resume_unwind(Box::new(self))
    }
}

/// Raises an ERROR that unwinds Rust's frames up to [`raising`].
///
/// # Safety
///
/// The caller must meet the conditions of [`super::catch::catch`]. The call must be inside of [`raising`],
/// [`reported`] or [`caught`].
pub unsafe fn carried<R>(call: impl FnOnce() -> R) -> R {
    // SAFETY: the caller meets the conditions of `catch`, and a transaction is open.
    match unsafe { catch_error(pg_sys::TopTransactionContext, call) } {
        Ok(result) => result,
        Err(error) => Carried(error).raise(),
    }
}

pub fn raising(body: impl FnOnce() -> pg_sys::Datum) -> pg_sys::Datum {
    let error = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => return result,
        Err(cause) => match cause.downcast::<Carried>() {
            Ok(carried) => carried.0,
            // SAFETY: the closure only panics, and the guard turns the panic into an ERROR, as in pgrx's own wrappers.
            Err(cause) => unsafe { return pgrx_extern_c_guard(move || resume_unwind(cause)) },
        },
    };
    // SAFETY: `error` is a complete copy, and the jump to PostgreSQL's handler skips no destructor of a Rust frame.
    unsafe {
        // Sends the ERROR to the client even if messages to the client were off when it was raised.
        (*error).output_to_client = pg_sys::whereToSendOutput == pg_sys::CommandDest::DestRemote;
        unbound::re_throw_error(error)
    }
}

/// Returns an ERROR of a user's code in `body`. The caller must abort the subtransaction of `body`.
pub fn caught<R>(body: impl FnOnce() -> R) -> Result<R, Carried> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|cause| *cause.downcast().unwrap_or_else(|cause| resume_unwind(cause)))
}

/// Turns an ERROR in `body` into a panic, which pgrx's `#[pg_extern]` wrapper reports. The panic has at most
/// [`MAX_MESSAGE`] bytes of the ERROR's message.
pub fn reported<R>(body: impl FnOnce() -> R) -> R {
    caught(body).unwrap_or_else(|carried| {
        // SAFETY: `carried.0` points to a copied ERROR, whose message is a C string.
        let (code, message) = unsafe { ((*carried.0).sqlerrcode, CStr::from_ptr((*carried.0).message)) };
        let message = text::message(&message.to_string_lossy(), MAX_MESSAGE).to_string();
        std::panic::panic_any(ErrorReport::new(code.into(), message, "awty"))
    })
}
