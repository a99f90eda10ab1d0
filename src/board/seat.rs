//! A worker's seat on the board, and the claims that go with it.
//!
//! A claim says: this worker runs this check. It is kept here and not in PostgreSQL's lock table because it has to outlive
//! the abort of a failed run (a session lock of the ordinary kind does not) and must not be released by a job's
//! `pg_advisory_unlock_all()` (one of the other kind would be). Like a lock it dies with its process: the seat is given
//! back when the process ends, and all seats are new after a crash.

use super::marks;
use crate::run::timer::GRACE;
use crate::settings::MAX_BATCH;
use awty_core::Mono;
use pgrx::pg_sys;
use std::time::Duration;

/// What a worker has taken on is left to it until it has been in one run for so long.
const PATIENCE: Duration = Duration::from_millis(100);
/// The dispatcher takes away what `awty.intent` says of an abandoned run within moments. Suspects wait for that no longer than so, in
/// microseconds.
const CLEARED: i64 = 5_000_000;
/// A run that goes on for so long after its second strike is one that nothing stops.
const STUCK: Duration = Duration::from_secs(1);

/// Who sits there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Occupancy {
    /// Nobody. Next: `Starting`.
    Free,
    /// A worker was asked for. Next: `Taken`, or `Free` if it does not come.
    Starting,
    /// A worker is at work. Next: `Free`, or `Abandoned` if its run ended it.
    Taken,
    /// A run ended its worker, by itself or by ignoring its timeout. The next worker of that role sees to it. Next: `Free`, or
    /// `Starting` where no other place is left.
    Abandoned,
}

/// The run that is going on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// When it began.
    pub began: Mono,
    /// How long it may take, in microseconds.
    pub timeout: i64,
    /// How often the watchdog has struck: 1 cancelled, 2 terminated.
    pub strikes: u8,
}

/// One worker's place.
#[derive(Clone, Copy)]
pub struct Seat {
    pub occupancy: Occupancy,
    pub generation: u64,
    pub database: pg_sys::Oid,
    pub role: pg_sys::Oid,
    pub pid: i32,
    /// The address of its latch.
    pub latch: usize,
    pub run: Option<Run>,
    /// May `awty.intent` name the checks of its worker?
    pub named: bool,
    /// Was the run that it abandoned terminated because it ignored its timeout?
    pub overran: bool,
    /// The worker, by seat and generation, that is seeing to the abandoned run.
    pub seer: Option<(usize, u64)>,
    /// When its worker was gone.
    left_at: Mono,
    /// Since when it has been working without a pause (monotonic microseconds); 0: it is waiting.
    pub busy_since: i64,
    /// When a worker was asked for (monotonic microseconds).
    pub asked_at: i64,
    /// Has it found more than it takes on at a time, again and again?
    pub wants_help: bool,
    /// What it runs now.
    claims: Ids,
    /// What it has taken on: other workers of the role leave that to it, unless it is slow. A hint: what is not there is run by
    /// whoever claims it first.
    turn: Ids,
}

/// Ids of checks, sorted, so that other workers can look one up.
#[derive(Clone, Copy)]
struct Ids {
    ids: [i64; MAX_BATCH],
    len: usize,
}

impl Ids {
    const NONE: Ids = Ids { ids: [0; MAX_BATCH], len: 0 };

    fn clear(&mut self) {
        self.len = 0;
    }

    fn add(&mut self, more: &[i64]) {
        let len = (self.len + more.len()).min(MAX_BATCH);
        self.ids[self.len..len].copy_from_slice(&more[..len - self.len]);
        self.len = len;
        self.ids[..len].sort_unstable();
    }

    fn as_slice(&self) -> &[i64] {
        &self.ids[..self.len.min(MAX_BATCH)]
    }

    fn has(&self, id: i64) -> bool {
        self.as_slice().binary_search(&id).is_ok()
    }
}

impl Seat {
    pub(super) const FREE: Seat = Seat {
        occupancy: Occupancy::Free,
        generation: 0,
        database: pg_sys::InvalidOid,
        role: pg_sys::InvalidOid,
        pid: 0,
        latch: 0,
        run: None,
        named: false,
        overran: false,
        seer: None,
        left_at: Mono(0),
        busy_since: 0,
        asked_at: 0,
        wants_help: false,
        claims: Ids::NONE,
        turn: Ids::NONE,
    };

    /// Makes the seat ready for a worker that is about to be asked for.
    fn reserve(&mut self, database: pg_sys::Oid, role: pg_sys::Oid, mono: Mono) {
        self.occupancy = Occupancy::Starting;
        self.generation += 1;
        self.database = database;
        self.role = role;
        self.pid = 0;
        self.latch = 0;
        self.run = None;
        self.asked_at = super::moment(mono);
        self.rest();
        self.claims.clear();
    }

    /// It has nothing to do.
    pub fn rest(&mut self) {
        self.busy_since = 0;
        self.wants_help = false;
        self.turn.clear();
    }

    /// Gives the seat back.
    pub fn free(&mut self) {
        self.named = false;
        self.occupancy = Occupancy::Free;
        self.pid = 0;
        self.latch = 0;
        self.run = None;
        self.rest();
        self.claims.clear();
    }

    /// Leaves the seat, but not its claim: the run is still to be seen to. `overran` says that it was over its time.
    fn abandon(&mut self, overran: bool, now: Mono) {
        self.occupancy = Occupancy::Abandoned;
        self.left_at = now;
        self.seer = None;
        self.overran = overran;
        self.pid = 0;
        self.latch = 0;
        self.rest();
    }

    pub(super) fn forget_abandoned(&mut self) {
        if self.occupancy == Occupancy::Abandoned {
            self.free();
        }
    }

    /// Is a worker of that role at work here?
    pub fn serves(&self, database: pg_sys::Oid, role: pg_sys::Oid) -> bool {
        self.occupancy == Occupancy::Taken && self.database == database && self.role == role
    }

    /// Does its run go on although it was cancelled and terminated? Only code that never checks for interrupts can.
    pub fn is_stuck(&self, now: Mono) -> bool {
        let over = |run: &Run| now.since(run.began) - run.timeout - (GRACE + STUCK).as_micros() as i64;
        self.occupancy == Occupancy::Taken && self.run.is_some_and(|run| run.strikes >= 2 && over(&run) >= 0)
    }

    /// Does it count as a worker: running, or on its way?
    pub fn is_occupied(&self) -> bool {
        matches!(self.occupancy, Occupancy::Starting | Occupancy::Taken)
    }

    /// The ids of the checks that its worker has claimed.
    pub fn claims(&self) -> &[i64] {
        self.claims.as_slice()
    }

    fn has_claimed(&self, database: pg_sys::Oid, id: i64) -> bool {
        matches!(self.occupancy, Occupancy::Taken | Occupancy::Abandoned)
            && self.database == database
            && self.claims.has(id)
    }

    /// Is that check to be left to this worker?
    fn keeps(&self, database: pg_sys::Oid, id: i64, now: Mono) -> bool {
        let slow = self.run.is_some_and(|run| now.since(run.began) > PATIENCE.as_micros() as i64);
        self.occupancy == Occupancy::Taken && self.database == database && !slow && self.turn.has(id)
    }
}

impl super::Board {
    /// Makes a seat ready for a worker that is about to be asked for, and says which. Where none is free, the oldest abandoned one
    /// gives way, uncounted.
    pub fn reserve(&mut self, database: pg_sys::Oid, role: pg_sys::Oid, mono: Mono) -> Option<usize> {
        let index = self.seats.iter().position(|seat| seat.occupancy == Occupancy::Free).or_else(|| {
            let abandoned = self.seats.iter().enumerate().filter(|(_, seat)| seat.occupancy == Occupancy::Abandoned);
            abandoned.min_by_key(|(_, seat)| seat.asked_at).map(|(index, _)| index)
        })?;
        self.seats[index].reserve(database, role, mono);
        self.used = self.used.max(index + 1);
        Some(index)
    }

    /// The other seats that may have anybody on them. Each is large, and to look at all of them takes a while.
    fn others(&self, seat: usize) -> impl Iterator<Item = &Seat> {
        self.seats[..self.used].iter().enumerate().filter(move |(index, _)| *index != seat).map(|(_, other)| other)
    }

    /// Claims those of the checks that no other worker has claimed, instead of what was claimed from this seat before.
    pub fn claim(&mut self, seat: usize, wanted: &[i64]) -> Vec<i64> {
        let database = self.seats[seat].database;
        let mut granted: Vec<i64> = wanted.to_vec();
        granted.truncate(MAX_BATCH);
        granted.retain(|&id| !self.others(seat).any(|other| other.has_claimed(database, id)));
        self.seats[seat].claims.clear();
        self.seats[seat].claims.add(&granted);
        granted
    }

    /// Takes on those of the checks that no other worker has taken on, besides what was taken on from this seat before.
    pub fn take_on(&mut self, seat: usize, wanted: &[i64], now: Mono) -> Vec<i64> {
        let database = self.seats[seat].database;
        let mut free: Vec<i64> = wanted.to_vec();
        free.retain(|&id| !self.others(seat).any(|other| other.keeps(database, id, now)));
        self.seats[seat].turn.add(&free);
        free
    }

    /// Leaves a seat whose run ended its worker. A role has at most one such seat in a database, so that nobody takes the places of
    /// others: an older one gives way.
    pub fn abandon(&mut self, index: usize, overran: bool, now: Mono) {
        let (database, role) = (self.seats[index].database, self.seats[index].role);
        for seat in self.seats.iter_mut().filter(|seat| seat.database == database && seat.role == role) {
            seat.forget_abandoned();
        }
        self.seats[index].abandon(overran, now);
    }

    /// Lets the worker at a place run a suspect, if it is its turn and nobody else would be blamed for it: `awty.intent` still names
    /// what an abandoned run was about, until the dispatcher has been there.
    pub fn enter_quarantine(&mut self, seat: usize, now: Mono) -> bool {
        let blamed =
            |other: &Seat| other.occupancy == Occupancy::Abandoned && other.named && now.since(other.left_at) < CLEARED;
        if self.seats.iter().any(blamed) {
            return false;
        }
        let role = u64::from(self.seats[seat].database.to_u32()) << 32 | u64::from(self.seats[seat].role.to_u32());
        let entered = self.quarantine.enter(seat, role, now);
        if entered {
            let place = (self.seats[seat].database.to_u32(), i32::try_from(seat).unwrap_or(i32::MAX));
            marks::set_quarantined(Some(place));
        }
        entered
    }

    /// The suspect at that place has run, or its process is gone.
    pub fn leave_quarantine(&mut self, seat: usize) {
        if self.quarantine.leave(seat) {
            marks::set_quarantined(None);
        }
    }

    /// What was taken on from a seat has been run.
    pub fn end_turn(&mut self, seat: usize) {
        self.seats[seat].turn.clear();
    }

    /// Gives all claims of a seat back.
    pub fn release(&mut self, seat: usize) {
        self.seats[seat].claims.clear();
    }
}
