//! Every decision of awty about time, as functions from values to values.
//!
//! - [`slot`] rounds due times up to boundaries; [`lateness`] says how far behind one a run started.
//! - [`limits`] are the options of a job with their legal ranges; [`policy`] applies them to one check, before and after
//!   a run; [`retry`] spaces failed runs; [`outcome`] names why a check ended.
//! - [`plan`] says which roles get a worker and when the launcher wakes next; [`bucket`] spreads a backlog; [`pace`] says how
//!   much of it a worker takes on at a time.
//! - [`claims`] keep a check with one worker; [`pauses`] leave one alone for a while; [`backoff`] is how long to wait after failures.
//! - [`occupancy`] says who may be at a worker's place.
//! - [`inspections`] says when each database is looked at.
//! - [`quarantine`] lets checks that may have crashed the server run one at a time.
//! - [`lease`] is the right of a worker outside to one check for a while.
//! - [`watchdog`] says when a run is cancelled and when it is terminated.
//! - [`dead_rows`] says when what has been finished is vacuumed away.
//! - [`figures`] are what the runs of a job come to, [`job_table`] keeps those of many jobs.
//! - [`log_rate`] says how often the log is told of failures.
//! - [`repeat`] gives the moments of `every` and `cron` in a zone, their slots, and what comes next.
//! - [`versions`] says which versions of the SQL a library serves.
//! - [`mod@nearest`] finds the name that was probably meant; [`command`] the function to write instead of a command.
//!
//! Invariant: the same arguments give the same answer; the current time is always an argument, and nothing panics.
//!
//! Does not: know PostgreSQL, read a clock, sleep, lock, log or allocate more than its answer ([`repeat::Remembered`] keeps the
//! last thousand answers of a zone).
//!
//! An order that is placed at 10:05 and checked after three hours, with slots of 15 minutes:
//!
//! ```
//! use awty_core::{After, Answer, Before, Check, Limits, Outcome, Time, Width, policy};
//! use chrono::TimeDelta;
//!
//! let at = |time: &str| -> Time { format!("2026-03-01T{time}Z").parse().expect("a time") };
//! let width = Width::new(15 * 60).expect("it divides a day");
//! let limits = Limits::defaults(width);
//!
//! let slot = policy::schedule(at("13:05:00"), &limits, at("10:05:00")).expect("it is not too far ahead");
//! assert_eq!(slot, at("13:15:00"));
//! let check = Check { slot, check_count: 0, attempt: 0 };
//!
//! // Before its slot it waits; then it runs.
//! let start = at("00:00:00"); // since when the server can run checks
//! assert_eq!(policy::before(&check, &limits, start, at("13:14:59")), Before::NotYet);
//! assert_eq!(policy::before(&check, &limits, start, at("13:15:00")), Before::Run);
//!
//! // The job answers "ask again in three hours", or that all is done.
//! let again = Answer::Again(at("13:15:01") + TimeDelta::hours(3));
//! assert_eq!(policy::after(&check, &limits, again, at("13:15:01")), After::Again(at("16:30:00")));
//! assert_eq!(policy::after(&check, &limits, Answer::Done, at("13:15:01")), After::End(Outcome::Done));
//! ```

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod label;
#[cfg(test)]
mod testing;

pub mod backoff;
pub mod bucket;
pub mod claims;
pub mod command;
pub mod dead_rows;
pub mod figures;
pub mod inspections;
pub mod job_table;
pub mod lateness;
pub mod lease;
pub mod limits;
pub mod log_rate;
pub mod nearest;
pub mod occupancy;
pub mod outcome;
pub mod pace;
pub mod pauses;
pub mod plan;
pub mod policy;
pub mod quarantine;
pub mod repeat;
pub mod retry;
pub mod slot;
pub mod versions;
pub mod watch;
pub mod watchdog;

pub use bucket::Bucket;
pub use dead_rows::DeadRows;
pub use label::UnknownLabel;
pub use lease::Lease;
pub use limits::{Conflict, KeepHistory, LimitError, Limits, OnConflict, OnMissed};
pub use log_rate::Passed;
pub use nearest::nearest;
pub use outcome::Outcome;
pub use plan::{Caps, Mono, Plan, Role};
pub use policy::{After, Answer, Before, Check, Failed, TooFar};
pub use quarantine::Quarantine;
pub use slot::{Width, WidthError};

/// A moment by the server's clock, in UTC. PostgreSQL's resolution is a microsecond; a finer part is never lost in a
/// comparison, so that nothing comes early because of it.
pub type Time = chrono::DateTime<chrono::Utc>;

/// `t` + `delta`, or the last moment that there is.
pub(crate) fn later(t: Time, delta: chrono::TimeDelta) -> Time {
    t.checked_add_signed(delta).unwrap_or(Time::MAX_UTC)
}
