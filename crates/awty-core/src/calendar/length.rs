use chrono::TimeDelta;
use std::fmt;

/// A length of time that counts only while a calendar is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    Days(u32),
    /// Number of microseconds of open time, at least 1.
    Time(i64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LengthError {
    argument: &'static str,
    fault: Fault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    NotPositive,
    Months,
    Mixed,
}

impl Length {
    pub fn new(argument: &'static str, months: i32, days: i32, micros: i64) -> Result<Self, LengthError> {
        let error = |fault| Err(LengthError { argument, fault });
        match (months, u32::try_from(days), micros) {
            (..0, ..) | (_, Err(_), _) | (_, _, ..0) | (0, Ok(0), 0) => error(Fault::NotPositive),
            (1.., ..) => error(Fault::Months),
            (0, Ok(0), micros) => Ok(Self::Time(micros)),
            (0, Ok(days), 0) => Ok(Self::Days(days)),
            (0, Ok(_), _) => error(Fault::Mixed),
        }
    }

    pub fn is_longer_than(self, max: TimeDelta) -> bool {
        match self {
            Self::Days(days) => TimeDelta::days(days.into()) > max,
            Self::Time(micros) => TimeDelta::microseconds(micros) > max,
        }
    }
}

impl LengthError {
    pub fn hint(&self) -> &'static str {
        match self.fault {
            Fault::Mixed => "Write open days as '2 days', or open hours as '20 hours'.",
            Fault::NotPositive | Fault::Months => "Write '8 hours' of open time, or '2 days' for open days.",
        }
    }
}

impl fmt::Display for LengthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let argument = self.argument;
        match self.fault {
            Fault::NotPositive => write!(f, "argument \"{argument}\" must be more than 0"),
            Fault::Months => write!(f, "argument \"{argument}\" cannot have months or years with a calendar"),
            Fault::Mixed => write!(f, "argument \"{argument}\" cannot have both days and hours with a calendar"),
        }
    }
}

impl std::error::Error for LengthError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_days_or_time() {
        let length = |months, days, micros| Length::new("within", months, days, micros);
        assert_eq!(length(0, 0, 1), Ok(Length::Time(1)));
        assert_eq!(length(0, 7, 0), Ok(Length::Days(7)));
        let message = |months, days, micros| length(months, days, micros).unwrap_err().to_string();
        let positive = r#"argument "within" must be more than 0"#;
        for (months, days, micros) in [(0, 0, 0), (-1, 2, 0), (0, -1, 0), (0, 0, -1), (0, 1, -1), (1, -1, 0)] {
            assert_eq!(message(months, days, micros), positive);
        }
        assert_eq!(message(0, 1, 1), r#"argument "within" cannot have both days and hours with a calendar"#);
        for (months, days, micros) in [(1, 0, 0), (12, 1, 1)] {
            let expected = r#"argument "within" cannot have months or years with a calendar"#;
            assert_eq!(message(months, days, micros), expected);
        }
    }

    #[test]
    fn days_and_time_have_the_same_maximum() {
        let day = TimeDelta::days(1).num_microseconds().unwrap();
        for (length, is_longer) in [(Length::Days(2), false), (Length::Days(3), true), (Length::Days(u32::MAX), true)] {
            assert_eq!(length.is_longer_than(TimeDelta::days(2)), is_longer);
        }
        for (micros, is_longer) in [(2 * day, false), (2 * day + 1, true), (i64::MAX, true)] {
            assert_eq!(Length::Time(micros).is_longer_than(TimeDelta::days(2)), is_longer);
        }
    }
}
