//! Leases: an external worker's right to one check, for a limited time.
//!
//! Invariant: `leased_at` ≤ `expires_at` ≤ `deadline`, and the deadline never moves. While a lease is live, no other
//! worker has its check.

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

/// `heartbeat`, if set: a lease expires after this time without a heartbeat.
pub const HEARTBEAT: RangeInclusive<TimeDelta> = TimeDelta::seconds(1)..=TimeDelta::days(1);
/// The longest wait of an idle worker, because no notification tells it of checks that become due between two slots.
pub const LONGEST_WAIT: TimeDelta = TimeDelta::seconds(5);
/// Spread of the waits before a retry, in thousandths.
const SPREAD: u64 = 200;

labels! {
    /// How often a check may be handed out.
    Delivery for "delivery" {
        /// Hands out the check again until a worker answers.
        AtLeastOnce = "at_least_once",
        /// Once, and again only if nothing has left the worker.
        AtMostOnce = "at_most_once",
    }
}

labels! {
    /// Which ended leases are kept.
    KeepAttempts for "keep_attempts" {
        /// All.
        All = "all",
        /// Leases that ended with a problem.
        Problems = "problems",
        /// None.
        None = "none",
    }
}

impl KeepAttempts {
    /// Whether a lease with this result is kept.
    pub fn keeps(self, ok: bool) -> bool {
        match self {
            Self::All => true,
            Self::Problems => !ok,
            Self::None => false,
        }
    }
}

/// The options that only jobs for external workers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseOptions {
    /// A lease expires this long after the last heartbeat; `None` for its deadline.
    pub heartbeat: Option<TimeDelta>,
    /// How often a check may be handed out.
    pub delivery: Delivery,
    /// Which ended leases are kept.
    pub keep_attempts: KeepAttempts,
}

impl LeaseOptions {
    /// The defaults.
    pub const DEFAULTS: Self =
        Self { heartbeat: None, delivery: Delivery::AtLeastOnce, keep_attempts: KeepAttempts::All };

    /// Checks that every option is within its range.
    ///
    /// # Errors
    /// The first option outside its range.
    pub fn check(&self) -> Result<(), LimitError> {
        self.heartbeat.map_or(Ok(()), |heartbeat| Limits::check_time("heartbeat", heartbeat, &HEARTBEAT))
    }

    /// Returns what a reported failure requests. `chance` is any number that spreads the waits. A job that delivers at
    /// most once drops the requested retry, so that the retry does not delay the next occurrence.
    pub fn reported(&self, retry_at: Option<Time>, is_final: bool, not_started: bool, chance: u64) -> Failed {
        let is_once = self.delivery == Delivery::AtMostOnce && !not_started;
        let retry_at = retry_at.filter(|_| is_final || !is_once);
        let is_final = is_final || is_once;
        Failed { timed_out: false, is_final, retry_at, spread: spread(chance) }
    }
}

/// Returns a number of thousandths within ± [`SPREAD`].
fn spread(chance: u64) -> i32 {
    let mixed = (chance ^ (chance >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (mixed % (2 * SPREAD + 1)) as i32 - SPREAD as i32
}

/// The right to one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// When the lease began.
    pub leased_at: Time,
    /// Time until which no other worker gets the check.
    pub expires_at: Time,
    /// When the lease becomes void.
    pub deadline: Time,
}

/// State of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The worker is working.
    Live,
    /// The heartbeat is overdue. An answer still counts, until another worker gets the check.
    Expired,
    /// The heartbeat was overdue, and the deadline has passed.
    Lost,
    /// The deadline has passed, and the heartbeats were in time.
    Overdue,
}

/// What happens to a check whose lease was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// Nothing yet.
    Wait,
    /// The worker crashed, and the check is due as before.
    Crash,
    /// The run failed.
    Failure(Failed),
}

impl Lease {
    /// Begins a lease at `now`.
    pub fn begin(now: Time, timeout: TimeDelta, heartbeat: Option<TimeDelta>) -> Self {
        let deadline = later(now, timeout);
        Self { leased_at: now, expires_at: heartbeat.map_or(deadline, |beat| later(now, beat).min(deadline)), deadline }
    }

    /// Returns the state at `now`.
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

    /// Returns the lease after a heartbeat, which never shortens it; `None` if the lease is void.
    pub fn beat(&self, now: Time, heartbeat: Option<TimeDelta>) -> Option<Self> {
        let until = |beat| later(now, beat).min(self.deadline).max(self.expires_at);
        self.counts(now).then(|| Self { expires_at: heartbeat.map_or(self.expires_at, until), ..*self })
    }

    /// Decides about the check if another worker wants it, or the lease is over. With `at_most_once`, the check only
    /// ends.
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

/// Due and coming work of a worker's jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// A check is due and has no live lease.
    pub is_due: bool,
    /// The next slot with a pending check.
    pub slot: Option<Time>,
    /// The next end of a lease.
    pub expiry: Option<Time>,
}

/// Returns how long there will be nothing to claim.
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
