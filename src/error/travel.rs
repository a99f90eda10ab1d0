use super::phrase::{Words, say};
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgLogLevel;

#[derive(Debug)]
pub enum TravelError {
    Off,
    Travelled,
    WithinRun { function: &'static str },
    TooMany { max: u32 },
    NotPositive { argument: &'static str },
}

impl TravelError {
    pub(super) fn words(&self) -> Words {
        match self {
            TravelError::Off => say(
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                "awty.travel() is disabled on this server",
                "On a test server, set awty.time_travel = on in postgresql.conf and reload the configuration.",
            ),
            TravelError::Travelled => say(
                Code::ERRCODE_INVALID_TRANSACTION_STATE,
                "a transaction that has travelled cannot be committed",
                "ROLLBACK;",
            )
            .detail("Its rows would contain times in the future."),
            TravelError::WithinRun { function } => say(
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("cannot execute {function} within a run of a job"),
                "Call it from a session.",
            ),
            TravelError::TooMany { max } => say(
                Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                format!("a transaction cannot travel through more than {max} runs"),
                "Roll back, and travel for a shorter time or with fewer checks.",
            ),
            TravelError::NotPositive { argument } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("argument \"{argument}\" must be at least 1"),
                format!("Use {argument} => 1000, for example."),
            ),
        }
    }
}

pub fn cancelled(message: String) -> ! {
    ErrorReport::new(Code::ERRCODE_QUERY_CANCELED, message, "awty").report(PgLogLevel::ERROR);
    unreachable!("an ERROR does not return")
}
