//! A row's clock can be stopped. Each stop postpones the row's due times.
//!
//! Invariant: past stops are in order, do not overlap and are not empty.

use crate::Time;
use std::ops::Range;

/// Maximum number of stored past stops of a row's clock. After a further stop, awty joins the two oldest stops.
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

    /// Returns a copy without the present stop, so that only past stops affect the time of the row's next check.
    #[must_use]
    pub fn ended(&self) -> Self {
        Self { past: self.past.clone(), since: None }
    }

    pub fn begin(&mut self, at: Time, earliest: Time) {
        let last = self.past.last().map_or(Time::MIN_UTC, |stop| stop.end);
        self.since = self.since.or(Some(at.max(earliest).max(last)));
    }

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
    /// Time at which the row's clock stopped or started again.
    pub at: Time,
    /// Earliest possible start of a stop: the start of the row's clock or the last rise of the alert's level.
    pub earliest: Time,
}

impl Clock {
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
