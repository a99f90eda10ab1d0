//! Logs messages with the SQLSTATE and CONTEXT of a user's error. Calls PostgreSQL directly, because pgrx's functions
//! cannot set these fields.
//!
//! Invariant: the database's encoding can represent each message.

use super::{sqlstate, text};
use pgrx::pg_sys;
use pgrx::prelude::PgLogLevel;
use std::ffi::{CString, c_char};

const MAX: usize = 4096;

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
        // SAFETY: `ErrorData` has only numbers and pointers, for which zero is valid.
        ..unsafe { std::mem::zeroed() }
    };
    error.filename = c"awty".as_ptr().cast::<c_char>();
    error.funcname = c"awty".as_ptr().cast::<c_char>();
    // SAFETY: PostgreSQL copies the strings, and the call returns because the level is below ERROR.
    unsafe { pg_sys::ThrowErrorData(&mut error) };
}

/// Keeps Rust's backtraces out of the DETAIL of errors.
pub fn without_backtraces() {
    const SWITCH: &str = "RUST_LIB_BACKTRACE";
    let before = std::env::var_os(SWITCH);
    // SAFETY: the process that loads the library has one thread.
    unsafe { std::env::set_var(SWITCH, "0") };
    let _ = std::backtrace::Backtrace::capture();
    // SAFETY: the process that loads the library has one thread.
    unsafe {
        match before {
            Some(value) => std::env::set_var(SWITCH, value),
            None => std::env::remove_var(SWITCH),
        }
    }
}
