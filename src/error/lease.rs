use super::phrase::{Words, call, quote, say};
use awty_core::Time;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;

#[derive(Debug)]
pub enum LeaseError {
    NotClaimer { job: String, role: String },
    HasFunction { job: String },
    NoFunction { job: String },
    OnlyExternal { option: &'static str },
    Max { most: i32 },
    TooManyTargets { job: String, max: i64 },
    Unequal { argument: &'static str },
    TooMany { argument: &'static str, max: usize },
    SqlState { value: String },
    Leased { id: i64, until: Time },
    InUse { job: String },
    Limit { option: &'static str, least: String, most: String },
    UnknownLimit { limit: String, limits: &'static [&'static str] },
    Concurrent,
}

impl LeaseError {
    pub(super) fn words(&self) -> Words {
        match self {
            LeaseError::NotClaimer { job, role } => say(
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("permission denied to claim checks of job \"{job}\""),
                format!("A member of the job's role can execute: {}", call("awty.allow", &[job, role, "claim"])),
            ),
            LeaseError::HasFunction { job } => say(
                Code::ERRCODE_WRONG_OBJECT_TYPE,
                format!("job \"{job}\" has a function, so its checks cannot be claimed"),
                format!("{} registers a job without a function.", call("awty.register", &["mail"])),
            ),
            LeaseError::NoFunction { job } => say(
                Code::ERRCODE_WRONG_OBJECT_TYPE,
                format!("job \"{job}\" has no function that could be tried"),
                format!("SELECT * FROM awty.claim(ARRAY[{}], 'by hand'); gives a check to a worker.", quote(job)),
            ),
            LeaseError::OnlyExternal { option } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("option \"{option}\" is for jobs without a function"),
                format!("Leave \"{option}\" out, or leave out the function."),
            ),
            LeaseError::Max { most } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("argument \"max\" must be between 1 and {most}"),
                "Use max => 100, for example.",
            ),
            LeaseError::Unequal { argument: argument @ ("leases" | "jobs") } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("argument \"{argument}\" must have one dimension"),
                "Use array_agg(), which makes an array of rows.",
            ),
            LeaseError::Unequal { argument } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("argument \"{argument}\" must have one element for each lease"),
                format!("Give \"{argument}\" as many elements as \"leases\", or NULL for none."),
            ),
            LeaseError::TooMany { argument, max } => say(
                Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                format!("argument \"{argument}\" must not have more than {max} elements"),
                format!("Split the {argument} among several calls."),
            ),
            LeaseError::SqlState { value } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("invalid SQLSTATE code \"{value}\""),
                "Use five digits or capital letters, such as 38000, and not one that means success.",
            ),
            LeaseError::Leased { id, until } => say(
                Code::ERRCODE_OBJECT_IN_USE,
                format!("check {id} is leased until {}", until.format("%Y-%m-%d %H:%M:%S%.3f%:z")),
                format!("SELECT worker, leased_at, deadline FROM awty.lease WHERE id = {id};"),
            ),
            LeaseError::InUse { job } => say(
                Code::ERRCODE_OBJECT_IN_USE,
                format!("job \"{job}\" cannot get a function while workers have leases of its checks"),
                format!("{} and wait until awty.lease has no row of the job.", call("awty.pause", &[job])),
            ),
            LeaseError::Limit { option, least, most } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("limit \"{option}\" must be between {least} and {most}"),
                format!(
                    "Use reset => '{{{option}}}' to remove the limit, or blocked_until => 'infinity' to block the target."
                ),
            ),
            LeaseError::UnknownLimit { limit, limits } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("a target has no limit \"{limit}\""),
                format!("The limits are {}.", limits.join(", ")),
            ),
            LeaseError::TooManyTargets { job, max } => say(
                Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                format!("job \"{job}\" cannot have limits for more than {max} targets"),
                "Set a limit for all targets of the job, or reset limits that are no longer needed.",
            ),
            LeaseError::Concurrent => say(
                Code::ERRCODE_T_R_SERIALIZATION_FAILURE,
                "could not answer a lease that is newer than this transaction's snapshot",
                "Try the transaction again.",
            ),
        }
    }
}
