//! Invariant: messages follow PostgreSQL's style: lower case, no final dot, names in double quotes.

use crate::pg::catch::Failure;
use crate::pg::sqlstate;
use crate::signature::Signature;
use awty_core::Time;
use awty_core::repeat::RepeatError;
use awty_core::versions::Unserved;
use chrono::TimeDelta;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgLogLevel;

mod calendar;
mod label;
mod lease;
pub mod log;
mod phrase;
mod quiet;
mod repeat;
mod travel;
mod uri;
mod watch;
mod words;

pub use phrase::quote;
pub use quiet::QuietError;
pub use travel::{TravelError, cancelled};
pub use uri::UriRefused;
pub use watch::WatchError;
pub use {calendar::CalendarError, label::Label, lease::LeaseError};

#[derive(Debug)]
pub enum Error {
    NotPreloaded,
    NothingRuns,
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
    Restricted {
        function: &'static str,
    },
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
    KeyType {
        argument: &'static str,
        kind: String,
    },
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
    AtOrAfter {
        both: bool,
    },
    OutOfRange {
        argument: &'static str,
    },
    DurationOutOfRange {
        argument: &'static str,
    },
    TooShort {
        argument: &'static str,
        min: &'static str,
    },
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
    TooFar {
        job: String,
        time: Time,
        horizon: TimeDelta,
    },
    UnknownJob {
        job: String,
        nearest: Option<String>,
    },
    JobExists {
        job: String,
        own: bool,
    },
    NotAllowed {
        job: String,
        role: String,
    },
    NotOwner {
        job: String,
    },
    Option {
        message: String,
    },
    Choice {
        argument: &'static str,
        value: String,
        choices: String,
    },
    Slot {
        message: String,
        server: u32,
    },
    UnknownOption {
        option: String,
        options: String,
    },
    Command {
        job: String,
        command: String,
        create: String,
        function: String,
    },
    FunctionName {
        function: String,
    },
    FunctionMissing {
        function: String,
        set_based: bool,
    },
    NotAFunction {
        function: String,
    },
    WrongResult {
        function: String,
        takes: Signature,
    },
    Ambiguous {
        function: String,
        takes: [Signature; 2],
    },
    OfJob {
        job: String,
        error: Box<Error>,
    },
    TemporaryFunction {
        function: String,
    },
    NoExecute {
        function: String,
        role: String,
    },
    NoUsage {
        schema: String,
        role: String,
    },
    /// The job's role has rights that the function's owner lacks. The owner could change the function to use these
    /// rights.
    Untrusted {
        function: String,
        role: String,
    },
    /// The function's owner did not register the job, and the job's role lacks the owner's rights.
    ForeignFunction {
        function: String,
        owner: String,
        role: String,
    },
    OtherRole {
        job: String,
        role: String,
    },
    TooManyJobs {
        role: String,
        max: i64,
    },
    JobBusy {
        job: String,
    },
    OriginBusy,
    UnknownRole {
        role: String,
    },
    NotMember {
        role: String,
        caller: String,
        privileged: bool,
    },
    NoLogin {
        role: String,
        caller: Option<String>,
    },
    NoConnect {
        role: String,
        database: String,
    },
    AlreadyPending {
        job: String,
        entity: Label,
        id: i64,
    },
    Contended {
        job: String,
        entity: Label,
    },
    NoCheck {
        entity: Label,
        job: Option<String>,
    },
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
    NotDatabaseOwner {
        database: String,
    },
    /// The job's row is invalid after an administrator's manual change.
    BrokenJob {
        job: String,
        message: String,
    },
    Altered {
        table: &'static str,
    },
    Repeat {
        error: RepeatError,
        job: String,
        zone: Option<String>,
    },
    UnknownZone {
        zone: String,
        hint: String,
    },
    AnswerOutOfRange {
        job: String,
    },
    Travel(TravelError),
    Watch(WatchError),
    AnswerCount {
        job: String,
        checks: usize,
        answers: usize,
    },
    Lease(LeaseError),
    Quiet(QuietError),
    Calendar(CalendarError),
    Uri(UriRefused),
}

impl Error {
    pub fn report(&self) -> ErrorReport {
        let words = self.words();
        let mut report = ErrorReport::new(words.code, words.message, "awty").set_hint(words.hint);
        if let Some(detail) = words.detail {
            report = report.set_detail(detail);
        }
        report
    }

    pub fn in_words(&self) -> (String, String) {
        let words = self.words();
        (words.message, words.hint)
    }

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

macro_rules! from_errors {
    ($($variant:ident: $error:ty),*) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Error::$variant(error)
            }
        })*
    };
}

from_errors!(Calendar: CalendarError, Lease: LeaseError, Quiet: QuietError, Watch: WatchError, Travel: TravelError, Uri: UriRefused);

impl From<Error> for ErrorReport {
    fn from(error: Error) -> Self {
        error.report()
    }
}

pub type Result<T> = std::result::Result<T, Error>;
