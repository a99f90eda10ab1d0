use super::Zone;
use super::civil::micros;
use super::local_time::Span;
use crate::Time;
use std::cell::RefCell;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    before: i32,
    changes: Vec<(i64, i32)>,
}

impl Changes {
    /// `before` is the zone's offset in seconds until the first change.
    pub fn new(before: i32, changes: Vec<(Time, i32)>) -> Self {
        let mut changes: Vec<_> = changes.into_iter().map(|(t, offset)| (micros(t), offset)).collect();
        changes.sort_by_key(|&(t, _)| t);
        Self { before, changes }
    }
}

impl Zone for Changes {
    fn span_at(&self, t: i64) -> Span {
        let passed = self.changes.partition_point(|&(change, _)| change <= t);
        let offset = if passed == 0 { self.before } else { self.changes[passed - 1].1 };
        Span { offset, until: self.changes.get(passed).map_or(i64::MAX, |&(change, _)| change) }
    }
}

/// Maximum number of periods in a cache, enough for five centuries.
pub const MOST: usize = 1024;

#[derive(Debug, Default)]
pub struct Remembered<Z> {
    zone: Z,
    known: RefCell<Vec<(i64, Span)>>,
}

impl<Z: Zone> Remembered<Z> {
    pub fn new(zone: Z) -> Self {
        Self { zone, known: RefCell::new(Vec::new()) }
    }
}

impl<Z: Zone> Zone for Remembered<Z> {
    fn span_at(&self, t: i64) -> Span {
        let next = {
            let known = self.known.borrow();
            let next = known.partition_point(|&(from, _)| from <= t);
            match known[..next].last() {
                Some(&(_, span)) if t < span.until => return span,
                _ => next,
            }
        };
        let span = self.zone.span_at(t);
        let mut known = self.known.borrow_mut();
        let full = known.len() >= MOST;
        match known.get_mut(next) {
            // The next entry ends when `span` ends, so both are the same period. The entry's start moves back to `t`.
            Some((from, later)) if later.until == span.until => (*from, *later) = (t, span),
            _ if full => *known = vec![(t, span)],
            _ => known.insert(next, (t, span)),
        }
        span
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;
    use std::cell::Cell;

    #[derive(Default)]
    struct Restless(Cell<u32>);

    impl Zone for Restless {
        fn span_at(&self, t: i64) -> Span {
            self.0.set(self.0.get() + 1);
            let number = t.div_euclid(1000);
            Span { offset: number as i32, until: (number + 1) * 1000 }
        }
    }

    #[test]
    fn a_change_holds_from_its_moment_on() {
        let zone = Changes::new(-60, vec![(at("2030-05-01T00:00:02Z"), 7), (at("2030-05-01T00:00:01Z"), 5)]);
        let span = |text| zone.span_at(micros(at(text)));
        assert_eq!(span("2000-01-01T00:00:00Z"), Span { offset: -60, until: micros(at("2030-05-01T00:00:01Z")) });
        assert_eq!(span("2030-05-01T00:00:01Z"), Span { offset: 5, until: micros(at("2030-05-01T00:00:02Z")) });
        assert_eq!(span("2030-05-01T00:00:02Z"), Span { offset: 7, until: i64::MAX });
        assert_eq!(Changes::new(3, vec![]).span_at(0), Span { offset: 3, until: i64::MAX });
    }

    #[test]
    fn a_zone_is_asked_once_for_each_span() {
        let zone = Remembered::new(Restless::default());
        for t in [2500, 2501, 2999, 500, 501, 3000, 3999, 2999, 999, 1000, 1999] {
            assert_eq!(zone.span_at(t), Restless::default().span_at(t), "{t}");
        }
        assert_eq!(zone.zone.0.get(), 4);
        for t in [2000, 2100, 2999] {
            assert_eq!(zone.span_at(t).offset, 2);
        }
        assert_eq!((zone.zone.0.get(), zone.known.borrow().len()), (5, 4));
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let zone = Remembered::new(Restless::default());
        for number in 0..3 * MOST as i64 {
            assert_eq!(zone.span_at(number * 1000).offset as i64, number);
            assert!(zone.known.borrow().len() <= MOST);
        }
    }
}
