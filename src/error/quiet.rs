use super::Label;
use super::phrase::{Words, call, say};
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;

#[derive(Debug)]
pub enum QuietError {
    EndPassed {
        argument: &'static str,
    },
    /// awty holds a check whose runs have crashed. This hold has no planned end, so only `awty.release()` ends it.
    HeldAfterCrashes {
        entity: Label,
        job: String,
    },
    NotRaised {
        entity: Label,
        table: String,
    },
}

impl QuietError {
    pub(super) fn words(&self) -> Words {
        match self {
            QuietError::EndPassed { argument } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("argument \"{argument}\" must be in the future"),
                format!("Use {argument} => now() + interval '1 day', for example."),
            ),
            QuietError::HeldAfterCrashes { entity, job } => say(
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("the check of job \"{job}\" for {entity} is held after crashes, so its hold has no end"),
                call("awty.release", &[&entity.name, &entity.key, job]),
            ),
            QuietError::NotRaised { entity, table } => say(
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("only the owner of table {table} can hold {entity} before an alert is raised"),
                "Wait until SELECT * FROM awty.late; shows the row.",
            ),
        }
    }
}
