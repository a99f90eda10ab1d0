//! A lease is an external worker's right to work on one check for a limited time.
//!
//! Invariant: `leased_at` ≤ `expires_at` ≤ `deadline`, and the deadline never moves. While a lease is live, no other
//! worker gets the lease's check.

pub mod breaker;
pub mod key;
pub mod lock;
mod next_claim;
pub mod order;
pub mod target;
pub mod tokens;

pub use next_claim::{Ahead, wait};

use crate::backoff;
use crate::label::labels;
use crate::limits::{LimitError, Limits};
use crate::policy::Failed;
use crate::{Time, later};
use chrono::TimeDelta;
use std::ops::RangeInclusive;

pub const HEARTBEAT: RangeInclusive<TimeDelta> = TimeDelta::seconds(1)..=TimeDelta::days(1);

labels! {
    Delivery for "delivery" {
        /// The check is handed out again and again until a worker reports a run's result.
        AtLeastOnce = "at_least_once",
        /// The check is handed out only once, unless the worker reports that it has not started the check.
        AtMostOnce = "at_most_once",
    }
}

labels! {
    KeepAttempts for "keep_attempts" {
        All = "all",
        Problems = "problems",
        None = "none",
    }
}

impl KeepAttempts {
    pub fn keeps(self, ok: bool) -> bool {
        match self {
            Self::All => true,
            Self::Problems => !ok,
            Self::None => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseOptions {
    /// A lease expires after this time without a heartbeat.
    pub heartbeat: Option<TimeDelta>,
    pub delivery: Delivery,
    pub keep_attempts: KeepAttempts,
}

impl LeaseOptions {
    pub const DEFAULTS: Self =
        Self { heartbeat: None, delivery: Delivery::AtLeastOnce, keep_attempts: KeepAttempts::All };

    pub fn check(&self) -> Result<(), LimitError> {
        self.heartbeat.map_or(Ok(()), |heartbeat| Limits::check_time("heartbeat", heartbeat, &HEARTBEAT))
    }

    /// Classifies a failure that an external worker reported. With `at_most_once`, a started check is never retried, so
    /// each failure is final.
    pub fn reported(&self, retry_at: Option<Time>, is_final: bool, not_started: bool, chance: u64) -> Failed {
        let is_once = self.delivery == Delivery::AtMostOnce && !not_started;
        // Ignores `retry_at` if only `at_most_once` makes the failure final. If the worker calls the failure final,
        // `retry_at` can postpone the next planned check.
        let retry_at = retry_at.filter(|_| is_final || !is_once);
        let is_final = is_final || is_once;
        Failed { timed_out: false, is_final, retry_at, spread: backoff::spread(chance) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    pub leased_at: Time,
    /// End of the lease, which each heartbeat postpones.
    pub expires_at: Time,
    /// From the deadline on, awty refuses the worker's answer.
    pub deadline: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Live,
    Expired,
    /// The deadline has passed, and a heartbeat was missed.
    Lost,
    /// The deadline has passed, although all heartbeats were in time.
    Overdue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    Wait,
    /// The worker has presumably crashed, so the check may be handed out again.
    Crash,
    Failure(Failed),
}

impl Lease {
    pub fn begin(now: Time, timeout: TimeDelta, heartbeat: Option<TimeDelta>) -> Self {
        let deadline = later(now, timeout);
        Self { leased_at: now, expires_at: heartbeat.map_or(deadline, |beat| later(now, beat).min(deadline)), deadline }
    }

    pub fn state(&self, now: Time) -> State {
        match () {
            () if now < self.expires_at => State::Live,
            () if now < self.deadline => State::Expired,
            () if self.expires_at < self.deadline => State::Lost,
            () => State::Overdue,
        }
    }

    pub fn counts(&self, now: Time) -> bool {
        now < self.deadline
    }

    /// Returns the lease with its new end, which is never before the old end. Returns `None` after the deadline.
    pub fn beat(&self, now: Time, heartbeat: Option<TimeDelta>) -> Option<Self> {
        let until = |beat| later(now, beat).min(self.deadline).max(self.expires_at);
        self.counts(now).then(|| Self { expires_at: heartbeat.map_or(self.expires_at, until), ..*self })
    }

    pub fn unanswered(&self, delivery: Delivery, now: Time) -> Unanswered {
        let once = delivery == Delivery::AtMostOnce;
        let failure = Failed { timed_out: true, is_final: once, ..Failed::default() };
        match self.state(now) {
            State::Live => Unanswered::Wait,
            State::Expired | State::Lost if !once => Unanswered::Crash,
            _ => Unanswered::Failure(failure),
        }
    }
}

#[cfg(test)]
mod tests;
