use super::cron::Unreadable;
use super::every::EveryError;
use super::{Cron, Every, Rhythm};
use crate::Width;
use crate::argument_limits::{MAX_OCCURRENCES, MAX_RULE_LENGTH, MAX_SHIFT};
use crate::limits::Shown;
use chrono::TimeDelta;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepeatError {
    EveryOrCron {
        both: bool,
    },
    Unreadable(Unreadable),
    Every(EveryError),
    EveryTooLong,
    NeedsZone(String),
    NeverComes(String),
    NoneBeforeEnd(String),
    /// In the next ten years, the calendar is closed at every planned time.
    NeverOpen(String),
    TooClose {
        closest: TimeDelta,
        slot: Width,
    },
    EndsTooEarly,
    OutOfRange {
        argument: &'static str,
    },
    Max,
}

impl fmt::Display for RepeatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EveryOrCron { both: true } => f.write_str("arguments \"every\" and \"cron\" cannot be used together"),
            Self::EveryOrCron { both: false } => f.write_str("one of the arguments \"every\" and \"cron\" is required"),
            Self::Unreadable(error) => error.fmt(f),
            Self::Every(error) => error.fmt(f),
            Self::EveryTooLong => {
                write!(f, "argument \"every\" must not be longer than {}", Shown(MAX_RULE_LENGTH))
            }
            Self::NeedsZone(rhythm) => write!(f, "{rhythm} needs a time zone"),
            Self::NeverComes(rhythm) => write!(f, "{rhythm} never comes"),
            Self::NoneBeforeEnd(rhythm) => write!(f, "{rhythm} does not come before it ends"),
            Self::NeverOpen(rhythm) => {
                write!(f, "{rhythm} does not come in the open time of its calendar within ten years")
            }
            Self::TooClose { closest, slot } => write!(
                f,
                "moments {} apart are closer together than a slot of {}",
                Shown(*closest),
                Shown(slot.delta())
            ),
            Self::EndsTooEarly => f.write_str("argument \"ends\" must be after \"starts\" and after now"),
            Self::OutOfRange { argument } => {
                write!(f, "argument \"{argument}\" must be between 0 and {}", Shown(MAX_SHIFT))
            }
            Self::Max => write!(f, "argument \"max\" must be between 1 and {MAX_OCCURRENCES}"),
        }
    }
}

impl std::error::Error for RepeatError {}

impl From<Unreadable> for RepeatError {
    fn from(error: Unreadable) -> Self {
        Self::Unreadable(error)
    }
}

impl From<EveryError> for RepeatError {
    fn from(error: EveryError) -> Self {
        Self::Every(error)
    }
}

impl Rhythm {
    pub fn new(every: Option<(i32, i32, i64)>, cron: Option<&str>) -> Result<Self, RepeatError> {
        match (every, cron) {
            (Some((months, days, micros)), None) => Ok(Self::Every(Every::new(months, days, micros)?)),
            (None, Some(text)) => Ok(Self::Cron(Cron::new(text)?)),
            (every, _) => Err(RepeatError::EveryOrCron { both: every.is_some() }),
        }
    }

    pub fn without_zone(&self) -> Result<(), RepeatError> {
        if self.needs_zone() { Err(RepeatError::NeedsZone(self.to_string())) } else { Ok(()) }
    }
}

pub fn check_length(argument: &'static str, length: TimeDelta) -> Result<(), RepeatError> {
    if (TimeDelta::zero()..=MAX_SHIFT).contains(&length) { Ok(()) } else { Err(RepeatError::OutOfRange { argument }) }
}

/// `None` means that the period is too long for a [`TimeDelta`].
pub fn check_every(every: Option<TimeDelta>) -> Result<(), RepeatError> {
    if every.is_some_and(|every| every <= MAX_RULE_LENGTH) { Ok(()) } else { Err(RepeatError::EveryTooLong) }
}

pub fn check_max(max: i64) -> Result<usize, RepeatError> {
    match u16::try_from(max) {
        Ok(max @ 1..=MAX_OCCURRENCES) => Ok(usize::from(max)),
        _ => Err(RepeatError::Max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;
    use crate::repeat::{Fixed, Plan};
    use crate::testing::{at, width};

    fn cron(text: &str) -> Rhythm {
        Rhythm::new(None, Some(text)).unwrap()
    }

    fn refused(rhythm: Rhythm, starts: Option<Time>, ends: Option<Time>) -> String {
        let plan = Plan::new(rhythm, Fixed::UTC, starts, ends);
        plan.check(width(60), at("2026-11-22T12:00:00Z")).map_or_else(|error| error.to_string(), |()| "nothing".into())
    }

    #[test]
    fn one_of_every_and_cron_must_be_given() {
        let error = |every, cron| Rhythm::new(every, cron).unwrap_err().to_string();
        let both = error(Some((0, 1, 0)), Some("* * * * *"));
        assert_eq!(both, r#"arguments "every" and "cron" cannot be used together"#);
        assert_eq!(error(None, None), r#"one of the arguments "every" and "cron" is required"#);
        assert_eq!(error(Some((0, 0, 0)), None), r#"argument "every" must be more than 0"#);
        let mixed = r#"argument "every" must be either months and days or hours and smaller"#;
        assert_eq!(error(Some((0, 1, 1)), None), mixed);
        let unreadable = r#"cron expression "0 25 * * *" cannot be read: hour 25 is not between 0 and 23"#;
        assert_eq!(error(None, Some("0 25 * * *")), unreadable);
    }

    #[test]
    fn a_zone_is_needed_where_the_answer_depends_on_it() {
        for free in ["* * * * *", "0 * * * *", "*/15 * * * *", "*/10 * * * * *", "@hourly", "5 * * * *", "0 */1 * * *"]
        {
            assert_eq!(cron(free).without_zone(), Ok(()), "{free}");
        }
        for bound in ["0 9 * * *", "* */2 * * *", "0 * 1 * *", "0 * L * *", "* * * 1 *", "* * * * mon", "@daily"] {
            let message = format!("cron expression \"{bound}\" needs a time zone");
            assert_eq!(cron(bound).without_zone().unwrap_err().to_string(), message);
        }
        let every = |months, days, micros| Rhythm::new(Some((months, days, micros)), None).unwrap().without_zone();
        assert_eq!(every(0, 0, 86_400_000_000), Ok(()));
        assert_eq!(every(0, 1, 0).unwrap_err().to_string(), r#"every "1 day" needs a time zone"#);
    }

    #[test]
    fn what_never_comes_is_refused() {
        for never in ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "* * 30,31 feb */1"] {
            assert_eq!(refused(cron(never), None, None), format!("cron expression \"{never}\" never comes"));
        }
        // `0 0 30 2 mon` is accepted and means each Monday in February, because a day needs to match only one of `30`
        // and `mon`.
        assert_eq!(refused(cron("0 0 29 2 */7"), None, None), "nothing");
        assert_eq!(refused(cron("0 0 30 2 mon"), None, None), "nothing");
    }

    #[test]
    fn moments_closer_than_a_slot_are_refused() {
        let message = |closest| format!("moments {closest} apart are closer together than a slot of 1 min");
        assert_eq!(refused(cron("*/10 * * * * *"), None, None), message("10 s"));
        assert_eq!(refused(Rhythm::Every(Every::Clock(59_999_999)), None, None), message("59999999 us"));
        assert_eq!(refused(Rhythm::Every(Every::Clock(60_000_000)), None, None), "nothing");
        assert_eq!(refused(cron("7 * * * * *"), None, None), "nothing");
    }

    #[test]
    fn a_plan_ends_after_its_start_and_after_now() {
        let early = r#"argument "ends" must be after "starts" and after now"#;
        let (now, later) = (at("2026-11-22T12:00:00Z"), at("2027-01-01T00:00:00Z"));
        assert_eq!(refused(cron("* * * * *"), None, Some(now)), early);
        assert_eq!(refused(cron("* * * * *"), Some(later), Some(later)), early);
        assert_eq!(refused(cron("0 0 1 1 *"), None, Some(later)), "nothing");
        let before = later - TimeDelta::microseconds(1);
        let none = r#"cron expression "0 0 1 1 *" does not come before it ends"#;
        assert_eq!(refused(cron("0 0 1 1 *"), None, Some(before)), none);
    }

    #[test]
    fn a_period_is_at_most_a_century() {
        assert_eq!(check_every(Some(TimeDelta::days(36_525))), Ok(()));
        let error = check_every(Some(TimeDelta::days(36_525) + TimeDelta::microseconds(1))).unwrap_err();
        assert_eq!(error.to_string(), r#"argument "every" must not be longer than 36525 days"#);
        assert_eq!(check_every(None), Err(error));
    }

    #[test]
    fn jitter_and_catch_up_have_a_range() {
        assert_eq!(check_length("jitter", TimeDelta::zero()), Ok(()));
        assert_eq!(check_length("jitter", MAX_SHIFT), Ok(()));
        let error = check_length("catch_up", TimeDelta::microseconds(-1)).unwrap_err().to_string();
        assert_eq!(error, r#"argument "catch_up" must be between 0 and 366 days"#);
        assert!(check_length("jitter", MAX_SHIFT + TimeDelta::microseconds(1)).is_err());
        assert_eq!((check_max(1), check_max(10_000)), (Ok(1), Ok(10_000)));
        for max in [0, -1, 10_001, i64::MAX] {
            assert_eq!(check_max(max).unwrap_err().to_string(), r#"argument "max" must be between 1 and 10000"#);
        }
    }
}
