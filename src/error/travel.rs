use super::phrase::{Words, say};
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;

#[derive(Debug)]
pub enum TravelError {
    /// The server does not allow time travel.
    Off,
    /// A transaction that has travelled tried to commit.
    Travelled,
    /// One transaction has too many runs.
    TooMany { max: u32 },
    /// A count is zero or negative.
    NotPositive { argument: &'static str },
}

impl TravelError {
    pub(super) fn words(&self) -> Words {
        match self {
            TravelError::Off => say(
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                "awty.travel() is switched off on this server",
                "On a server for tests: awty.time_travel = on in postgresql.conf; SELECT pg_reload_conf();",
            ),
            TravelError::Travelled => say(
                Code::ERRCODE_INVALID_TRANSACTION_STATE,
                "a transaction that has travelled cannot be committed",
                "ROLLBACK;",
            )
            .detail("Its rows would carry times that have not come."),
            TravelError::TooMany { max } => say(
                Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                format!("a transaction cannot travel through more than {max} runs"),
                "ROLLBACK; and travel a shorter way, or with fewer checks.",
            ),
            TravelError::NotPositive { argument } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("argument \"{argument}\" must be at least 1"),
                format!("{argument} => 1000"),
            ),
        }
    }
}
