//! Slots are the boundaries in time at which checks run.
//!
//! Invariant: boundaries are aligned to UTC midnight, so daylight saving time moves no boundary. No check runs early,
//! because its due time is rounded up.

use crate::{Time, later};
use chrono::TimeDelta;
use std::fmt;

pub const DAY_SECONDS: u32 = 86_400;

/// The time between two slots: 1 second to 1 day, and a divisor of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Width {
    seconds: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WidthError {
    OutOfRange(i64),
    DoesNotDivideDay(u32),
}

impl fmt::Display for WidthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange(seconds) => write!(f, "slot of {seconds} s must be between 1 s and 1 day"),
            Self::DoesNotDivideDay(seconds) => write!(f, "slot of {seconds} s does not divide a day"),
        }
    }
}

impl std::error::Error for WidthError {}

impl Width {
    pub const MINUTE: Width = Width { seconds: 60 };

    pub fn new(seconds: i64) -> Result<Self, WidthError> {
        match u32::try_from(seconds) {
            Ok(width @ 1..=DAY_SECONDS) if DAY_SECONDS.is_multiple_of(width) => Ok(Self { seconds: width }),
            Ok(width @ 1..=DAY_SECONDS) => Err(WidthError::DoesNotDivideDay(width)),
            _ => Err(WidthError::OutOfRange(seconds)),
        }
    }

    pub const fn seconds(self) -> u32 {
        self.seconds
    }

    pub fn delta(self) -> TimeDelta {
        TimeDelta::seconds(i64::from(self.seconds))
    }

    pub const fn is_multiple_of(self, other: Width) -> bool {
        self.seconds.is_multiple_of(other.seconds)
    }

    pub fn floor(self, t: Time) -> Time {
        let second = t.timestamp();
        let boundary = second - second.rem_euclid(i64::from(self.seconds));
        Time::from_timestamp(boundary, 0).unwrap_or(Time::MIN_UTC)
    }

    /// Returns the first boundary at or after `t`, or [`Time::MAX_UTC`].
    pub fn round_up(self, t: Time) -> Time {
        let floor = self.floor(t);
        if floor == t { t } else { later(floor, self.delta()) }
    }

    /// Returns the first boundary after `t`, or [`Time::MAX_UTC`].
    pub fn after(self, t: Time) -> Time {
        later(self.floor(t), self.delta())
    }

    pub fn due(self, t: Time, now: Time) -> Time {
        if t >= now { self.round_up(t) } else { self.after(now) }
    }
}

/// Returns the longer of the job's slot width and the setting `awty.slot`, because the setting may have grown since the
/// job was defined.
pub fn effective(job: Option<Width>, server: Width) -> Width {
    job.map_or(server, |job| job.max(server))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, clock, width};

    #[test]
    fn a_width_is_one_second_to_one_day_and_divides_the_day() {
        assert_eq!(Width::new(1).map(Width::seconds), Ok(1));
        assert_eq!(Width::new(86_400).map(Width::seconds), Ok(86_400));
        for seconds in [0, -60, 86_401, i64::MAX, i64::MIN] {
            assert_eq!(Width::new(seconds), Err(WidthError::OutOfRange(seconds)));
        }
        assert_eq!(Width::new(7), Err(WidthError::DoesNotDivideDay(7)));
        assert_eq!(WidthError::OutOfRange(0).to_string(), "slot of 0 s must be between 1 s and 1 day");
        assert_eq!(WidthError::DoesNotDivideDay(7).to_string(), "slot of 7 s does not divide a day");
        assert_eq!(Width::MINUTE, width(60));
    }

    #[test]
    fn a_due_time_rounds_up_and_a_boundary_stays() {
        let quarter = width(900);
        assert_eq!(quarter.round_up(clock("13:05:00")), clock("13:15:00"));
        assert_eq!(quarter.round_up(clock("13:15:00")), clock("13:15:00"));
        assert_eq!(quarter.round_up(clock("13:15:00.000001")), clock("13:30:00"));
        assert_eq!(quarter.round_up(clock("13:15:00.000000001")), clock("13:30:00"));
        assert_eq!(quarter.after(clock("13:15:00")), clock("13:30:00"));
        assert_eq!(quarter.floor(clock("13:29:59.999999")), clock("13:15:00"));
    }

    #[test]
    fn boundaries_are_aligned_to_utc_midnight_also_before_1970() {
        assert_eq!(width(7200).round_up(at("1969-12-31T23:00:00Z")), at("1970-01-01T00:00:00Z"));
        assert_eq!(width(86_400).floor(at("1900-02-28T12:00:00.5Z")), at("1900-02-28T00:00:00Z"));
        assert_eq!(width(60).floor(at("1969-12-31T23:59:59.5Z")), at("1969-12-31T23:59:00Z"));
    }

    #[test]
    fn a_past_time_means_the_next_slot() {
        let now = clock("10:00:00");
        assert_eq!(width(60).due(clock("09:00:30"), now), clock("10:01:00"));
        assert_eq!(width(60).due(now, now), now);
        assert_eq!(width(60).due(clock("10:00:01"), now), clock("10:01:00"));
    }

    #[test]
    fn the_ends_of_time_saturate() {
        for seconds in [1, 60, 86_400] {
            assert_eq!(width(seconds).floor(Time::MIN_UTC), Time::MIN_UTC);
            assert_eq!(width(seconds).after(Time::MAX_UTC), Time::MAX_UTC);
            assert_eq!(width(seconds).round_up(Time::MAX_UTC), Time::MAX_UTC);
        }
    }

    #[test]
    fn the_coarser_width_counts() {
        assert_eq!(effective(None, width(60)), width(60));
        assert_eq!(effective(Some(width(900)), width(60)), width(900));
        assert_eq!(effective(Some(width(60)), width(900)), width(900));
        assert!(width(900).is_multiple_of(width(60)));
        assert!(!width(900).is_multiple_of(width(600)));
    }
}
