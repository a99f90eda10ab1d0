//! The six fields of a cron expression. Every number is below 64, so that a set fits into 64 bits.

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) low: u32,
    pub(super) high: u32,
    /// The largest number of the field. For weekdays, this is 6, because 7 is a second name of 0.
    pub(super) last: u32,
    pub(super) names: &'static [&'static str],
}

impl Field {
    pub(super) fn most_step(&self) -> u32 {
        self.last - self.low + 1
    }

    pub(super) fn all(&self) -> u64 {
        (self.low..=self.last).fold(0, |bits, value| bits | 1 << value)
    }
}

const fn numbers(name: &'static str, low: u32, high: u32) -> Field {
    Field { name, low, high, last: high, names: &[] }
}

pub(super) static SECOND: Field = numbers("second", 0, 59);
pub(super) static MINUTE: Field = numbers("minute", 0, 59);
pub(super) static HOUR: Field = numbers("hour", 0, 23);
pub(super) static DAY: Field = numbers("day of month", 1, 31);
pub(super) static MONTH: Field = Field {
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    ..numbers("month", 1, 12)
};
pub(super) static WEEKDAY: Field =
    Field { last: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"], ..numbers("day of week", 0, 7) };
