//! Checks each run and each commit without knowledge of the implementation.

use crate::table::{Id, Table};
use awty_core::{KeepHistory, Limits, Mono, Outcome, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Pending,
    Held,
    Ended(Outcome),
}

struct Entry {
    job: usize,
    place: Place,
    version: u64,
    not_before: Time,
    since: Mono,
    running: Option<u64>,
    booked: u32,
    most: u32,
    keep: KeepHistory,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub outcomes: [u64; Outcome::ALL.len()],
    pub runs: u64,
    pub retried: u64,
    pub discarded: u64,
    pub killed: u64,
    pub moved: u64,
    pub held: u64,
    pub restarts: u64,
    pub clock_jumps: u64,
    pub helpers: u64,
    pub waited: u64,
    pub refused: u64,
}

impl Tally {
    pub fn events(&self) -> [(&'static str, u64); 11] {
        [
            ("run", self.runs),
            ("retried", self.retried),
            ("discarded", self.discarded),
            ("killed", self.killed),
            ("moved to the next slot", self.moved),
            ("held", self.held),
            ("server restart", self.restarts),
            ("clock jump", self.clock_jumps),
            ("helper", self.helpers),
            ("waiting role", self.waited),
            ("refused", self.refused),
        ]
    }

    pub fn add(&mut self, other: &Tally) {
        for (sum, count) in self.outcomes.iter_mut().zip(other.outcomes) {
            *sum += count;
        }
        self.runs += other.runs;
        self.retried += other.retried;
        self.discarded += other.discarded;
        self.killed += other.killed;
        self.moved += other.moved;
        self.held += other.held;
        self.restarts += other.restarts;
        self.clock_jumps += other.clock_jumps;
        self.helpers += other.helpers;
        self.waited += other.waited;
        self.refused += other.refused;
    }
}

pub struct Ledger {
    entries: Vec<Entry>,
    able: Vec<Mono>,
    hash: u64,
    pub tally: Tally,
}

impl Ledger {
    pub fn new(jobs: usize, mono: Mono) -> Self {
        Self { entries: Vec::new(), able: vec![mono; jobs], hash: 0xcbf2_9ce4_8422_2325, tally: Tally::default() }
    }

    pub fn log(&mut self, event: &str, a: i64, b: i64) {
        let words = [event.len() as i64, i64::from(event.as_bytes()[0]), a, b];
        for word in words {
            self.hash = (self.hash ^ word.cast_unsigned()).wrapping_mul(0x0100_0000_01b3);
        }
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }

    pub fn able(&mut self, job: usize, mono: Mono) {
        self.able[job] = mono;
    }

    pub fn created(&mut self, id: Id, job: usize, limits: &Limits, not_before: Time, since: Mono) {
        self.log("created", id as i64, not_before.timestamp_micros());
        assert_eq!(id, self.entries.len(), "an id was used twice");
        self.entries.push(Entry {
            job,
            place: Place::Pending,
            version: 0,
            not_before,
            since,
            running: None,
            booked: 0,
            most: limits.max_checks * limits.max_attempts,
            keep: limits.keep_history,
        });
    }

    /// No run begins before its check is due (promise P2), and no two runs of a check overlap (P4).
    pub fn started(&mut self, id: Id, now: Time) {
        self.log("started", id as i64, now.timestamp_micros());
        self.tally.runs += 1;
        let entry = &mut self.entries[id];
        assert_eq!(entry.place, Place::Pending, "check {id} ran");
        assert!(entry.not_before <= now, "check {id} ran early: at {now}, not before {}", entry.not_before);
        assert_eq!(entry.running, None, "two runs of check {id} overlap");
        entry.running = Some(entry.version);
    }

    pub fn discarded(&mut self, id: Id) {
        self.log("discarded", id as i64, 0);
        assert!(self.entries[id].running.take().is_some(), "check {id} was not running");
    }

    pub fn booked(&mut self, id: Id) {
        self.log("booked", id as i64, 0);
        let entry = &mut self.entries[id];
        assert_eq!(entry.place, Place::Pending, "a run of check {id} committed");
        assert_eq!(entry.running.take(), Some(entry.version), "a run of an old version of check {id} committed");
        entry.booked += 1;
        assert!(entry.booked <= entry.most, "check {id} ran more than {} times", entry.most);
    }

    pub fn again(&mut self, id: Id, not_before: Time, mono: Mono) {
        self.log("again", id as i64, not_before.timestamp_micros());
        let entry = &mut self.entries[id];
        assert_eq!(entry.place, Place::Pending, "check {id} goes on");
        (entry.version, entry.not_before, entry.since) = (entry.version + 1, not_before, mono);
    }

    pub fn missed(&mut self, id: Id) {
        let entry = &self.entries[id];
        assert!(self.able[entry.job] >= entry.since, "check {id} was missed though its job could run all the time");
    }

    pub fn hold(&mut self, id: Id, held: bool) {
        self.log("hold", id as i64, i64::from(held));
        let entry = &mut self.entries[id];
        let (from, to) = if held { (Place::Pending, Place::Held) } else { (Place::Held, Place::Pending) };
        assert_eq!(entry.place, from, "check {id}");
        (entry.place, entry.version) = (to, entry.version + 1);
        self.tally.held += u64::from(held);
    }

    pub fn ended(&mut self, id: Id, outcome: Outcome) {
        self.log("ended", id as i64, outcome as i64);
        let entry = &mut self.entries[id];
        assert!(!matches!(entry.place, Place::Ended(_)), "check {id} ended twice: {:?}, {outcome}", entry.place);
        (entry.place, entry.version) = (Place::Ended(outcome), entry.version + 1);
        self.tally.outcomes[outcome as usize] += 1;
    }

    /// Each committed check is either in the table or in the history (promise P3).
    pub fn audit(&self, table: &Table) {
        let mut not_kept = 0;
        for (id, entry) in self.entries.iter().enumerate() {
            let row = table.rows.get(&id).map(|row| if row.held { Place::Held } else { Place::Pending });
            let archived = table.history.get(&id).map(|outcome| Place::Ended(*outcome));
            match entry.place {
                Place::Ended(outcome) => {
                    let keep = match entry.keep {
                        KeepHistory::All => true,
                        KeepHistory::Ran => entry.booked > 0,
                        KeepHistory::Problems => !"done cancelled replaced".contains(outcome.as_str()),
                        KeepHistory::None => false,
                    };
                    assert_eq!((row, archived), (None, keep.then_some(entry.place)), "check {id}");
                    not_kept += usize::from(!keep);
                }
                place => assert_eq!((row, archived), (Some(place), None), "check {id}"),
            }
        }
        let places = table.rows.len() + table.history.len() + not_kept;
        assert_eq!((places, table.not_kept), (self.entries.len(), not_kept), "a check came from nowhere");
    }
}
