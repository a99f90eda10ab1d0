//! Every refusal of awty: what it says, its SQLSTATE, and what to do about it. The only module that names an SQLSTATE.
//!
//! Invariant: messages follow PostgreSQL's style (lower case, no final dot, names in double quotes); details and hints
//! are sentences; a hint that is a statement can be pasted.
//! Does not: decide when to refuse.

use awty_core::Time;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgLogLevel;

pub mod log;

/// What awty refuses.
#[derive(Debug)]
pub enum Error {
    /// The library was not loaded when the server started.
    NotPreloaded,
    /// The installed SQL objects are of another version than the library.
    OtherVersion { installed: String },
    /// The standby cannot write.
    Standby { function: &'static str },
    /// The transaction must not write.
    ReadOnly { function: &'static str },
    /// Index expressions, REFRESH MATERIALIZED VIEW, ANALYZE and the like.
    Restricted { function: &'static str },
    /// A trigger's function, called as if it were another one.
    NotTrigger { function: &'static str },
    /// A required argument is NULL.
    Null { argument: &'static str },
    /// A name or key is an empty string.
    Empty { argument: &'static str },
    /// A name is longer than its column allows.
    TooLong { argument: &'static str, max: usize },
    /// The arguments are larger than a pending check should be.
    ArgsTooLarge { max: usize },
    /// Both or neither of `at` and `after`.
    AtOrAfter { both: bool },
    /// An infinite time, or one that cannot be computed with.
    OutOfRange { argument: &'static str },
    /// An interval that is too long to be counted in microseconds.
    DurationOutOfRange { argument: &'static str },
    /// A negative interval where there must be none.
    Negative { argument: &'static str },
    /// Further ahead than the job's `max_horizon`.
    TooFar { job: String, time: Time, max_horizon: String },
    /// No job of that name; perhaps one is spelt nearly like it.
    UnknownJob { job: String, nearest: Option<String> },
    /// A job of that name is there already.
    JobExists { job: String },
    /// The caller may not schedule or cancel checks of this job.
    NotAllowed { job: String, role: String },
    /// The caller may not change this job.
    NotOwner { job: String },
    /// An option is out of its range; the message comes from `awty_core`.
    Option { message: String },
    /// An option, or `on_conflict`, has an unknown value.
    Choice { argument: &'static str, value: String, choices: &'static str },
    /// The slot of a job is none, or is not made of whole slots of the server.
    Slot { message: String, server: u32 },
    /// `reset` names no option that has a default.
    UnknownOption { option: String },
    /// The name of a function cannot be read.
    FunctionName { function: String },
    /// No function of that name takes a check, or an array of them if that was asked for.
    FunctionMissing { function: String, set_based: bool },
    /// It is there, but a procedure, an aggregate or a window function.
    NotAFunction { function: String },
    /// It returns a set, or something else than times.
    WrongResult { function: String, set_based: bool },
    /// Both the plain and the set-based form are there.
    Ambiguous { function: String },
    /// One of the above or below, of the function of a job that has been registered.
    OfJob { job: String, error: Box<Error> },
    /// A function in somebody's temporary schema.
    TemporaryFunction { function: String },
    /// The role may not execute the function.
    NoExecute { function: String, role: String },
    /// The role may not use the function's schema.
    NoUsage { schema: String, role: String },
    /// A mighty role is to run a function that a lesser one may change.
    Untrusted { function: String, role: String },
    /// A function of somebody whom the job's role has no reason to trust.
    ForeignFunction { function: String, owner: String, role: String },
    /// The role has as many jobs as a role may have.
    TooManyJobs { role: String, max: i64 },
    /// Another transaction is changing the job, and does not end.
    JobBusy { job: String },
    /// No role of that name, or no longer.
    UnknownRole { role: String },
    /// The caller may not become this role.
    NotMember { role: String, caller: String },
    /// The role has no LOGIN.
    NoLogin { role: String },
    /// The role has no CONNECT on this database.
    NoConnect { role: String, database: String },
    /// `on_conflict => 'error'`, and there is one.
    AlreadyPending { job: String, entity_name: String, entity_key: String, id: i64 },
    /// Others kept replacing the check.
    Contended { job: String, entity_name: String, entity_key: String },
    /// No check of that id, or none that the caller may touch.
    UnknownCheck { id: i64 },
    /// There is nothing to release.
    NotHeld { id: i64 },
    /// Only the owner of a database says whose it is.
    NotDatabaseOwner { database: String },
    /// The row of a job makes no sense; somebody wrote to the table.
    BrokenJob { job: String, message: String },
    /// An administrator has changed a table of awty's in a way that it cannot work with.
    Altered { table: &'static str },
    /// A job answered with an infinite time, or one far out of range.
    AnswerOutOfRange { job: String },
    /// A set-based job answered with an array of another length.
    AnswerCount { job: String, checks: usize, answers: usize },
}

/// The head of a job function, for hints.
fn head(function: &str, set_based: bool) -> String {
    let array = if set_based { "[]" } else { "" };
    format!("CREATE FUNCTION {function}(awty.future_job{array}) RETURNS timestamptz{array} …")
}

/// As a string constant, for hints.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// As a quoted identifier, for hints.
fn ident(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Error {
    /// The SQLSTATE.
    fn code(&self) -> Code {
        match self {
            Error::NotPreloaded | Error::OtherVersion { .. } | Error::NotHeld { .. } | Error::Altered { .. } => {
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE
            }
            Error::Standby { .. } | Error::ReadOnly { .. } => Code::ERRCODE_READ_ONLY_SQL_TRANSACTION,
            Error::NotTrigger { .. } => Code::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
            Error::Null { .. } => Code::ERRCODE_NULL_VALUE_NOT_ALLOWED,
            Error::Empty { .. } | Error::FunctionName { .. } => Code::ERRCODE_INVALID_NAME,
            Error::TooLong { .. } => Code::ERRCODE_NAME_TOO_LONG,
            Error::ArgsTooLarge { .. } | Error::TooManyJobs { .. } => Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            Error::JobBusy { .. } => Code::ERRCODE_LOCK_NOT_AVAILABLE,
            Error::OutOfRange { .. } | Error::TooFar { .. } | Error::AnswerOutOfRange { .. } => {
                Code::ERRCODE_DATETIME_FIELD_OVERFLOW
            }
            Error::AtOrAfter { .. }
            | Error::Negative { .. }
            | Error::DurationOutOfRange { .. }
            | Error::Option { .. }
            | Error::Choice { .. }
            | Error::Slot { .. }
            | Error::UnknownOption { .. }
            | Error::BrokenJob { .. } => Code::ERRCODE_INVALID_PARAMETER_VALUE,
            Error::UnknownJob { .. } | Error::UnknownRole { .. } | Error::UnknownCheck { .. } => {
                Code::ERRCODE_UNDEFINED_OBJECT
            }
            Error::JobExists { .. } => Code::ERRCODE_DUPLICATE_OBJECT,
            Error::FunctionMissing { .. } => Code::ERRCODE_UNDEFINED_FUNCTION,
            Error::NotAFunction { .. } => Code::ERRCODE_WRONG_OBJECT_TYPE,
            Error::OfJob { error, .. } => error.code(),
            Error::WrongResult { .. } | Error::TemporaryFunction { .. } => Code::ERRCODE_INVALID_FUNCTION_DEFINITION,
            Error::Ambiguous { .. } => Code::ERRCODE_AMBIGUOUS_FUNCTION,
            Error::NoLogin { .. } => Code::ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION,
            Error::Restricted { .. }
            | Error::NotAllowed { .. }
            | Error::NotOwner { .. }
            | Error::NoExecute { .. }
            | Error::NoUsage { .. }
            | Error::Untrusted { .. }
            | Error::ForeignFunction { .. }
            | Error::NotMember { .. }
            | Error::NoConnect { .. }
            | Error::NotDatabaseOwner { .. } => Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
            Error::AlreadyPending { .. } => Code::ERRCODE_UNIQUE_VIOLATION,
            Error::Contended { .. } => Code::ERRCODE_T_R_SERIALIZATION_FAILURE,
            Error::AnswerCount { .. } => Code::ERRCODE_ARRAY_ELEMENT_ERROR,
        }
    }

    /// The SQLSTATE as five characters.
    pub fn sqlstate(&self) -> String {
        state::text(self.code() as i32)
    }

    /// The primary message.
    pub fn message(&self) -> String {
        match self {
            Error::NotPreloaded => "awty must be loaded by \"shared_preload_libraries\"".into(),
            Error::OtherVersion { installed } => format!(
                "extension \"awty\" is installed in version \"{installed}\", but its library is \"{}\"",
                env!("CARGO_PKG_VERSION")
            ),
            Error::Standby { function } => format!("cannot execute {function} during recovery"),
            Error::ReadOnly { function } => format!("cannot execute {function} in a read-only transaction"),
            Error::Restricted { function } => {
                format!("cannot execute {function} within a security-restricted operation")
            }
            Error::NotTrigger { function } => format!("{function} was not called by a trigger"),
            Error::Null { argument } => format!("argument \"{argument}\" must not be null"),
            Error::Empty { argument } => format!("argument \"{argument}\" must not be empty"),
            Error::TooLong { argument, max } => format!("argument \"{argument}\" must not be longer than {max} bytes"),
            Error::ArgsTooLarge { max } => format!("argument \"args\" must not be larger than {max} bytes"),
            Error::AtOrAfter { both: true } => "arguments \"at\" and \"after\" cannot be used together".into(),
            Error::AtOrAfter { both: false } => "one of the arguments \"at\" and \"after\" is required".into(),
            Error::OutOfRange { argument } | Error::DurationOutOfRange { argument } => {
                format!("argument \"{argument}\" is out of range")
            }
            Error::Negative { argument } => format!("argument \"{argument}\" must not be negative"),
            Error::TooFar { job, time, .. } => {
                format!("time {} is too far ahead for job \"{job}\"", time.format("%Y-%m-%d %H:%M:%S%:z"))
            }
            Error::UnknownJob { job, .. } => format!("job \"{job}\" does not exist"),
            Error::JobExists { job } => format!("job \"{job}\" already exists"),
            Error::NotAllowed { job, .. } | Error::NotOwner { job } => format!("permission denied for job \"{job}\""),
            Error::Option { message } | Error::Slot { message, .. } => message.clone(),
            Error::Choice { argument, value, .. } => format!("invalid value for argument \"{argument}\": \"{value}\""),
            Error::UnknownOption { option } => format!("option \"{option}\" does not exist or has no default"),
            Error::FunctionName { function } => format!("invalid function name \"{function}\""),
            Error::FunctionMissing { function, set_based } => {
                let array = if *set_based { "[]" } else { "" };
                format!("function {function}(awty.future_job{array}) does not exist")
            }
            Error::OfJob { job, error } => format!("job \"{job}\" cannot run: {}", error.message()),
            Error::NotAFunction { function } => format!("{function} is not a plain function"),
            Error::WrongResult { function, set_based } => {
                let array = if *set_based { "[]" } else { "" };
                format!("function {function} must return timestamptz{array}")
            }
            Error::Ambiguous { function } => {
                format!("function {function} takes both awty.future_job and awty.future_job[]")
            }
            Error::TemporaryFunction { function } => format!("function {function} is temporary"),
            Error::NoExecute { function, role } => {
                format!("permission denied for function {function} as role \"{role}\"")
            }
            Error::NoUsage { schema, role } => format!("permission denied for schema {schema} as role \"{role}\""),
            Error::Untrusted { function, role } => {
                format!("role \"{role}\" runs only functions that a superuser owns, and {function} is not one")
            }
            Error::ForeignFunction { function, owner, .. } => {
                format!("function {function} belongs to role \"{owner}\"")
            }
            Error::TooManyJobs { role, max } => format!("role \"{role}\" cannot have more than {max} jobs"),
            Error::JobBusy { job } => format!("job \"{job}\" is being changed by another transaction"),
            Error::UnknownRole { role } => format!("role \"{role}\" does not exist"),
            Error::NotMember { role, .. } => format!("must be able to SET ROLE \"{role}\""),
            Error::NoLogin { role } => format!("role \"{role}\" is not permitted to log in"),
            Error::NoConnect { role, database } => {
                format!("role \"{role}\" may not connect to database \"{database}\"")
            }
            Error::AlreadyPending { job, entity_name, entity_key, .. } => {
                format!("a check of job \"{job}\" is already pending for \"{entity_name}\" \"{entity_key}\"")
            }
            Error::Contended { job, entity_name, entity_key } => {
                format!("the check of job \"{job}\" for \"{entity_name}\" \"{entity_key}\" kept changing")
            }
            Error::UnknownCheck { id } => format!("check {id} does not exist"),
            Error::NotHeld { id } => format!("check {id} is not held"),
            Error::NotDatabaseOwner { database } => format!("must be owner of database \"{database}\""),
            Error::BrokenJob { job, .. } => format!("job \"{job}\" has an invalid row in awty.job"),
            Error::Altered { table } => format!("awty cannot work with {table} as it has been altered"),
            Error::AnswerOutOfRange { job } => format!("job \"{job}\" answered with a time that is out of range"),
            Error::AnswerCount { job, checks, answers } => {
                format!("job \"{job}\" gave {answers} answers to {checks} checks")
            }
        }
    }

    /// More to know, where there is more.
    fn detail(&self) -> Option<String> {
        Some(match self {
            Error::OfJob { error, .. } => return error.detail(),
            Error::TooFar { max_horizon, .. } => format!("The job's \"max_horizon\" is {max_horizon}."),
            Error::Untrusted { .. } => {
                "A superuser, or a role with BYPASSRLS, CREATEROLE, REPLICATION or a predefined role, would lend its \
                 rights to whoever may change the function."
                    .into()
            }
            Error::ForeignFunction { role, .. } => format!(
                "It would run with the rights of role \"{role}\", which runs functions of its own, of roles that it is a member \
                 of, of superusers and of who registered the job."
            ),
            Error::AlreadyPending { id, .. } => format!("It is check {id}."),
            Error::NotOwner { .. } => "Only members of the job's role may change it.".into(),
            Error::BrokenJob { message, .. } => format!("It cannot be used: {message}."),
            Error::Restricted { .. } => {
                "Index expressions, materialized views and maintenance commands must have no such effects.".into()
            }
            _ => return None,
        })
    }

    /// What to do about it.
    fn hint(&self) -> Option<String> {
        Some(match self {
            Error::OfJob { error, .. } => return error.hint(),
            Error::NotPreloaded => {
                "Add shared_preload_libraries = 'awty' to postgresql.conf and restart the server.".into()
            }
            Error::OtherVersion { .. } => {
                "ALTER EXTENSION awty UPDATE; or restart the server with the library of that \
                                           version."
                    .into()
            }
            Error::Standby { .. } => "Schedule on the primary server.".into(),
            Error::ReadOnly { .. } => "BEGIN READ WRITE; starts a transaction that may write.".into(),
            Error::Restricted { .. } => "Call it from a trigger or from the application.".into(),
            Error::NotTrigger { .. } => "PostgreSQL calls it when \"awty.job\" changes.".into(),
            Error::Null { argument } | Error::Empty { argument } => format!("Give \"{argument}\" a value."),
            Error::TooLong { argument, .. } => format!("Use a shorter \"{argument}\"."),
            Error::ArgsTooLarge { .. } => "Pass a key, and let the job look the rest up.".into(),
            Error::AtOrAfter { .. } => "SELECT awty.schedule('orders', '42', 'unshipped', after => '3 hours');".into(),
            Error::OutOfRange { .. } => {
                "Use a finite time; checks may lie as far ahead as the job's \"max_horizon\".".into()
            }
            Error::DurationOutOfRange { .. } => "Use a shorter interval.".into(),
            Error::Negative { .. } => "Use a positive interval; a past \"at\" means the next slot.".into(),
            Error::TooFar { job, .. } => {
                format!("SELECT awty.alter({}, max_horizon => '10 years');", quote(job))
            }
            Error::UnknownJob { nearest: Some(nearest), .. } => format!("Did you mean \"{nearest}\"?"),
            Error::UnknownJob { job, nearest: None } => {
                format!("SELECT awty.register({}, 'schema.function');", quote(job))
            }
            Error::JobExists { job } => format!("SELECT awty.alter({}, …); changes its options.", quote(job)),
            Error::NotAllowed { job, role } => {
                format!("A member of the job's role can say: SELECT awty.allow({}, {});", quote(job), quote(role))
            }
            Error::NotOwner { .. } => "Ask a member of the job's role, or a superuser.".into(),
            Error::Option { .. } => "SELECT * FROM awty.job; shows the options of each job.".into(),
            Error::Choice { choices, .. } => format!("Use one of: {choices}."),
            Error::Slot { server, .. } => format!("Use a multiple of {server} seconds that divides a day."),
            Error::UnknownOption { .. } => "The options are slot, timeout, max_checks, max_horizon, max_attempts, \
                                            retry_after, on_missed, max_lateness and keep_history."
                .into(),
            Error::FunctionName { .. } => "Give the name only, with its schema, such as 'shop.unshipped'.".into(),
            Error::NotAFunction { function } => head(function, false),
            Error::FunctionMissing { function, set_based } | Error::WrongResult { function, set_based } => {
                head(function, *set_based)
            }
            Error::Ambiguous { function } => format!("DROP FUNCTION {function}(awty.future_job[]); or the other one."),
            Error::TemporaryFunction { .. } => "Create it in a schema that other sessions see.".into(),
            Error::NoUsage { schema, role } => format!("GRANT USAGE ON SCHEMA {} TO {};", ident(schema), ident(role)),
            Error::NoExecute { function, role } => {
                format!("GRANT EXECUTE ON FUNCTION {function} TO {};", ident(role))
            }
            Error::Untrusted { function, .. } => {
                format!(
                    "Register the job with run_as => an ordinary role, or ALTER FUNCTION {function} OWNER TO a superuser."
                )
            }
            Error::ForeignFunction { function, role, .. } => {
                format!("ALTER FUNCTION {function} OWNER TO {};", ident(role))
            }
            Error::TooManyJobs { .. } => {
                "One job serves any number of entities: pass what differs in the check's key or arguments.".into()
            }
            Error::JobBusy { .. } => {
                "Try again; SELECT * FROM pg_prepared_xacts; shows transactions that wait to be committed.".into()
            }
            Error::UnknownRole { .. } => "SELECT rolname FROM pg_roles; lists the roles.".into(),
            Error::NotMember { role, caller } => format!("GRANT {} TO {};", ident(role), ident(caller)),
            Error::NoLogin { role } => format!("ALTER ROLE {} LOGIN;", ident(role)),
            Error::NoConnect { role, database } => {
                format!("GRANT CONNECT ON DATABASE {} TO {};", ident(database), ident(role))
            }
            Error::AlreadyPending { .. } => "Use on_conflict => 'replace', 'keep', 'earliest' or 'latest'.".into(),
            Error::Contended { .. } => "Try the transaction again.".into(),
            Error::UnknownCheck { .. } => "SELECT id FROM awty.future_job; lists the pending checks.".into(),
            Error::NotHeld { .. } => "SELECT id FROM awty.future_job WHERE held; lists the checks to release.".into(),
            Error::NotDatabaseOwner { .. } => "Ask the owner of the database, or a superuser.".into(),
            Error::BrokenJob { job, .. } => {
                format!(
                    "A superuser can say: SELECT awty.unregister({}); and then it can be registered again.",
                    quote(job)
                )
            }
            Error::Altered { table } => {
                format!("Drop the rule or trigger on {table} that suppresses awty's statements.")
            }
            Error::AnswerOutOfRange { .. } => "Answer NULL when there is nothing more to check.".into(),
            Error::AnswerCount { .. } => "Answer one time, or NULL, for each check, in the order of the checks.".into(),
        })
    }

    /// As PostgreSQL takes it.
    pub fn report(&self) -> ErrorReport {
        let mut report = ErrorReport::new(self.code(), self.message(), "awty");
        if let Some(detail) = self.detail() {
            report = report.set_detail(detail);
        }
        if let Some(hint) = self.hint() {
            report = report.set_hint(hint);
        }
        report
    }

    /// Says it in the server log, where there is nobody to refuse anything to.
    pub fn warn(&self) {
        self.report().report(PgLogLevel::WARNING);
    }

    /// Raises it as an ERROR.
    pub fn raise(&self) -> ! {
        self.report().report(PgLogLevel::ERROR);
        unreachable!("an ERROR does not return")
    }
}

impl From<Error> for ErrorReport {
    fn from(error: Error) -> Self {
        error.report()
    }
}

/// What a function of awty gives back to SQL.
pub type Result<T> = std::result::Result<T, Error>;

/// SQLSTATEs that decide what happens to a failed run, and those that awty gives.
pub mod state {
    /// The run was cancelled: by its timeout, the watchdog or `pg_cancel_backend()`.
    pub const QUERY_CANCELED: &str = "57014";
    /// What is archived for an error that claims to be a success.
    pub const RAISE_EXCEPTION: &str = "P0001";
    /// What is archived for checks whose job's role is gone.
    pub const UNDEFINED_OBJECT: &str = "42704";

    /// An SQLSTATE in PostgreSQL's own encoding as five characters. An error that calls itself a success is archived as a plain
    /// exception.
    pub fn text(code: i32) -> String {
        let character = |place| char::from((((code >> (6 * place)) & 0x3f) as u8).wrapping_add(b'0'));
        let text: String = (0..5).map(character).collect();
        if text == "00000" { RAISE_EXCEPTION.into() } else { text }
    }
}
