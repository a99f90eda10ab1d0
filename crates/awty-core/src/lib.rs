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
//! - [`watchdog`] says when a run is cancelled and when it is terminated.
//! - [`dead_rows`] says when what has been finished is to be vacuumed away.
//! - [`versions`] says which versions of the SQL a library serves.
//! - [`mod@nearest`] finds the name that was probably meant.
//!
//! Invariant: the same arguments give the same answer; the current time is always an argument, and nothing panics.
//!
//! Does not: know PostgreSQL, read a clock, sleep, lock, log or allocate more than its answer.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod label;
#[cfg(test)]
mod testing;

pub mod backoff;
pub mod bucket;
pub mod claims;
pub mod dead_rows;
pub mod inspections;
pub mod lateness;
pub mod limits;
pub mod nearest;
pub mod occupancy;
pub mod outcome;
pub mod pace;
pub mod pauses;
pub mod plan;
pub mod policy;
pub mod quarantine;
pub mod retry;
pub mod slot;
pub mod versions;
pub mod watchdog;

pub use bucket::Bucket;
pub use dead_rows::DeadRows;
pub use label::UnknownLabel;
pub use limits::{Conflict, KeepHistory, LimitError, Limits, OnConflict, OnMissed};
pub use nearest::nearest;
pub use outcome::Outcome;
pub use plan::{Caps, Mono, Plan, Role};
pub use policy::{After, Answer, Before, Check, TooFar};
pub use quarantine::Quarantine;
pub use slot::{Width, WidthError};

/// A moment by the server's clock, in UTC. PostgreSQL's resolution is a microsecond; a finer part is never lost in a
/// comparison, so that nothing comes early because of it.
pub type Time = chrono::DateTime<chrono::Utc>;

/// `t` + `delta`, or the last moment that there is.
pub(crate) fn later(t: Time, delta: chrono::TimeDelta) -> Time {
    t.checked_add_signed(delta).unwrap_or(Time::MAX_UTC)
}
