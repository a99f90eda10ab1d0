//! The circuit breaker of a target: after ten failures in a row it opens, and lets one call at a time through when it has been open for a
//! while.
//!
//! ```text
//! closed ── ten in a row over at least 10 s ──► open ── its time is over ──► half open ── an answer ──► closed
//!                                                ▲                              │
//!                                                └──── a failure: twice as long ┘
//! ```
//!
//! Invariant: a target is never shut out for longer than [`LONGEST`] at a time, also where the clock is set back.
//!
//! Does not: count a failure that says nothing about the target, or know what a call is.

use crate::{Time, later};
use chrono::TimeDelta;

/// So many failures in a row open it.
const ROW: u32 = 10;
/// If the first of them is so long ago.
const OVER: TimeDelta = TimeDelta::seconds(10);
/// It is open for so long the first time, and then twice as long each time.
const SHORTEST: TimeDelta = TimeDelta::seconds(30);
/// And for so long at most.
const LONGEST: TimeDelta = TimeDelta::minutes(15);
/// What has opened so far ahead of now has done so by a clock that was set back.
const FORGET: TimeDelta = TimeDelta::minutes(1);

/// What is remembered of a target that has failed last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breaker {
    /// Failures in a row.
    pub failures: u32,
    /// When the first of them was.
    pub since: Time,
    /// When it last opened.
    pub opened_at: Option<Time>,
    /// How often in a row it has opened.
    pub opens: u32,
}

/// What it lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// All calls.
    Closed,
    /// None until then.
    Open(Time),
    /// One at a time.
    HalfOpen,
}

impl Breaker {
    /// Where it stands.
    pub fn state(&self, now: Time) -> State {
        let Some(opened_at) = self.opened_at else { return State::Closed };
        let until = later(opened_at, self.wait());
        if now < until && opened_at - now <= FORGET { State::Open(until) } else { State::HalfOpen }
    }

    fn wait(&self) -> TimeDelta {
        SHORTEST.checked_mul(1 << self.opens.clamp(1, 20).saturating_sub(1)).unwrap_or(LONGEST).min(LONGEST)
    }

    /// It after a failure; `None` if that changes nothing.
    pub fn after_failure(before: Option<Self>, now: Time) -> Option<Self> {
        let Some(before) = before else { return Some(Self { failures: 1, since: now, opened_at: None, opens: 0 }) };
        let failures = before.failures.saturating_add(1);
        let since = before.since.min(now);
        match before.state(now) {
            // It was called before it opened.
            State::Open(_) => None,
            State::HalfOpen => {
                Some(Self { failures, since, opened_at: Some(now), opens: before.opens.saturating_add(1).min(1000) })
            }
            State::Closed if failures >= ROW && now - since >= OVER => {
                Some(Self { failures, since, opened_at: Some(now), opens: 1 })
            }
            State::Closed => Some(Self { failures, since, ..before }),
        }
    }

    /// Is it forgotten after an answer? One to a call from before it opened says nothing.
    pub fn ends_with_answer(&self, now: Time) -> bool {
        !matches!(self.state(now), State::Open(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::clock;
    use proptest::prelude::*;

    fn failed(times: u32, step: TimeDelta) -> (Breaker, Time) {
        let mut now = clock("10:00:00");
        let mut breaker = Breaker::after_failure(None, now).unwrap();
        for _ in 1..times {
            now += step;
            breaker = Breaker::after_failure(Some(breaker), now).unwrap();
        }
        (breaker, now)
    }

    #[test]
    fn ten_in_a_row_over_ten_seconds_open_it_and_fewer_or_faster_do_not() {
        let (nine, now) = failed(9, TimeDelta::seconds(2));
        assert_eq!(nine.state(now), State::Closed);
        let (fast, now) = failed(10, TimeDelta::seconds(1));
        assert_eq!(fast.state(now), State::Closed, "over nine seconds");
        let (ten, now) = failed(10, TimeDelta::seconds(2));
        assert_eq!(ten.state(now), State::Open(now + SHORTEST));
        assert!(nine.ends_with_answer(now) && !ten.ends_with_answer(now));
    }

    #[test]
    fn half_open_it_opens_for_twice_as_long_up_to_a_quarter_of_an_hour() {
        let (mut breaker, mut now) = failed(10, TimeDelta::seconds(2));
        for minutes_and_halves in [1, 2, 4, 8, 16, 30, 30, 30] {
            let State::Open(until) = breaker.state(now) else { panic!() };
            assert_eq!(until - now, SHORTEST * minutes_and_halves.min(30));
            assert_eq!(Breaker::after_failure(Some(breaker), until - TimeDelta::seconds(1)), None);
            assert_eq!(breaker.state(until), State::HalfOpen);
            assert!(breaker.ends_with_answer(until));
            now = until;
            breaker = Breaker::after_failure(Some(breaker), now).unwrap();
        }
    }

    proptest! {
        /// Whatever the clock does, it is never open for longer than that from now on.
        #[test]
        fn it_is_never_open_for_longer(jumps in prop::collection::vec(-10_000_i64..10_000, 1..100)) {
            let (mut breaker, mut now) = (None, clock("10:00:00"));
            for jump in jumps {
                now += TimeDelta::seconds(jump);
                breaker = Breaker::after_failure(breaker, now).or(breaker);
                if let Some(State::Open(until)) = breaker.map(|breaker| breaker.state(now)) {
                    prop_assert!(until - now <= LONGEST + FORGET);
                }
            }
        }
    }
}
