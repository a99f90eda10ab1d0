use super::REACH;
use crate::repeat::Zone;
use crate::repeat::local_time::span_at;
use crate::{Time, later};
use sha2::{Digest, Sha256};

/// Hashes the zone's offsets in the ten years ([`REACH`]) after `from`. A changed hash shows that the time zone data
/// have changed.
pub fn hash(zone: &impl Zone, from: Time) -> i64 {
    let mut hash = Sha256::new();
    let (mut t, end) = (from.timestamp_micros(), later(from, REACH).timestamp_micros());
    let mut offset = None;
    while t < end {
        let span = span_at(zone, t);
        if offset != Some(span.offset) {
            hash.update(t.to_be_bytes());
            hash.update(span.offset.to_be_bytes());
            offset = Some(span.offset);
        }
        t = span.until;
    }
    let hash = hash.finalize();
    i64::from_be_bytes(std::array::from_fn(|byte| hash[byte]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repeat::{Fixed, Span};
    use crate::testing::clock;

    struct Changing {
        at: i64,
        divided: i64,
    }

    impl Zone for Changing {
        fn span_at(&self, t: i64) -> Span {
            let until = [self.at, self.divided].into_iter().filter(|boundary| *boundary > t).min();
            Span { offset: if t < self.at { 3600 } else { 7200 }, until: until.unwrap_or(i64::MAX) }
        }
    }

    #[test]
    fn only_changes_of_the_offset_within_ten_years_count() {
        let from = clock("10:00:00");
        let at = |days: i64| (from + chrono::TimeDelta::days(days)).timestamp_micros();
        let of = |days, divided| hash(&Changing { at: at(days), divided: at(divided) }, from);
        assert_eq!(of(100, 200), of(100, 300));
        assert_ne!(of(100, 200), of(101, 200));
        assert_eq!(of(3653, 200), of(5000, 200), "both are too far ahead");
        assert_ne!(of(3652, 200), of(5000, 200));
        assert_ne!(hash(&Fixed::UTC, from), hash(&Fixed { offset: 3600 }, from));
        assert_eq!(hash(&Fixed { offset: 3600 }, from), of(5000, 200));
    }
}
