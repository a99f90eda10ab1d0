//! While a row is stopped, its clock does not run, and its due times move.
//!
//! Invariant: past stops are in order, do not overlap and are not empty.

use crate::Time;
use std::ops::Range;

/// With more past stops, the two oldest are joined.
pub const MAX_STOPS: usize = 1_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stops {
    past: Vec<Range<Time>>,
    since: Option<Time>,
}

impl Stops {
    pub const NONE: Stops = Stops { past: Vec::new(), since: None };

    pub fn never() -> &'static Self {
        static NEVER: Stops = Stops::NONE;
        &NEVER
    }

    pub fn new(past: Vec<Range<Time>>, since: Option<Time>) -> Self {
        Self { past, since }
    }

    pub fn past(&self) -> &[Range<Time>] {
        &self.past
    }

    pub fn since(&self) -> Option<Time> {
        self.since
    }

    /// A row that is stopped keeps its check at the time that its past stops give.
    #[must_use]
    pub fn ended(&self) -> Self {
        Self { past: self.past.clone(), since: None }
    }

    /// A stop begins not before `earliest` or the end of the last stop. A present stop continues.
    pub fn begin(&mut self, at: Time, earliest: Time) {
        let last = self.past.last().map_or(Time::MIN_UTC, |stop| stop.end);
        self.since = self.since.or(Some(at.max(earliest).max(last)));
    }

    /// A stop of a row's clock without length is forgotten.
    pub fn end(&mut self, at: Time) {
        let Some(since) = self.since.take().filter(|since| *since < at) else { return };
        match self.past.last_mut() {
            Some(last) if last.end == since => last.end = at,
            _ => self.past.push(since..at),
        }
        if self.past.len() > MAX_STOPS {
            let oldest = self.past.remove(0);
            self.past[0].start = oldest.start;
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    pub start: Time,
    pub stops: Stops,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub start: Time,
    pub is_stopped: bool,
    /// The time when a stop that is seen now began or ended.
    pub at: Time,
    /// A stop begins no earlier than the clock, or than the time at which the last level was raised.
    pub earliest: Time,
}

impl Clock {
    /// Stops belong to one start of a row's clock, so another start forgets them.
    pub fn seen(known: Option<&Clock>, seen: Seen) -> Clock {
        let same = known.filter(|known| known.start == seen.start);
        let mut stops = same.map_or(Stops::NONE, |known| known.stops.clone());
        if seen.is_stopped {
            stops.begin(seen.at, seen.earliest);
        } else {
            stops.end(seen.at);
        }
        Clock { start: seen.start, stops }
    }
}
