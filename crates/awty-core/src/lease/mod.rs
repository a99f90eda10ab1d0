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

/// Range of the option `heartbeat`. A lease expires if it gets no heartbeat for the time of this option.
pub const HEARTBEAT: RangeInclusive<TimeDelta> = TimeDelta::seconds(1)..=TimeDelta::days(1);
/// An idle external worker asks again after at most this time, because it gets no notification of checks that become
/// due between two slots.
pub const LONGEST_WAIT: TimeDelta = TimeDelta::seconds(5);
/// The waits before retries vary by up to this many thousandths, so that calls are not all retried at once.
const SPREAD: u64 = 200;

labels! {
    /// How often awty may hand out the same check to external workers.
    Delivery for "delivery" {
        /// The check is handed out again until a worker answers.
        AtLeastOnce = "at_least_once",
        /// The check is handed out once, and again only if its worker reports that the work has not started.
        AtMostOnce = "at_most_once",
    }
}

labels! {
    /// Which leases awty keeps in the history of a check.
    KeepAttempts for "keep_attempts" {
        /// Every lease is kept in the history.
        All = "all",
        /// Only leases that ended with a problem are kept in the history.
        Problems = "problems",
        /// No lease is kept in the history.
        None = "none",
    }
}

impl KeepAttempts {
    /// Returns whether awty keeps a lease whose work succeeded (`ok`) or failed.
    pub fn keeps(self, ok: bool) -> bool {
        match self {
            Self::All => true,
            Self::Problems => !ok,
            Self::None => false,
        }
    }
}

/// The options of a job that concern external workers only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseOptions {
    /// A lease expires if its worker sends no heartbeat for this time. `None` means that the lease expires at its
    /// deadline.
    pub heartbeat: Option<TimeDelta>,
    /// How often awty may hand out the same check.
    pub delivery: Delivery,
    /// Which leases awty keeps in the history of a check.
    pub keep_attempts: KeepAttempts,
}

impl LeaseOptions {
    /// The default options of a job for external workers.
    pub const DEFAULTS: Self =
        Self { heartbeat: None, delivery: Delivery::AtLeastOnce, keep_attempts: KeepAttempts::All };

    /// Returns an error if an option is outside its allowed range.
    ///
    /// # Errors
    /// [`LimitError`] names the first such option.
    pub fn check(&self) -> Result<(), LimitError> {
        self.heartbeat.map_or(Ok(()), |heartbeat| Limits::check_time("heartbeat", heartbeat, &HEARTBEAT))
    }

    /// Returns how a reported failure affects the check. The number `chance` varies the wait before the retry. A job
    /// with `at_most_once` ignores the reported `retry_at`, so that the failure does not delay the next occurrence.
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

/// An external worker's right to work on one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Time at which the worker got the check.
    pub leased_at: Time,
    /// Time until which no other worker gets the check. A heartbeat moves this time.
    pub expires_at: Time,
    /// Time after which the worker's answer is refused.
    pub deadline: Time,
}

/// Whether the worker of a lease still has the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The worker has the check.
    Live,
    /// The worker's heartbeat is overdue. awty still accepts its answer unless another worker has got the check.
    Expired,
    /// The deadline has passed, and the worker has missed its heartbeat.
    Lost,
    /// The deadline has passed, although the worker's heartbeats were in time.
    Overdue,
}

/// What happens to a check whose external worker has not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// Nothing happens yet, because the worker still has the check.
    Wait,
    /// The worker is assumed to have crashed, and the check can be handed out again.
    Crash,
    /// The missing answer counts as a failed run.
    Failure(Failed),
}

impl Lease {
    /// Returns a new lease that begins at `now`.
    pub fn begin(now: Time, timeout: TimeDelta, heartbeat: Option<TimeDelta>) -> Self {
        let deadline = later(now, timeout);
        Self { leased_at: now, expires_at: heartbeat.map_or(deadline, |beat| later(now, beat).min(deadline)), deadline }
    }

    /// Returns whether the worker still has the check at `now`.
    pub fn state(&self, now: Time) -> State {
        match () {
            () if now < self.expires_at => State::Live,
            () if now < self.deadline => State::Expired,
            () if self.expires_at < self.deadline => State::Lost,
            () => State::Overdue,
        }
    }

    /// Returns whether awty accepts an answer that arrives at `now`.
    pub fn counts(&self, now: Time) -> bool {
        now < self.deadline
    }

    /// Returns the lease after a heartbeat. A heartbeat never shortens a lease. Returns `None` after the deadline.
    pub fn beat(&self, now: Time, heartbeat: Option<TimeDelta>) -> Option<Self> {
        let until = |beat| later(now, beat).min(self.deadline).max(self.expires_at);
        self.counts(now).then(|| Self { expires_at: heartbeat.map_or(self.expires_at, until), ..*self })
    }

    /// Decides what happens to the check if its worker has not answered. A job with `at_most_once` never hands out the
    /// check again, so the check ends.
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

/// The work of an external worker's jobs that is due now or later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Whether there is a due check that no other worker has.
    pub is_due: bool,
    /// The next slot of a pending check.
    pub slot: Option<Time>,
    /// Time at which the next lease of another worker expires.
    pub expiry: Option<Time>,
}

/// Returns how long an external worker should wait before it claims again.
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
