//! Converts times in UTC to local times of a time zone, and back.
//!
//! Invariant: a later local time never gives an earlier time. A skipped local time means the end of the gap. A repeated
//! local time means its first occurrence. The caller passes PostgreSQL's zone data, because a second copy may differ.

use super::civil::SECOND;
use super::steps::step;

pub(crate) const REACH: i64 = 26 * 3600 * SECOND;

/// A period in which the offset from UTC does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Seconds by which local time is ahead of UTC.
    pub offset: i32,
    pub until: i64,
}

impl Span {
    pub(crate) fn shift(self) -> i64 {
        i64::from(self.offset) * SECOND
    }
}

pub trait Zone {
    fn span_at(&self, t: i64) -> Span;
}

impl<Z: Zone + ?Sized> Zone for &Z {
    fn span_at(&self, t: i64) -> Span {
        (**self).span_at(t)
    }
}

impl<Z: Zone + ?Sized> Zone for std::rc::Rc<Z> {
    fn span_at(&self, t: i64) -> Span {
        (**self).span_at(t)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fixed {
    pub offset: i32,
}

impl Fixed {
    pub const UTC: Fixed = Fixed { offset: 0 };
}

impl Zone for Fixed {
    fn span_at(&self, _: i64) -> Span {
        Span { offset: self.offset, until: i64::MAX }
    }
}

/// The returned period ends after `t`, so that a loop over periods always moves forward.
pub(crate) fn span_at(zone: &impl Zone, t: i64) -> Span {
    step();
    let span = zone.span_at(t);
    if span.until > t { span } else { Span { until: i64::MAX, ..span } }
}

pub(crate) fn shown_until(zone: &impl Zone, t: i64) -> i64 {
    let mut latest = i64::MIN;
    let mut span = span_at(zone, t.saturating_sub(REACH));
    while span.until <= t && span.until != i64::MAX {
        latest = latest.max((span.until - 1).saturating_add(span.shift()));
        span = span_at(zone, span.until);
    }
    latest.max(t.saturating_add(span.shift()))
}

pub(crate) fn first_shown(zone: &impl Zone, local: i64) -> i64 {
    let mut begin = local.saturating_sub(REACH);
    loop {
        let span = span_at(zone, begin);
        let t = local.saturating_sub(span.shift()).max(begin);
        if t < span.until || span.until == i64::MAX {
            return t;
        }
        begin = span.until;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repeat::Changes;
    use crate::repeat::civil::micros;
    use crate::testing::at;

    fn berlin() -> Changes {
        Changes::new(3600, vec![(at("2026-03-29T01:00:00Z"), 7200), (at("2026-10-25T01:00:00Z"), 3600)])
    }

    fn local(text: &str) -> i64 {
        micros(at(&format!("{text}Z")))
    }

    fn shown_at(text: &str) -> i64 {
        first_shown(&berlin(), local(text))
    }

    #[test]
    fn a_time_that_exists_once_is_shown_once() {
        assert_eq!(shown_at("2026-03-29T01:59:59"), micros(at("2026-03-29T00:59:59Z")));
        assert_eq!(shown_at("2026-03-29T03:00:00"), micros(at("2026-03-29T01:00:00Z")));
        assert_eq!(shown_at("2026-07-01T12:00:00"), micros(at("2026-07-01T10:00:00Z")));
    }

    #[test]
    fn a_time_in_a_gap_is_shown_at_its_end() {
        for time in ["02:00:00", "02:30:00", "02:59:59.999999"] {
            assert_eq!(shown_at(&format!("2026-03-29T{time}")), micros(at("2026-03-29T01:00:00Z")), "{time}");
        }
    }

    #[test]
    fn a_time_in_a_fold_is_shown_the_first_time() {
        assert_eq!(shown_at("2026-10-25T02:00:00"), micros(at("2026-10-25T00:00:00Z")));
        assert_eq!(shown_at("2026-10-25T02:59:59"), micros(at("2026-10-25T00:59:59Z")));
        assert_eq!(shown_at("2026-10-25T03:00:00"), micros(at("2026-10-25T02:00:00Z")));
    }

    #[test]
    fn what_was_shown_does_not_go_back_in_a_fold() {
        let shown = |text| shown_until(&berlin(), micros(at(text)));
        assert_eq!(shown("2026-10-25T00:30:00Z"), local("2026-10-25T02:30:00"));
        assert_eq!(shown("2026-10-25T01:00:00Z"), local("2026-10-25T02:59:59.999999"));
        assert_eq!(shown("2026-10-25T01:59:59Z"), local("2026-10-25T02:59:59.999999"));
        assert_eq!(shown("2026-10-25T02:00:00Z"), local("2026-10-25T03:00:00"));
        assert_eq!(shown("2026-03-29T01:00:00Z"), local("2026-03-29T03:00:00"));
    }

    #[test]
    fn utc_shows_itself_to_the_ends_of_time() {
        for t in [i64::MIN, -1, 0, 1, i64::MAX - 1] {
            assert_eq!((shown_until(&Fixed::UTC, t), first_shown(&Fixed::UTC, t)), (t, t));
        }
    }

    #[test]
    fn a_zone_that_answers_nonsense_does_not_hang() {
        struct Stuck;
        impl Zone for Stuck {
            fn span_at(&self, t: i64) -> Span {
                Span { offset: i32::MAX, until: t }
            }
        }
        assert!(shown_until(&Stuck, 0) > 0);
        first_shown(&Stuck, i64::MAX);
    }
}
