//! Stores when rows were stopped. The expression `stopped` of a rule says whether a row is stopped.
//!
//! Invariant: a row's stops are written only by the run of its check, or by a transaction that has locked this check. A
//! stop begins or ends at the start of the transaction that stops or continues the row.

use super::statements::rule_check;
use super::statements::stop::{self, Known, Stored};
use crate::error::{Error, Result, WatchError};
use crate::pg::clock;
use crate::pg::text::Text;
use crate::rule::Watched;
use crate::rule::statements::watched::{State, WatchedRow};
use awty_core::Time;
use awty_core::watch::{Clock, Seen, Stops};
use std::cell::Cell;
use std::collections::HashMap;

thread_local! {
    static OVERTAKEN: Cell<bool> = const { Cell::new(false) };
}

/// Returns the error for a run whose rows or alerts another transaction has changed or locked. The error rolls the run
/// back.
pub fn overtaken(watched: &Watched) -> Error {
    OVERTAKEN.set(true);
    WatchError::Changed { rule: watched.rule.name.to_string() }.into()
}

pub fn was_overtaken() -> bool {
    OVERTAKEN.take()
}

#[derive(Default)]
pub struct Clocks {
    known: HashMap<Text, Known>,
    now: HashMap<Text, Option<Clock>>,
    put: Vec<Stored>,
    removed: Vec<Text>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Seeing {
    Inserted,
    /// An UPDATE has changed the row's key. awty treats the row as new, and ignores when the clock was stopped before.
    Renamed,
    /// A stop of the watched row begins or ends at this time.
    Known(Time),
    /// A client updates a row that is older than the rule and that awty has not read yet. awty assumes that the row's
    /// clock stops or continues at the contained time.
    Unvisited(Time),
}

impl Clocks {
    /// Reads when the clocks of the given rows were stopped. A client must first lock the checks of these rows, so that
    /// no run changes the clocks.
    ///
    /// A run may read without locks, because [`Clocks::store_of_run`] fails if a client has changed a clock after the
    /// read.
    pub fn read(watched: &Watched, keys: &[Text]) -> Self {
        if watched.source.stopped.is_none() || keys.is_empty() {
            return Self::default();
        }
        let known = stop::read(&watched.rule.name, keys).into_iter().map(|known| (known.key.clone(), known)).collect();
        Self { known, ..Self::default() }
    }

    pub fn stops(&self, key: &Text) -> &Stops {
        let clock = match self.now.get(key) {
            Some(now) => now.as_ref(),
            None => self.known.get(key).and_then(|known| known.clock.as_ref()),
        };
        clock.map_or(Stops::never(), |clock| &clock.stops)
    }

    pub fn has(&self, key: &Text) -> bool {
        self.known.get(key).is_some_and(|known| known.clock.is_some())
    }

    pub fn start(&self, key: &Text) -> Option<Time> {
        let known = self.known.get(key)?;
        known.clock.as_ref().map(|clock| clock.start).or(known.alert_since)
    }

    /// The clock of a row without a value for `since` starts at `appeared`.
    pub fn see(&mut self, watched: &Watched, key: &Text, row: Option<&WatchedRow>, appeared: Time, seeing: Seeing) {
        if watched.source.stopped.is_none() {
            return;
        }
        let known = self.known.get(key);
        let stored = known.and_then(|known| known.clock.as_ref());
        let usable = stored.filter(|_| seeing != Seeing::Renamed);
        let now = match seeing {
            Seeing::Known(at) | Seeing::Unvisited(at) => at,
            Seeing::Inserted | Seeing::Renamed => transaction_start(),
        };
        let (clock, there_at) = match row.map(|row| (row.state, row.is_stopped)) {
            None | Some((State::NotStarted, _)) => (None, None),
            Some((State::Met, is_stopped)) => {
                let mut clock = usable.cloned();
                if let Some(clock) = clock.as_mut().filter(|_| !is_stopped) {
                    clock.stops.end(now);
                }
                (clock, known.and_then(|known| known.there_at).or(Some(now)))
            }
            Some((state, is_stopped)) => {
                let (start, since) = match state {
                    State::Waiting(start) if watched.rule.terms.due.is_some() => (start, None),
                    State::Waiting(start) => (start, Some(start)),
                    _ => (appeared, Some(appeared)),
                };
                let inserted_at = match state {
                    State::Waiting(_) => since.unwrap_or(now),
                    _ => now,
                };
                let raised_at = known.and_then(|known| known.raised_at);
                let earliest = since.into_iter().chain(raised_at).max().unwrap_or(Time::MIN_UTC);
                let seen = |clock: Option<&Clock>, is_stopped, at| {
                    Clock::seen(clock, Seen { start, is_stopped, at, earliest })
                };
                let clock = match seeing {
                    Seeing::Inserted | Seeing::Renamed => seen(usable, is_stopped, inserted_at),
                    // The UPDATE restarts the clock of a row that awty has not read before. awty assumes that the clock
                    // was stopped since the row's insertion.
                    Seeing::Unvisited(_) if !is_stopped => seen(Some(&seen(None, true, inserted_at)), false, now),
                    Seeing::Known(_) | Seeing::Unvisited(_) => seen(usable, is_stopped, now),
                };
                (Some(clock), None)
            }
        };
        let clock = clock.filter(|clock| clock.stops != Stops::NONE);
        match &clock {
            Some(clock) if stored != Some(clock) || known.and_then(|known| known.there_at) != there_at => {
                self.put.push((key.clone(), clock.clone(), there_at));
            }
            None if stored.is_some() => self.removed.push(key.clone()),
            _ => {}
        }
        self.now.insert(key.clone(), clock);
    }

    pub fn is_changed(&self) -> bool {
        !self.put.is_empty() || !self.removed.is_empty()
    }

    pub fn store(&self, watched: &Watched) {
        stop::put(&watched.rule.name, &self.put, true);
        if !self.removed.is_empty() {
            stop::remove(&watched.rule.name, &self.removed);
        }
    }

    /// The run must have locked its checks and alerts.
    ///
    /// # Errors
    ///
    /// Fails if a client has stored or locked one of the clocks since the run read it, so that the run is rolled
    /// back.
    pub fn store_of_run(&self, watched: &Watched, keys: &[Text]) -> Result<()> {
        if !self.overtaken(watched, keys).is_empty() {
            return Err(overtaken(watched));
        }
        self.store(watched);
        Ok(())
    }

    /// Stores the clocks of the visited rows. Skips a row whose stored clock a client has changed or locked since the
    /// walk read it.
    pub fn store_of_walk(&mut self, watched: &Watched) {
        if !self.is_changed() {
            return;
        }
        let keys: Vec<Text> = self.put.iter().map(|(key, ..)| key).chain(&self.removed).cloned().collect();
        rule_check::lock_free(&watched.rule, &keys);
        let overtaken = self.overtaken(watched, &keys);
        self.put.retain(|(key, ..)| !overtaken.contains(key));
        self.removed.retain(|key| !overtaken.contains(key));
        // Inserts new clocks without replacing stored ones. A row without a check is not locked here, so another
        // transaction may have stored a clock for the row.
        let (locked, new): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.put).into_iter().partition(|(key, ..)| self.has(key));
        stop::put(&watched.rule.name, &new, false);
        self.put = locked;
        self.store(watched);
    }

    fn overtaken(&self, watched: &Watched, keys: &[Text]) -> Vec<Text> {
        let name = &watched.rule.name;
        let locked = stop::lock_free(name, keys);
        let is_same = |now: &Known| {
            self.known.get(&now.key).is_some_and(|known| known.clock == now.clock)
                && (now.clock.is_none() || locked.contains(&now.key))
        };
        stop::read(name, keys).into_iter().filter(|now| !is_same(now)).map(|now| now.key).collect()
    }
}

pub fn forget_all(watched: &Watched) {
    stop::remove_all(&watched.rule.name);
}

pub fn transaction_start() -> Time {
    clock::clamped(clock::transaction_start())
}
