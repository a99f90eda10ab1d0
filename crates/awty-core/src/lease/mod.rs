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
/// Longest wait of an idle external worker, because it gets no notification of checks that become due between two
/// slots.
pub const LONGEST_WAIT: TimeDelta = TimeDelta::seconds(5);
/// Largest variation of a retry's wait, in thousandths.
const SPREAD: u64 = 200;

labels! {
    /// How often awty may hand out the same check.
    Delivery for "delivery" {
        /// Again and again, until a worker answers.
        AtLeastOnce = "at_least_once",
        /// Only once, unless the worker reports that the work has not started.
        AtMostOnce = "at_most_once",
    }
}

labels! {
    /// Which leases go to the history.
    KeepAttempts for "keep_attempts" {
        /// Every lease.
        All = "all",
        /// Leases that ended with a problem.
        Problems = "problems",
        /// No lease.
        None = "none",
    }
}

impl KeepAttempts {
    /// Whether awty keeps a lease whose work succeeded (`ok`) or failed.
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
    /// Which leases go to the history.
    pub keep_attempts: KeepAttempts,
}

impl LeaseOptions {
    /// The defaults.
    pub const DEFAULTS: Self =
        Self { heartbeat: None, delivery: Delivery::AtLeastOnce, keep_attempts: KeepAttempts::All };

    /// Checks the ranges.
    ///
    /// # Errors
    /// [`LimitError`] names the first such option.
    pub fn check(&self) -> Result<(), LimitError> {
        self.heartbeat.map_or(Ok(()), |heartbeat| Limits::check_time("heartbeat", heartbeat, &HEARTBEAT))
    }

    /// Returns how a reported failure affects the check. `chance` varies the wait before the retry. With
    /// `at_most_once`, `retry_at` is ignored, so that the failure does not delay the next occurrence.
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

/// An external worker's right to a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// When the worker got the check.
    pub leased_at: Time,
    /// No other worker gets the check until this time. Heartbeats move this time.
    pub expires_at: Time,
    /// An answer is refused from this time on.
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
    /// Nothing yet.
    Wait,
    /// The worker has presumably crashed, and the check can be handed out again.
    Crash,
    /// The run failed.
    Failure(Failed),
}

impl Lease {
    /// A lease that begins now.
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

    /// Returns the lease after a heartbeat, which never shortens it, or `None` after the deadline.
    pub fn beat(&self, now: Time, heartbeat: Option<TimeDelta>) -> Option<Self> {
        let until = |beat| later(now, beat).min(self.deadline).max(self.expires_at);
        self.counts(now).then(|| Self { expires_at: heartbeat.map_or(self.expires_at, until), ..*self })
    }

    /// Decides what happens to a check that its worker has not answered. With `at_most_once`, an expired lease ends the
    /// check, which is not handed out again.
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
    /// Whether a check is due and no other worker has it.
    pub is_due: bool,
    /// The next slot of a pending check.
    pub slot: Option<Time>,
    /// When the next lease of another worker expires.
    pub expiry: Option<Time>,
}

/// How long an external worker should wait before its next claim.
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
