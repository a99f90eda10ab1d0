use crate::label::labels;
use crate::{Time, Width, later};
use chrono::TimeDelta;
use std::fmt;
use std::ops::RangeInclusive;

/// `max_horizon` and `max_lateness` are at most a century, so that sums of times stay in range.
const CENTURY: TimeDelta = TimeDelta::days(36_525);

pub const TIMEOUT: RangeInclusive<TimeDelta> = TimeDelta::milliseconds(1)..=TimeDelta::days(1);
pub const MAX_CHECKS: RangeInclusive<u32> = 0..=1_000_000;
pub const MAX_HORIZON: RangeInclusive<TimeDelta> = TimeDelta::seconds(1)..=CENTURY;
pub const MAX_ATTEMPTS: RangeInclusive<u32> = 0..=1000;
pub const RETRY_AFTER: RangeInclusive<TimeDelta> = TimeDelta::milliseconds(1)..=TimeDelta::days(366);
pub const MAX_LATENESS: RangeInclusive<TimeDelta> = TimeDelta::microseconds(1)..=CENTURY;

labels! {
    /// What happens to a check that became due while no check could run.
    OnMissed for "on_missed" {
        /// A missed check runs once, late.
        Run = "run",
        /// A missed check moves to the next possible time.
        NextSlot = "next_slot",
        Skip = "skip",
    }
}

labels! {
    KeepHistory for "keep_history" {
        All = "all",
        Ran = "ran",
        Problems = "problems",
        None = "none",
    }
}

labels! {
    OnConflict for "on_conflict" {
        Replace = "replace",
        Keep = "keep",
        Earliest = "earliest",
        Latest = "latest",
        Error = "error",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    Replace,
    Keep,
    Refuse,
}

impl OnConflict {
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub width: Width,
    pub timeout: TimeDelta,
    /// 0 means no limit.
    pub max_checks: u32,
    pub max_horizon: TimeDelta,
    pub max_attempts: u32,
    pub retry_after: TimeDelta,
    pub on_missed: OnMissed,
    pub max_lateness: Option<TimeDelta>,
    pub keep_history: KeepHistory,
}

impl Limits {
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

    pub fn horizon(&self, now: Time) -> Time {
        later(now, self.max_horizon)
    }

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitError {
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

/// Displays a time in the largest unit that gives a whole number.
pub struct Shown(pub TimeDelta);

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
