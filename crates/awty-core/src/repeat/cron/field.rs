//! The six fields of a cron expression: their ranges and names.
//!
//! Invariant: every number of a field is below 64, so a field's values fit into one word.
//!
//! Does not: read text.

/// One of the six.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// What messages call it.
    pub(super) name: &'static str,
    /// The least number that may be written.
    pub(super) low: u32,
    /// The greatest number that may be written.
    pub(super) high: u32,
    /// The greatest number that means something of its own: as a day of the week, 7 is 0 again.
    pub(super) last: u32,
    /// The names of its numbers, from `low` on.
    pub(super) names: &'static [&'static str],
}

impl Field {
    /// The longest step: all of the field, so that only the first value is left.
    pub(super) fn most_step(&self) -> u32 {
        self.last - self.low + 1
    }

    /// The bits of all its numbers.
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
