//! Leases: the right of a worker outside to one check, until a moment.
//!
//! Invariant: `leased_at` ≤ `expires_at` ≤ `deadline`, and nothing moves the deadline. A lease that is live is nobody else's.
//!
//! Does not: know who has a lease, or look for checks.

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

/// `heartbeat`, where it is set: after so long without a sign of life a lease expires.
pub const HEARTBEAT: RangeInclusive<TimeDelta> = TimeDelta::seconds(1)..=TimeDelta::days(1);
/// An idle worker asks again after this at the latest, because what becomes due between two slots is announced to nobody outside.
pub const LONGEST_WAIT: TimeDelta = TimeDelta::seconds(5);
/// The wait before a retry is up to so many thousandths longer or shorter.
const SPREAD: u64 = 200;

labels! {
    /// How often a check may be handed out.
    Delivery for "delivery" {
        /// Again, until it is answered.
        AtLeastOnce = "at_least_once",
        /// Once, and again only if nothing has left the worker.
        AtMostOnce = "at_most_once",
    }
}

labels! {
    /// Which ended leases are kept.
    KeepAttempts for "keep_attempts" {
        /// All of them.
        All = "all",
        /// Those that did not end well.
        Problems = "problems",
        /// None of them.
        None = "none",
    }
}

impl KeepAttempts {
    /// Is a lease kept that ended so?
    pub fn keeps(self, ok: bool) -> bool {
        match self {
            Self::All => true,
            Self::Problems => !ok,
            Self::None => false,
        }
    }
}

/// The options that only jobs of workers outside have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// A lease expires so long after the last sign of life; `None`: at its deadline.
    pub heartbeat: Option<TimeDelta>,
    /// How often a check may be handed out.
    pub delivery: Delivery,
    /// Which ended leases are kept.
    pub keep_attempts: KeepAttempts,
}

impl Terms {
    /// Each option at its default.
    pub const DEFAULTS: Self =
        Self { heartbeat: None, delivery: Delivery::AtLeastOnce, keep_attempts: KeepAttempts::All };

    /// Whether every option is within its range.
    ///
    /// # Errors
    /// The first one that is not.
    pub fn check(&self) -> Result<(), LimitError> {
        self.heartbeat.map_or(Ok(()), |heartbeat| Limits::check_time("heartbeat", heartbeat, &HEARTBEAT))
    }

    /// What a reported failure asks for. `chance` is any number, by which waits are spread. A retry that must not be puts off no
    /// occurrence after it.
    pub fn reported(&self, retry_at: Option<Time>, is_final: bool, not_started: bool, chance: u64) -> Failed {
        let is_once = self.delivery == Delivery::AtMostOnce && !not_started;
        let retry_at = retry_at.filter(|_| is_final || !is_once);
        let is_final = is_final || is_once;
        Failed { timed_out: false, is_final, retry_at, spread: spread(chance) }
    }
}

/// A number of thousandths within ± [`SPREAD`].
fn spread(chance: u64) -> i32 {
    let mixed = (chance ^ (chance >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (mixed % (2 * SPREAD + 1)) as i32 - SPREAD as i32
}

/// The right to one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// When it was given.
    pub leased_at: Time,
    /// Until then nobody else gets the check.
    pub expires_at: Time,
    /// From then on it is void, whatever happens.
    pub deadline: Time,
}

/// Where a lease stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Its worker works.
    Live,
    /// No heartbeat came in time. An answer still counts, until somebody else gets the check.
    Expired,
    /// The same, and its deadline has passed.
    Lost,
    /// Its deadline has passed, and it was never without a heartbeat.
    Overdue,
}

/// What becomes of a check whose lease was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// Nothing yet.
    Wait,
    /// A crash of the worker: the check is due as before.
    Crash,
    /// A failure.
    Failure(Failed),
}

impl Lease {
    /// A lease from now on.
    pub fn begin(now: Time, timeout: TimeDelta, heartbeat: Option<TimeDelta>) -> Self {
        let deadline = later(now, timeout);
        Self { leased_at: now, expires_at: heartbeat.map_or(deadline, |beat| later(now, beat).min(deadline)), deadline }
    }

    /// Where it stands.
    pub fn state(&self, now: Time) -> State {
        match () {
            () if now < self.expires_at => State::Live,
            () if now < self.deadline => State::Expired,
            () if self.expires_at < self.deadline => State::Lost,
            () => State::Overdue,
        }
    }

    /// Does an answer that comes now count?
    pub fn counts(&self, now: Time) -> bool {
        now < self.deadline
    }

    /// The lease after a heartbeat; `None` if it is void. It never becomes shorter.
    pub fn beat(&self, now: Time, heartbeat: Option<TimeDelta>) -> Option<Self> {
        let until = |beat| later(now, beat).min(self.deadline).max(self.expires_at);
        self.counts(now).then(|| Self { expires_at: heartbeat.map_or(self.expires_at, until), ..*self })
    }

    /// What becomes of its check when somebody else wants it, or its time is over. One that may be handed out once only ends.
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

/// What a worker may find of its jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Something is due that nobody has a live lease of.
    pub is_due: bool,
    /// The next slot at which something is pending.
    pub slot: Option<Time>,
    /// The next end of a lease.
    pub expiry: Option<Time>,
}

/// How long there will be nothing to claim.
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
