use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgLogLevel;

pub fn cancelled(message: String) -> ! {
    ErrorReport::new(Code::ERRCODE_QUERY_CANCELED, message, "awty").report(PgLogLevel::ERROR);
    unreachable!("an ERROR does not return")
}
