//! What PostgreSQL itself would say where a client's statement is cancelled.
//!
//! Does not: decide whether it is.

use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgLogLevel;

/// Passes on that somebody has cancelled the client's statement.
pub fn cancelled(message: String) -> ! {
    ErrorReport::new(Code::ERRCODE_QUERY_CANCELED, message, "awty").report(PgLogLevel::ERROR);
    unreachable!("an ERROR does not return")
}
