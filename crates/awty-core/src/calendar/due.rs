use super::{Calendar, Length, end_of_search, start_of_search};
use crate::Time;
use crate::repeat::Zone;
use crate::repeat::civil::{micros, moment};

impl<Z: Zone> Calendar<Z> {
    /// Returns the time at which `length` of open time has passed since `since`, if the result is within
    /// [`super::REACH`].
    ///
    /// A length in days counts open days, and keeps the local time of day of the first open time.
    ///
    /// ```
    /// # use awty_core::Time;
    /// # use awty_core::calendar::{Calendar, Hours, Length};
    /// # use awty_core::repeat::Fixed;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let office = Calendar::new(Hours::new(["mon-fri 09:00-17:00"])?, vec![], Fixed::UTC);
    /// let friday = "2026-11-27T16:00:00Z".parse()?;
    /// assert_eq!(office.due(friday, Length::Days(2)), Some("2026-12-01T16:00:00Z".parse::<Time>()?));
    /// assert_eq!(office.due(friday, Length::Time(3_600_000_000)), Some("2026-11-27T17:00:00Z".parse::<Time>()?));
    /// # Ok(())
    /// # }
    /// ```
    pub fn due(&self, since: Time, length: Length) -> Option<Time> {
        let since = micros(since);
        let due = match length {
            Length::Time(time) => self.time_after(since, time)?,
            Length::Days(days) => {
                let first = self.local(self.open_from(since).next()?.start);
                let last = self.local(end_of_search(since)).day;
                let day = self.nth_open(first.day + 1..=last, days)?;
                self.at_or_after(super::days::LocalTime { day, ..first })?
            }
        };
        moment(due).filter(|_| due <= end_of_search(since))
    }

    /// Returns the time of a reminder, which is `length` before `due`.
    ///
    /// A length in hours counts only open time. A length in days counts only open days, and the result has the local
    /// time of day of `due`.
    pub fn before(&self, due: Time, length: Length) -> Option<Time> {
        let due = micros(due);
        let reminder = match length {
            Length::Time(time) => self.time_before(due, time)?,
            Length::Days(days) => {
                let last = self.local(due);
                let first = self.local(start_of_search(due)).day;
                let day = self.nth_open((first..last.day).rev(), days)?;
                self.at_or_before(super::days::LocalTime { day, ..last })?
            }
        };
        moment(reminder)
    }

    fn time_after(&self, since: i64, mut time: i64) -> Option<i64> {
        for period in self.open_from(since) {
            let length = period.end - period.start;
            if time <= length {
                return Some(period.start + time);
            }
            time -= length;
        }
        None
    }

    fn time_before(&self, due: i64, mut time: i64) -> Option<i64> {
        let clocks: Vec<_> = self.clocks(start_of_search(due)..due).collect();
        for period in clocks.into_iter().rev().flat_map(|clocks| self.open_by(clocks).rev()) {
            let length = period.end - period.start;
            if time <= length {
                return Some(period.end - time);
            }
            time -= length;
        }
        None
    }

    fn nth_open(&self, mut days: impl Iterator<Item = i64>, number: u32) -> Option<i64> {
        let mut left = number;
        days.find(|&day| {
            left -= u32::from(self.is_open_day(day));
            left == 0
        })
    }
}
