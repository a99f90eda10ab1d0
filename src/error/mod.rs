//! Every error of awty, with its SQLSTATE, message and hint. No other module chooses an SQLSTATE for an error.
//!
//! Invariant: messages follow PostgreSQL's style (lower case, no final dot, names in double quotes). Details and hints
//! are sentences. A hint that is a statement can be pasted.

use crate::pg::catch::Failure;
use crate::pg::sqlstate;
use crate::signature::Signature;
use awty_core::Time;
use awty_core::repeat::RepeatError;
use awty_core::versions::Unserved;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgLogLevel;

mod calendar;
mod cancel;
mod label;
mod lease;
pub mod log;
mod phrase;
mod repeat;
mod travel;
mod uri;
mod watch;
mod words;

pub use phrase::quote;
pub use travel::TravelError;
pub use uri::UriRefused;
pub use watch::WatchError;
pub use {calendar::CalendarError, cancel::cancelled, label::Label, lease::LeaseError};

/// `words` has the texts.
#[derive(Debug)]
pub enum Error {
    /// The library was not loaded when the server started.
    NotPreloaded,
    /// The library was not loaded, and a check was written nevertheless.
    NothingRuns,
    /// The library does not serve the installed SQL version.
    Unserved {
        installed: String,
        unserved: Unserved,
    },
    Standby {
        function: &'static str,
    },
    ReadOnly {
        function: &'static str,
    },
    /// A security-restricted operation, such as an index expression, REFRESH MATERIALIZED VIEW or ANALYZE.
    Restricted {
        function: &'static str,
    },
    /// A trigger function was called directly.
    NotTrigger {
        function: &'static str,
    },
    Null {
        argument: &'static str,
    },
    Empty {
        argument: &'static str,
    },
    TooLong {
        argument: &'static str,
        max: usize,
    },
    /// A key is an array or a row.
    KeyType {
        argument: &'static str,
        kind: String,
    },
    /// An array has several dimensions, or another length than the keys.
    ArrayShape {
        argument: &'static str,
    },
    TooManyKeys {
        max: usize,
    },
    KeyTwice {
        key: String,
    },
    ArgsTooLarge {
        max: usize,
    },
    /// Both or neither of `at` and `after` were given.
    AtOrAfter {
        both: bool,
    },
    /// A time is infinite or out of range.
    OutOfRange {
        argument: &'static str,
    },
    /// An interval is too long to be counted in microseconds.
    DurationOutOfRange {
        argument: &'static str,
    },
    TooShort {
        argument: &'static str,
        min: &'static str,
    },
    /// An interval is zero or negative.
    NotPositive {
        argument: &'static str,
    },
    StepOfMonths,
    TooManySteps {
        max: i64,
    },
    Negative {
        argument: &'static str,
    },
    /// The time is beyond the job's `max_horizon`.
    TooFar {
        job: String,
        time: Time,
        max_horizon: String,
    },
    /// No job has this name, but one may have a similar name.
    UnknownJob {
        job: String,
        nearest: Option<String>,
    },
    /// The job may be the caller's own.
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
    /// An option is out of its range. The message comes from `awty_core`.
    Option {
        message: String,
    },
    /// An option, or `on_conflict`, has an unknown value.
    Choice {
        argument: &'static str,
        value: String,
        choices: String,
    },
    /// A slot is invalid, or not a multiple of the server's slot.
    Slot {
        message: String,
        server: u32,
    },
    /// `reset` names no option with a default.
    UnknownOption {
        option: String,
        /// The options that have a default.
        options: String,
    },
    /// A command instead of a function name, with the function to create and its name.
    Command {
        job: String,
        command: String,
        create: String,
        function: String,
    },
    FunctionName {
        function: String,
    },
    /// The function must take a check, or an array of checks if requested.
    FunctionMissing {
        function: String,
        set_based: bool,
    },
    /// The function is a procedure, an aggregate or a window function.
    NotAFunction {
        function: String,
    },
    /// The function returns a set, or another type than times.
    WrongResult {
        function: String,
        takes: Signature,
    },
    /// The function exists in more than one form.
    Ambiguous {
        function: String,
        takes: [Signature; 2],
    },
    /// The error concerns the function of a registered job.
    OfJob {
        job: String,
        error: Box<Error>,
    },
    /// The function is in a temporary schema.
    TemporaryFunction {
        function: String,
    },
    NoExecute {
        function: String,
        role: String,
    },
    /// The role may not use the function's schema.
    NoUsage {
        schema: String,
        role: String,
    },
    /// A privileged role would run a function that a less privileged role may change.
    Untrusted {
        function: String,
        role: String,
    },
    /// The function's owner is a role that the job's role has no reason to trust.
    ForeignFunction {
        function: String,
        owner: String,
        role: String,
    },
    /// Only the job's own role can try the job.
    OtherRole {
        job: String,
        role: String,
    },
    TooManyJobs {
        role: String,
        max: i64,
    },
    /// Another transaction is changing the job, and does not end.
    JobBusy {
        job: String,
    },
    UnknownRole {
        role: String,
    },
    /// The caller may not become this role.
    NotMember {
        role: String,
        caller: String,
        privileged: bool,
    },
    NoLogin {
        role: String,
        /// The caller, if it may log in.
        caller: Option<String>,
    },
    /// The role may not connect to this database.
    NoConnect {
        role: String,
        database: String,
    },
    /// The caller has set `on_conflict => 'error'`.
    AlreadyPending {
        job: String,
        entity: Label,
        id: i64,
    },
    /// Other sessions kept replacing the check.
    Contended {
        job: String,
        entity: Label,
    },
    /// The entity has no check that the caller may change.
    NoCheck {
        entity: Label,
        job: Option<String>,
    },
    /// The call is for one check, but several match.
    ManyChecks {
        entity: Label,
        jobs: Vec<String>,
        function: &'static str,
    },
    Running {
        id: i64,
        since: Time,
    },
    Held {
        entity: Label,
        job: String,
    },
    NotHeld {
        entity: Label,
        job: String,
    },
    /// Only the owner of a database may adopt it.
    NotDatabaseOwner {
        database: String,
    },
    /// The job's row is invalid, because it was written by hand.
    BrokenJob {
        job: String,
        message: String,
    },
    /// An administrator has altered a table of awty's in an unsupported way.
    Altered {
        table: &'static str,
    },
    /// A repetition is invalid. The hint needs the job and the session's time zone.
    Repeat {
        error: RepeatError,
        job: String,
        zone: Option<String>,
    },
    UnknownZone {
        zone: String,
        hint: String,
    },
    /// A job returned a time that is infinite or far out of range.
    AnswerOutOfRange {
        job: String,
    },
    Travel(TravelError),
    Watch(WatchError),
    /// A set-based job returned an array of another length.
    AnswerCount {
        job: String,
        checks: usize,
        answers: usize,
    },
    Lease(LeaseError),
    /// An error of a calendar.
    Calendar(CalendarError),
    Uri(UriRefused),
}

impl Error {
    /// Converts the error to PostgreSQL's form.
    pub fn report(&self) -> ErrorReport {
        let words = self.words();
        let mut report = ErrorReport::new(words.code, words.message, "awty").set_hint(words.hint);
        if let Some(detail) = words.detail {
            report = report.set_detail(detail);
        }
        report
    }

    /// Returns the message and the hint.
    pub fn in_words(&self) -> (String, String) {
        let words = self.words();
        (words.message, words.hint)
    }

    /// Logs the error as a warning, because no client can get it.
    pub fn warn(&self) {
        self.report().report(PgLogLevel::WARNING);
    }

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

/// Converts the errors of features.
macro_rules! from_errors {
    ($($variant:ident: $error:ty),*) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Error::$variant(error)
            }
        })*
    };
}

from_errors!(Calendar: CalendarError, Lease: LeaseError, Watch: WatchError, Travel: TravelError, Uri: UriRefused);

impl From<Error> for ErrorReport {
    fn from(error: Error) -> Self {
        error.report()
    }
}

pub type Result<T> = std::result::Result<T, Error>;
