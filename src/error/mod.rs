//! Every refusal of awty: what it says, its SQLSTATE, and what to do about it. The only module that names an SQLSTATE.
//!
//! Invariant: messages follow PostgreSQL's style (lower case, no final dot, names in double quotes); details and hints
//! are sentences; a hint that is a statement can be pasted.
//! Does not: decide when to refuse.

use crate::pg::catch::Failure;
use crate::pg::sqlstate;
use crate::takes::Takes;
use awty_core::Time;
use awty_core::repeat::RepeatError;
use awty_core::versions::Unserved;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgLogLevel;

mod cancel;
mod label;
mod lease;
pub mod log;
mod phrase;
mod repeat;
mod travel;
mod watch;
mod words;

pub use phrase::quote;
pub use travel::TravelError;
pub use watch::WatchError;
pub use {cancel::cancelled, label::Label, lease::LeaseError};

/// What awty refuses. What each says is in `words`.
#[derive(Debug)]
pub enum Error {
    /// The library was not loaded when the server started.
    NotPreloaded,
    /// The same, where something was written for it.
    NothingRuns,
    /// The library does not work with the SQL objects that are installed.
    Unserved {
        installed: String,
        unserved: Unserved,
    },
    /// The standby cannot write.
    Standby {
        function: &'static str,
    },
    /// The transaction must not write.
    ReadOnly {
        function: &'static str,
    },
    /// Index expressions, REFRESH MATERIALIZED VIEW, ANALYZE and the like.
    Restricted {
        function: &'static str,
    },
    /// A trigger's function, called as if it were another one.
    NotTrigger {
        function: &'static str,
    },
    /// A required argument is NULL.
    Null {
        argument: &'static str,
    },
    /// A name or key is an empty string.
    Empty {
        argument: &'static str,
    },
    /// A name is longer than its column allows.
    TooLong {
        argument: &'static str,
        max: usize,
    },
    /// An array or a row where a key is wanted.
    KeyType {
        argument: &'static str,
        kind: String,
    },
    /// An array of more than one dimension, or of another length than the keys.
    ArrayShape {
        argument: &'static str,
    },
    /// More keys than one call takes.
    TooManyKeys {
        max: usize,
    },
    /// The same key twice in one call.
    KeyTwice {
        key: String,
    },
    /// The arguments are larger than a pending check should be.
    ArgsTooLarge {
        max: usize,
    },
    /// Both or neither of `at` and `after`.
    AtOrAfter {
        both: bool,
    },
    /// An infinite time, or one that cannot be computed with.
    OutOfRange {
        argument: &'static str,
    },
    /// An interval that is too long to be counted in microseconds.
    DurationOutOfRange {
        argument: &'static str,
    },
    TooShort {
        argument: &'static str,
        min: &'static str,
    },
    /// An interval that is none, or negative.
    NotPositive {
        argument: &'static str,
    },
    StepOfMonths,
    /// More steps than a forecast may have.
    TooManySteps {
        max: i64,
    },
    /// A negative interval where there must be none.
    Negative {
        argument: &'static str,
    },
    /// Further ahead than the job's `max_horizon`.
    TooFar {
        job: String,
        time: Time,
        max_horizon: String,
    },
    /// No job of that name; perhaps one is spelt nearly like it.
    UnknownJob {
        job: String,
        nearest: Option<String>,
    },
    /// Another job of that name is there already, perhaps the caller's own.
    JobExists {
        job: String,
        own: bool,
    },
    /// The caller may not schedule or cancel checks of this job.
    NotAllowed {
        job: String,
        role: String,
    },
    /// The caller may not change this job.
    NotOwner {
        job: String,
    },
    /// An option is out of its range; the message comes from `awty_core`.
    Option {
        message: String,
    },
    /// An option, or `on_conflict`, has an unknown value.
    Choice {
        argument: &'static str,
        value: String,
        choices: &'static str,
    },
    /// The slot of a job is none, or is not made of whole slots of the server.
    Slot {
        message: String,
        server: u32,
    },
    /// `reset` names no option that has a default.
    UnknownOption {
        option: String,
    },
    /// A command where the name of a function is wanted, with the function to write and what it is called.
    Command {
        job: String,
        command: String,
        create: String,
        function: String,
    },
    /// The name of a function cannot be read.
    FunctionName {
        function: String,
    },
    /// No function of that name takes a check, or an array of them if that was asked for.
    FunctionMissing {
        function: String,
        set_based: bool,
    },
    /// It is there, but a procedure, an aggregate or a window function.
    NotAFunction {
        function: String,
    },
    /// It returns a set, or something else than times.
    WrongResult {
        function: String,
        takes: Takes,
    },
    /// More than one form is there.
    Ambiguous {
        function: String,
        takes: [Takes; 2],
    },
    /// One of the above or below, of the function of a job that has been registered.
    OfJob {
        job: String,
        error: Box<Error>,
    },
    /// A function in somebody's temporary schema.
    TemporaryFunction {
        function: String,
    },
    /// The role may not execute the function.
    NoExecute {
        function: String,
        role: String,
    },
    /// The role may not use the function's schema.
    NoUsage {
        schema: String,
        role: String,
    },
    /// A privileged role is to run a function that a lesser one may change.
    Untrusted {
        function: String,
        role: String,
    },
    /// A function of somebody whom the job's role has no reason to trust.
    ForeignFunction {
        function: String,
        owner: String,
        role: String,
    },
    /// Only the job's role itself can try the job.
    OtherRole {
        job: String,
        role: String,
    },
    /// The role has as many jobs as a role may have.
    TooManyJobs {
        role: String,
        max: i64,
    },
    /// Another transaction is changing the job, and does not end.
    JobBusy {
        job: String,
    },
    /// No role of that name, or no longer.
    UnknownRole {
        role: String,
    },
    /// The caller may not become this role.
    NotMember {
        role: String,
        caller: String,
        privileged: bool,
    },
    /// The role has no LOGIN.
    NoLogin {
        role: String,
    },
    /// The role has no CONNECT on this database.
    NoConnect {
        role: String,
        database: String,
    },
    /// `on_conflict => 'error'`, and there is one.
    AlreadyPending {
        job: String,
        entity: Label,
        id: i64,
    },
    /// Others kept replacing the check.
    Contended {
        job: String,
        entity: Label,
    },
    /// No check of that entity, or none that the caller may touch.
    NoCheck {
        entity: Label,
        job: Option<String>,
    },
    /// A call that means one check, and does not say which.
    ManyChecks {
        entity: Label,
        jobs: Vec<String>,
        function: &'static str,
    },
    /// The check is being run.
    Running {
        id: i64,
        since: Time,
    },
    /// The check stands still until somebody releases it.
    Held {
        entity: Label,
        job: String,
    },
    /// There is nothing to release.
    NotHeld {
        entity: Label,
        job: String,
    },
    /// Only the owner of a database says whose it is.
    NotDatabaseOwner {
        database: String,
    },
    /// The row of a job makes no sense; somebody wrote to the table.
    BrokenJob {
        job: String,
        message: String,
    },
    /// An administrator has changed a table of awty's in a way that it cannot work with.
    Altered {
        table: &'static str,
    },
    /// It cannot be repeated so, for this job; in a session with this time zone.
    Repeat {
        error: RepeatError,
        job: String,
        zone: Option<String>,
    },
    /// No time zone of that name.
    UnknownZone {
        zone: String,
        hint: String,
    },
    /// A job answered with an infinite time, or one far out of range.
    AnswerOutOfRange {
        job: String,
    },
    /// It cannot travel, or be committed afterwards.
    Travel(TravelError),
    /// It cannot be watched so.
    Watch(WatchError),
    /// A set-based job answered with an array of another length.
    AnswerCount {
        job: String,
        checks: usize,
        answers: usize,
    },
    /// What concerns workers outside.
    Lease(LeaseError),
}

impl Error {
    /// As PostgreSQL takes it.
    pub fn report(&self) -> ErrorReport {
        let words = self.words();
        let mut report = ErrorReport::new(words.code, words.message, "awty").set_hint(words.hint);
        if let Some(detail) = words.detail {
            report = report.set_detail(detail);
        }
        report
    }

    /// What is wrong, and what to do.
    pub fn in_words(&self) -> (String, String) {
        let words = self.words();
        (words.message, words.hint)
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

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let words = error.words();
        Self { sqlstate: sqlstate::text(words.code as i32), message: words.message, context: String::new() }
    }
}

impl From<LeaseError> for Error {
    fn from(error: LeaseError) -> Self {
        Error::Lease(error)
    }
}

impl From<WatchError> for Error {
    fn from(error: WatchError) -> Self {
        Error::Watch(error)
    }
}

impl From<TravelError> for Error {
    fn from(error: TravelError) -> Self {
        Error::Travel(error)
    }
}

impl From<Error> for ErrorReport {
    fn from(error: Error) -> Self {
        error.report()
    }
}

/// What a function of awty gives back to SQL.
pub type Result<T> = std::result::Result<T, Error>;
