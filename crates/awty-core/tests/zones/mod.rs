//! Reads time zones from the crate `chrono-tz`. Each lookup returns one offset and the time of the next change, as in
//! PostgreSQL.

use awty_core::Time;
use awty_core::repeat::{Remembered, Span, Zone};
use chrono::{NaiveDateTime, Offset, TimeZone};
use chrono_tz::Tz;

const SECOND: i64 = 1_000_000;
/// The data of `chrono-tz` end at this Unix time.
const LAST: i64 = 4_133_980_800;

#[derive(Clone, Copy, Debug)]
pub struct Real(pub Tz);

impl Real {
    fn offset(self, second: i64) -> i32 {
        let t = Time::from_timestamp(second, 0).map_or(NaiveDateTime::MAX, |t| t.naive_utc());
        self.0.offset_from_utc_datetime(&t).fix().local_minus_utc()
    }

    fn change_after(self, second: i64) -> Option<i64> {
        let offset = self.offset(second);
        let mut before = second;
        while self.offset(before + 86_400) == offset {
            before += 86_400;
            if before > LAST {
                return None;
            }
        }
        let mut after = before + 86_400;
        while after - before > 1 {
            let middle = before + (after - before) / 2;
            if self.offset(middle) == offset { before = middle } else { after = middle }
        }
        Some(after)
    }
}

impl Zone for Real {
    fn span_at(&self, t: i64) -> Span {
        let second = t.div_euclid(SECOND).clamp(-LAST, LAST);
        Span {
            offset: self.offset(second),
            until: self.change_after(second).map_or(i64::MAX, |change| change * SECOND),
        }
    }
}

pub fn tz(name: &str) -> Tz {
    name.parse().unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub fn zone(name: &str) -> Remembered<Real> {
    Remembered::new(Real(tz(name)))
}

pub fn at(text: &str) -> Time {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}
