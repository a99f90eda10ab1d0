//! The options of a job, with their defaults and allowed ranges. The functions of this crate work with all options that
//! pass [`Limits::check`].

use crate::label::labels;
use crate::{Time, Width};
use chrono::TimeDelta;
use std::fmt;
use std::ops::RangeInclusive;

/// No option may reach further than a century, so that sums of times stay within range.
const CENTURY: TimeDelta = TimeDelta::days(36_525);

/// Range of the option `timeout`, which limits the duration of one run.
pub const TIMEOUT: RangeInclusive<TimeDelta> = TimeDelta::milliseconds(1)..=TimeDelta::days(1);
/// Range of the option `max_checks`, which limits how often a job may check one entity. 0 means no limit.
pub const MAX_CHECKS: RangeInclusive<u32> = 0..=1_000_000;
/// Range of the option `max_horizon`, which limits how far ahead a check may be scheduled.
pub const MAX_HORIZON: RangeInclusive<TimeDelta> = TimeDelta::seconds(1)..=CENTURY;
/// Range of the option `max_attempts`, which limits the failed runs in a row of a check. 0 means no limit.
pub const MAX_ATTEMPTS: RangeInclusive<u32> = 0..=1000;
/// Range of the option `retry_after`, the wait after a check's first failed run.
pub const RETRY_AFTER: RangeInclusive<TimeDelta> = TimeDelta::milliseconds(1)..=TimeDelta::days(366);
/// Range of the option `max_lateness`. A check that is later than this option ends instead of running.
pub const MAX_LATENESS: RangeInclusive<TimeDelta> = TimeDelta::microseconds(1)..=CENTURY;

/// Maximum of the arguments `jitter` and `catch_up` of a repetition.
pub const MAX_SHIFT: TimeDelta = TimeDelta::days(366);
/// Maximum number of moments that the SQL function `occurrences` returns.
pub const MAX_OCCURRENCES: u16 = 10_000;

labels! {
    /// What happens to a check whose slot passed while no check could run.
    OnMissed for "on_missed" {
        /// A check whose slot was missed runs once, late.
        Run = "run",
        /// A check whose slot was missed moves to the next slot.
        NextSlot = "next_slot",
        /// A check whose slot was missed ends with the outcome `missed`.
        Skip = "skip",
    }
}

labels! {
    /// Which finished checks awty writes to the history.
    KeepHistory for "keep_history" {
        /// Every finished check goes to the history.
        All = "all",
        /// Only checks that ran at least once go to the history.
        Ran = "ran",
        /// Only checks that ended with a problem go to the history.
        Problems = "problems",
        /// No check goes to the history.
        None = "none",
    }
}

labels! {
    /// What `awty.schedule` does if the job already has a pending check of the same entity.
    OnConflict for "on_conflict" {
        /// The new check replaces the pending check.
        Replace = "replace",
        /// The pending check stays, and no new check is made.
        Keep = "keep",
        /// The check with the earlier slot stays. If the slots are equal, the pending check stays.
        Earliest = "earliest",
        /// The check with the later slot stays. If the slots are equal, the pending check stays.
        Latest = "latest",
        /// `awty.schedule` raises an error.
        Error = "error",
    }
}

/// What happens to the pending check of an entity when a client schedules another check of that entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// The pending check ends with the outcome `replaced`.
    Replace,
    /// The pending check stays, and the new check is dropped.
    Keep,
    /// The pending check stays, and the client gets an error.
    Refuse,
}

impl OnConflict {
    /// Decides whether a new check at the slot `wanted` replaces the check at the slot `pending`.
    pub fn decide(self, pending: Time, wanted: Time) -> Conflict {
        let replace = match self {
            Self::Replace => true,
            Self::Keep => false,
            Self::Earliest => wanted < pending,
            Self::Latest => wanted > pending,
            Self::Error => return Conflict::Refuse,
        };
        if replace { Conflict::Replace } else { Conflict::Keep }
    }
}

/// The options of a job that decide when its checks run and how they end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The job's slot width, see [`crate::slot::effective`].
    pub width: Width,
    /// Maximum duration of one run. The allowed range is [`TIMEOUT`].
    pub timeout: TimeDelta,
    /// Maximum number of checks of one entity. The allowed range is [`MAX_CHECKS`]. 0 means no limit.
    pub max_checks: u32,
    /// How far ahead of now a check may be scheduled. The allowed range is [`MAX_HORIZON`].
    pub max_horizon: TimeDelta,
    /// Maximum number of failed runs of a check in a row. The allowed range is [`MAX_ATTEMPTS`]. 0 means no limit.
    pub max_attempts: u32,
    /// How long a check waits after its first failed run. The allowed range is [`RETRY_AFTER`].
    pub retry_after: TimeDelta,
    /// What happens to a check whose slot passed while it could not run.
    pub on_missed: OnMissed,
    /// A check that is later than this ends instead of running. The allowed range is [`MAX_LATENESS`]. `None` means no
    /// limit.
    pub max_lateness: Option<TimeDelta>,
    /// Which finished checks awty writes to the history.
    pub keep_history: KeepHistory,
}

impl Limits {
    /// Returns the default options of a job with this slot width.
    pub const fn defaults(width: Width) -> Self {
        Self {
            width,
            timeout: TimeDelta::seconds(30),
            max_checks: 5,
            max_horizon: TimeDelta::days(366),
            max_attempts: 3,
            retry_after: TimeDelta::minutes(1),
            on_missed: OnMissed::Run,
            max_lateness: None,
            keep_history: KeepHistory::All,
        }
    }

    /// Returns an error if an option is outside its allowed range.
    ///
    /// # Errors
    /// [`LimitError`] names the first such option.
    pub fn check(&self) -> Result<(), LimitError> {
        within("timeout", self.timeout, &TIMEOUT, Bounds::Time)?;
        within("max_checks", self.max_checks, &MAX_CHECKS, Bounds::Count)?;
        within("max_horizon", self.max_horizon, &MAX_HORIZON, Bounds::Time)?;
        within("max_attempts", self.max_attempts, &MAX_ATTEMPTS, Bounds::Count)?;
        within("retry_after", self.retry_after, &RETRY_AFTER, Bounds::Time)?;
        match self.max_lateness {
            Some(max_lateness) => within("max_lateness", max_lateness, &MAX_LATENESS, Bounds::Time),
            None => Ok(()),
        }
    }

    pub(crate) fn check_time(
        option: &'static str,
        value: TimeDelta,
        range: &RangeInclusive<TimeDelta>,
    ) -> Result<(), LimitError> {
        within(option, value, range, Bounds::Time)
    }
}

fn within<T: PartialOrd + Copy>(
    option: &'static str,
    value: T,
    range: &RangeInclusive<T>,
    bounds: fn(T, T) -> Bounds,
) -> Result<(), LimitError> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(LimitError { option, bounds: bounds(*range.start(), *range.end()) })
}

/// The error for an option outside its allowed range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitError {
    /// Name of the option that is out of range.
    pub option: &'static str,
    bounds: Bounds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bounds {
    Count(u32, u32),
    Time(TimeDelta, TimeDelta),
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "option \"{}\" must be between ", self.option)?;
        match self.bounds {
            Bounds::Count(low, high) => write!(f, "{low} and {high}"),
            Bounds::Time(low, high) => write!(f, "{} and {}", Shown(low), Shown(high)),
        }
    }
}

impl std::error::Error for LimitError {}

/// Writes a duration as PostgreSQL writes its settings, in the largest unit that gives a whole number.
pub struct Shown(
    /// The duration that the text shows.
    pub TimeDelta,
);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.num_microseconds().unwrap_or(i64::MAX);
        let units =
            [(86_400_000_000, "days"), (3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s"), (1_000, "ms")];
        match units.iter().find(|(size, _)| micros % size == 0) {
            Some((size, "days")) if micros == *size => f.write_str("1 day"),
            Some((size, unit)) => write!(f, "{} {unit}", micros / size),
            None => write!(f, "{micros} us"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{clock, limits};

    fn message(change: impl FnOnce(&mut Limits)) -> String {
        let mut limits = limits();
        change(&mut limits);
        limits.check().map_or_else(|error| error.to_string(), |()| "within its range".to_owned())
    }

    #[test]
    fn the_defaults_are_within_their_ranges() {
        assert_eq!(limits().check(), Ok(()));
    }

    #[test]
    fn an_option_outside_its_range_is_refused_with_its_name_and_range() {
        assert_eq!(message(|l| l.max_checks = u32::MAX), r#"option "max_checks" must be between 0 and 1000000"#);
        assert_eq!(message(|l| l.max_attempts = 1001), r#"option "max_attempts" must be between 0 and 1000"#);
        assert_eq!(message(|l| l.timeout = TimeDelta::zero()), r#"option "timeout" must be between 1 ms and 1 day"#);
        assert_eq!(
            message(|l| l.max_horizon = TimeDelta::days(36_526)),
            r#"option "max_horizon" must be between 1 s and 36525 days"#
        );
        assert_eq!(
            message(|l| l.retry_after = TimeDelta::microseconds(999)),
            r#"option "retry_after" must be between 1 ms and 366 days"#
        );
        assert_eq!(
            message(|l| l.max_lateness = Some(TimeDelta::zero())),
            r#"option "max_lateness" must be between 1 us and 36525 days"#
        );
    }

    #[test]
    fn the_ends_of_a_range_belong_to_it() {
        for (max_checks, max_attempts) in [(0, 0), (1_000_000, 1000)] {
            let mut limits = limits();
            (limits.max_checks, limits.max_attempts) = (max_checks, max_attempts);
            limits.timeout = TimeDelta::days(1);
            limits.max_lateness = Some(TimeDelta::microseconds(1));
            assert_eq!(limits.check(), Ok(()));
        }
    }

    #[test]
    fn a_conflict_is_decided_by_the_two_slots() {
        let (early, late) = (clock("10:00:00"), clock("11:00:00"));
        assert_eq!(OnConflict::Replace.decide(early, early), Conflict::Replace);
        assert_eq!(OnConflict::Keep.decide(late, early), Conflict::Keep);
        assert_eq!(OnConflict::Earliest.decide(late, early), Conflict::Replace);
        assert_eq!(OnConflict::Earliest.decide(early, late), Conflict::Keep);
        assert_eq!(OnConflict::Latest.decide(early, late), Conflict::Replace);
        assert_eq!(OnConflict::Latest.decide(late, early), Conflict::Keep);
        assert_eq!(OnConflict::Earliest.decide(early, early), Conflict::Keep);
        assert_eq!(OnConflict::Latest.decide(early, early), Conflict::Keep);
        assert_eq!(OnConflict::Error.decide(early, late), Conflict::Refuse);
    }
}
