//! Makes all decisions of awty about time, in pure functions.
//!
//! - [`slot`] rounds due times up to slots. [`lateness`] is the time from a slot to its run.
//! - [`argument_limits`] limits the arguments of SQL functions.
//! - [`limits`] has a job's options. [`policy`] applies the options before and after a run. [`outcome`] says why a
//!   check ended.
//! - [`plan`] decides which roles get a worker. [`pace`] decides how many checks a worker takes at once.
//!   [`token_bucket`] limits how fast overdue checks start.
//! - [`claims`] gives a check to one worker. [`pauses`] and [`backoff`] say when a worker tries again.
//! - [`occupancy`] is the state of a worker's place in shared memory.
//! - [`inspections`] decides when each database is inspected.
//! - [`quarantine`] runs, one at a time, the checks that may have crashed the server.
//! - [`lease`] is an external worker's right to one check.
//! - [`watch`] decides when a watched row is late, and which level its alert has.
//! - [`watchdog`] decides when a run is cancelled or its process terminated.
//! - [`dead_rows`] decides when the table of pending checks is vacuumed.
//! - [`figures`] counts a job's runs. [`job_table`] keeps the counters of many jobs.
//! - [`log_rate`] limits log entries about failures.
//! - [`repeat`] gives the planned times and slots of `every` and `cron`.
//! - [`calendar`] decides when a calendar is open, and counts open time.
//! - [`http`] lists methods, headers and success statuses.
//! - [`uri`] normalises URIs of endpoints, and computes the ids of their schedules.
//! - [`versions`] decides whether the library supports the installed SQL.
//! - [`mod@nearest`] and [`command`] give HINTs for mistyped names and for commands.
//!
//! Invariant: the same arguments give the same answer. The caller passes the current time, because this crate must not
//! read a clock. No function panics, or allocates more memory than its answer needs.
//!
//! An order placed at 10:05 is checked after three hours, with slots of 15 minutes:
//! ```
//! use awty_core::{After, Answer, Before, Check, Limits, Outcome, Time, Width, policy};
//!
//! let at = |time: &str| -> Time { format!("2026-03-01T{time}Z").parse().expect("a time") };
//! let limits = Limits::defaults(Width::new(15 * 60).expect("it divides a day"));
//!
//! let slot = policy::schedule(at("13:05:00"), &limits, at("10:05:00")).expect("it is not too far ahead");
//! assert_eq!(slot, at("13:15:00"));
//!
//! let check = Check { slot, check_count: 0, attempt: 0 };
//! assert_eq!(policy::before(&check, &limits, at("00:00:00"), at("13:14:59")), Before::NotYet);
//! assert_eq!(policy::before(&check, &limits, at("00:00:00"), at("13:15:00")), Before::Run);
//! assert_eq!(policy::after(&check, &limits, Answer::Done, at("13:15:01")), After::End(Outcome::Done));
//! ```

#![forbid(unsafe_code)]

mod label;
#[cfg(test)]
mod testing;

pub mod argument_limits;
pub mod backoff;
pub mod calendar;
pub mod claims;
pub mod command;
pub mod dead_rows;
pub mod figures;
pub mod http;
pub mod inspections;
pub mod job_table;
pub mod lateness;
pub mod lease;
pub mod limits;
pub mod log_rate;
mod mono;
pub mod nearest;
pub mod occupancy;
pub mod outcome;
pub mod pace;
pub mod pauses;
pub mod plan;
pub mod policy;
pub mod quarantine;
pub mod repeat;
pub mod slot;
pub mod token_bucket;
pub mod uri;
pub mod versions;
pub mod watch;
pub mod watchdog;

pub use dead_rows::DeadRows;
pub use label::{UnknownLabel, Word};
pub use lease::Lease;
pub use limits::{Conflict, KeepHistory, LimitError, Limits, OnConflict, OnMissed};
pub use log_rate::Passed;
pub use mono::Mono;
pub use nearest::nearest;
pub use outcome::Outcome;
pub use plan::{Caps, Plan, Role};
pub use policy::{After, Answer, Before, Check, Failed, TooFar};
pub use quarantine::Quarantine;
pub use slot::{Width, WidthError};
pub use token_bucket::TokenBucket;

/// A `Time` holds nanoseconds, because a check could run early if times were rounded to microseconds.
pub type Time = chrono::DateTime<chrono::Utc>;

pub fn later(t: Time, delta: chrono::TimeDelta) -> Time {
    t.checked_add_signed(delta).unwrap_or(Time::MAX_UTC)
}
