//! Messages for the server's log that carry an error of somebody else's: any SQLSTATE, with its context. pgrx has neither.
//!
//! Invariant: what is written can be held by the database's encoding, and is cut at 4096 bytes.
//! Does not: raise anything, or know what it is about.

use super::{sqlstate, text};
use pgrx::pg_sys;
use pgrx::prelude::PgLogLevel;
use std::ffi::{CString, c_char};

/// Parts of a message are cut at so many bytes.
const MAX: usize = 4096;

/// Writes a message. `code` is an SQLSTATE of five characters; an empty detail or context is none.
pub fn report(level: PgLogLevel, code: &str, message: &str, detail: &str, context: &str) {
    let c = |part: &str| CString::new(text::message(part, MAX).as_bytes()).unwrap_or_default();
    let (message, detail, context) = (c(message), c(detail), c(context));
    let pointer = |part: &CString| if part.is_empty() { std::ptr::null_mut() } else { part.as_ptr().cast_mut() };
    let mut error = pg_sys::ErrorData {
        elevel: level as i32,
        sqlerrcode: sqlstate::code(code),
        message: message.as_ptr().cast_mut(),
        detail: pointer(&detail),
        context: pointer(&context),
        // SAFETY: all of it is numbers and pointers, of which zero is one.
        ..unsafe { std::mem::zeroed() }
    };
    error.filename = c"awty".as_ptr().cast::<c_char>();
    error.funcname = c"awty".as_ptr().cast::<c_char>();
    // SAFETY: PostgreSQL copies what is pointed to. The level is below ERROR, so that it returns.
    unsafe { pg_sys::ThrowErrorData(&mut error) };
}

/// Keeps Rust's backtraces out of errors, whatever the server's environment says. pgrx would append them to the DETAIL that the user sees.
///
/// The standard library decides at the first capture and remembers the decision (see the documentation of `std::backtrace`).
pub fn without_backtraces() {
    const SWITCH: &str = "RUST_LIB_BACKTRACE";
    let before = std::env::var_os(SWITCH);
    // SAFETY: PostgreSQL's processes have one thread when they load libraries.
    unsafe { std::env::set_var(SWITCH, "0") };
    let _ = std::backtrace::Backtrace::capture();
    // SAFETY: as above.
    unsafe {
        match before {
            Some(value) => std::env::set_var(SWITCH, value),
            None => std::env::remove_var(SWITCH),
        }
    }
}
