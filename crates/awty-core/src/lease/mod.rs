//! A lease is an external worker's right to work on one check for a limited time.
//!
//! Invariant: `leased_at` ≤ `expires_at` ≤ `deadline`, and the deadline never moves. While a lease is live, no other
//! worker gets its check.

pub mod breaker;
pub mod key;
pub mod lock;
pub mod order;
pub mod target;
pub mod tokens;

use crate::label::labels;
use crate::limits::{LimitError, Limits};
use crate::policy::Failed;
use crate::{Time, Width, later};
use chrono::TimeDelta;
use std::ops::RangeInclusive;

/// Range of the option `heartbeat`.
pub const HEARTBEAT: RangeInclusive<TimeDelta> = TimeDelta::seconds(1)..=TimeDelta::days(1);
/// Longest wait of an idle external worker, because nothing notifies it of checks that become due between slots.
pub const LONGEST_WAIT: TimeDelta = TimeDelta::seconds(5);
/// Largest change of a retry's wait, in thousandths.
const SPREAD: u64 = 200;

labels! {
    /// How often awty may hand out the same check.
    Delivery for "delivery" {
        /// awty hands out the check until a worker answers.
        AtLeastOnce = "at_least_once",
        /// awty hands out the check once, unless the worker reports that it has not started the work.
        AtMostOnce = "at_most_once",
    }
}

labels! {
    /// Which ended leases go to the history.
    KeepAttempts for "keep_attempts" {
        /// All leases go to the history.
        All = "all",
        /// Only leases that ended with a problem go to the history.
        Problems = "problems",
        /// No lease goes to the history.
        None = "none",
    }
}

impl KeepAttempts {
    /// Whether the history keeps a lease. `ok` says whether the lease's work succeeded.
    pub fn keeps(self, ok: bool) -> bool {
        match self {
            Self::All => true,
            Self::Problems => !ok,
            Self::None => false,
        }
    }
}

/// The options of a job for external workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseOptions {
    /// A lease expires after this time without a heartbeat. `None` leaves only the deadline.
    pub heartbeat: Option<TimeDelta>,
    /// How often awty may hand out a check.
    pub delivery: Delivery,
    /// Which ended leases go to the history.
    pub keep_attempts: KeepAttempts,
}

impl LeaseOptions {
    /// The options of a job that sets none.
    pub const DEFAULTS: Self =
        Self { heartbeat: None, delivery: Delivery::AtLeastOnce, keep_attempts: KeepAttempts::All };

    /// Returns an error for an option outside its range.
    pub fn check(&self) -> Result<(), LimitError> {
        self.heartbeat.map_or(Ok(()), |heartbeat| Limits::check_time("heartbeat", heartbeat, &HEARTBEAT))
    }

    /// Converts a worker's report of a failure. `chance` varies the wait before the retry. If only `at_most_once` makes
    /// the failure final, `retry_at` is ignored, so that it does not delay the next occurrence.
    pub fn reported(&self, retry_at: Option<Time>, is_final: bool, not_started: bool, chance: u64) -> Failed {
        let is_once = self.delivery == Delivery::AtMostOnce && !not_started;
        let retry_at = retry_at.filter(|_| is_final || !is_once);
        let is_final = is_final || is_once;
        Failed { timed_out: false, is_final, retry_at, spread: spread(chance) }
    }
}

fn spread(chance: u64) -> i32 {
    let mixed = (chance ^ (chance >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (mixed % (2 * SPREAD + 1)) as i32 - SPREAD as i32
}

/// An external worker's right to one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// When the worker got the check.
    pub leased_at: Time,
    /// No other worker gets the check before this time. A heartbeat postpones this time.
    pub expires_at: Time,
    /// awty refuses an answer from this time on.
    pub deadline: Time,
}

/// Whether a worker still has its check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The worker has the check.
    Live,
    /// A heartbeat is overdue. An answer still counts unless another worker has got the check.
    Expired,
    /// The deadline has passed, and a heartbeat was missed.
    Lost,
    /// The deadline has passed, although all heartbeats were in time.
    Overdue,
}

/// What happens to a check without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// The worker may still answer.
    Wait,
    /// The worker has presumably crashed, so awty may hand out the check again.
    Crash,
    /// The check's run failed.
    Failure(Failed),
}

impl Lease {
    /// Returns a lease that begins now.
    pub fn begin(now: Time, timeout: TimeDelta, heartbeat: Option<TimeDelta>) -> Self {
        let deadline = later(now, timeout);
        Self { leased_at: now, expires_at: heartbeat.map_or(deadline, |beat| later(now, beat).min(deadline)), deadline }
    }

    /// Whether the worker has the check at `now`.
    pub fn state(&self, now: Time) -> State {
        match () {
            () if now < self.expires_at => State::Live,
            () if now < self.deadline => State::Expired,
            () if self.expires_at < self.deadline => State::Lost,
            () => State::Overdue,
        }
    }

    /// Whether an answer at `now` counts.
    pub fn counts(&self, now: Time) -> bool {
        now < self.deadline
    }

    /// Returns the lease after a heartbeat, or `None` after the deadline. A heartbeat never shortens a lease.
    pub fn beat(&self, now: Time, heartbeat: Option<TimeDelta>) -> Option<Self> {
        let until = |beat| later(now, beat).min(self.deadline).max(self.expires_at);
        self.counts(now).then(|| Self { expires_at: heartbeat.map_or(self.expires_at, until), ..*self })
    }

    /// Decides what happens to a check that its worker has not answered.
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

/// The next work of an external worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Whether a due check has no worker.
    pub is_due: bool,
    /// The next slot of a pending check.
    pub slot: Option<Time>,
    /// When the next lease of another worker expires.
    pub expiry: Option<Time>,
}

/// Returns how long an external worker should wait before its next claim.
pub fn wait(ahead: &Ahead, width: Width, now: Time) -> TimeDelta {
    if ahead.is_due {
        return TimeDelta::zero();
    }
    let most = later(now, LONGEST_WAIT.min(width.delta()));
    let first = [ahead.slot, ahead.expiry].into_iter().flatten().fold(most, Time::min);
    (first - now).max(TimeDelta::zero())
}

#[cfg(test)]
mod tests;
