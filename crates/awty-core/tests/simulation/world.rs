use crate::dice::Dice;
use crate::ledger::Ledger;
use crate::scheduler::Worker;
use crate::table::{Id, Table};
use awty_core::limits::{Conflict, KeepHistory, OnConflict, OnMissed};
use awty_core::slot::effective;
use awty_core::{Caps, Limits, Mono, Outcome, Role, Time, Width, policy};
use chrono::TimeDelta;
use std::time::Duration;

pub const JOBS: usize = 6;
const ROLES: usize = 4;
const ENTITIES: usize = 25;
pub const WIDTHS: [i64; 6] = [1, 2, 5, 10, 30, 60];

pub struct Job {
    pub role: usize,
    pub own_width: Option<Width>,
    pub limits: Limits,
    pub paused: bool,
    pub able_since: Time,
}

#[derive(Clone, Copy)]
pub enum Change {
    Cancel,
    Schedule { job: usize, entity: usize, slot: Time, not_before: Time, since: Mono },
}

pub struct Open {
    locked: Option<Id>,
    change: Change,
}

pub struct World {
    pub dice: Dice,
    pub now: Time,
    pub mono: Mono,
    pub server_width: Width,
    pub jobs: Vec<Job>,
    pub table: Table,
    pub open: Vec<Open>,
    pub roles: Vec<Role>,
    pub workers: Vec<Worker>,
    pub caps: Caps,
    pub served: u64,
    pub waiting: u32,
    pub latch: bool,
    pub clock_jumped: bool,
    pub launcher_wakes: Mono,
    pub next_sweep: Mono,
    pub ledger: Ledger,
}

pub fn width(seconds: i64) -> Width {
    Width::new(seconds).unwrap_or_else(|error| panic!("{error}"))
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let (now, mono) = (Time::UNIX_EPOCH + TimeDelta::days(21_000), Mono(0));
        let server_width = width(dice.pick(&WIDTHS));
        let jobs = (0..JOBS).map(|number| job(&mut dice, number, server_width, now)).collect();
        let caps = Caps {
            max_workers: 2 + dice.below(3) as u32,
            max_workers_per_role: 1 + dice.below(3) as u32,
            elsewhere: 0,
            lead: dice.millis(0, 300),
        };
        let role = Role {
            due: None,
            behind_since: None,
            wants_help: false,
            workers: 0,
            stuck: 0,
            parked_until: None,
            last_served: 0,
        };
        Self {
            dice,
            now,
            mono,
            server_width,
            jobs,
            table: Table::default(),
            open: Vec::new(),
            roles: vec![role; ROLES],
            workers: Vec::new(),
            caps,
            served: 0,
            waiting: 0,
            latch: false,
            clock_jumped: false,
            launcher_wakes: mono,
            next_sweep: mono,
            ledger: Ledger::new(JOBS, mono),
        }
    }

    pub fn step(&mut self) {
        match self.dice.below(1000) {
            0..110 => self.client_schedules(),
            110..125 => self.client_cancels(),
            125..165 => self.client_ends_transaction(),
            165..450 => self.time_passes(),
            450..992 => self.a_worker_acts(),
            _ => self.something_goes_wrong(),
        }
    }

    pub fn audit(&self) {
        self.ledger.audit(&self.table);
    }

    pub fn drain(&mut self) {
        while !self.open.is_empty() {
            self.client_ends_transaction();
        }
        self.resume_everything();
        for _ in 0..200_000 {
            if self.table.rows.is_empty() {
                return;
            }
            self.time_passes();
            for worker in (0..self.workers.len()).rev() {
                self.act(worker);
            }
        }
        let left: Vec<_> = self.table.rows.iter().map(|(id, row)| (id, row.check)).collect();
        panic!("checks that never end, at {}: {left:?}", self.now);
    }

    fn time_passes(&mut self) {
        if !self.latch {
            let longest = self.launcher_wakes.since(self.mono).as_micros() as i64;
            let some = if self.dice.one_in(2) { longest } else { self.dice.below(40_000) as i64 };
            self.pass(some.min(longest));
        }
        if self.latch || self.mono >= self.launcher_wakes {
            self.launcher_acts();
        }
    }

    pub fn pass(&mut self, micros: i64) {
        self.mono = self.mono.plus(Duration::from_micros(micros.unsigned_abs()));
        self.now += TimeDelta::microseconds(micros);
    }

    fn client_schedules(&mut self) {
        let (job, entity) = (self.dice.below(JOBS), self.dice.below(ENTITIES));
        let ahead = if self.dice.one_in(40) { 1_200_000 } else { 90_000 };
        let t = self.now + self.dice.millis(-30_000, ahead);
        let limits = self.jobs[job].limits;
        let Ok(slot) = policy::schedule(t, &limits, self.now) else {
            assert!(t - self.now > limits.max_horizon, "refused though within the horizon");
            self.ledger.tally.refused += 1;
            return;
        };
        let pending = self.table.pending(job, entity);
        if let Some(row) = pending.and_then(|id| self.table.rows.get(&id)) {
            let on_conflict = if self.dice.one_in(2) { OnConflict::Replace } else { self.dice.pick(OnConflict::ALL) };
            if row.locked || on_conflict.decide(row.check.slot, slot) != Conflict::Replace {
                return;
            }
        }
        let not_before = t.max(self.now);
        self.client_begins(pending, Change::Schedule { job, entity, slot, not_before, since: self.mono });
    }

    fn client_cancels(&mut self) {
        let (job, entity) = (self.dice.below(JOBS), self.dice.below(ENTITIES));
        let pending = self.table.pending(job, entity);
        if pending.is_some_and(|id| !self.table.rows[&id].locked) {
            self.client_begins(pending, Change::Cancel);
        }
    }

    fn client_begins(&mut self, locked: Option<Id>, change: Change) {
        let open = Open { locked, change };
        if !self.dice.one_in(8) {
            return self.commit(&open);
        }
        self.lock(locked, true);
        self.open.push(open);
    }

    fn client_ends_transaction(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let index = self.dice.below(self.open.len());
        let open = self.open.swap_remove(index);
        self.lock(open.locked, false);
        if !self.dice.one_in(4) {
            self.commit(&open);
        }
    }

    pub fn lock(&mut self, id: Option<Id>, locked: bool) {
        if let Some(row) = id.and_then(|id| self.table.rows.get_mut(&id)) {
            row.locked = locked;
        }
    }

    pub fn server_aborts_transactions(&mut self) {
        for open in std::mem::take(&mut self.open) {
            self.lock(open.locked, false);
        }
    }

    fn commit(&mut self, open: &Open) {
        match open.change {
            Change::Cancel => open.locked.into_iter().for_each(|id| self.end(id, Outcome::Cancelled)),
            Change::Schedule { job, entity, slot, not_before, since } => {
                // Another client has committed first, so the unique index makes this transaction fail.
                if self.table.pending(job, entity) != open.locked {
                    return;
                }
                open.locked.into_iter().for_each(|id| self.end(id, Outcome::Replaced));
                self.insert(job, entity, slot, not_before, since);
            }
        }
    }

    pub fn insert(&mut self, job: usize, entity: usize, slot: Time, not_before: Time, since: Mono) {
        let role = self.jobs[job].role;
        let id = self.table.insert(job, role, entity, slot);
        self.ledger.created(id, job, &self.jobs[job].limits, not_before, since);
        if self.roles[role].due.is_none_or(|due| slot < due) {
            self.roles[role].due = Some(slot);
            self.latch = true;
        }
    }

    pub fn end(&mut self, id: Id, outcome: Outcome) {
        let keep = self.jobs[self.table.rows[&id].job].limits.keep_history;
        self.table.end(id, outcome, keep);
        self.ledger.ended(id, outcome);
    }
}

fn job(dice: &mut Dice, number: usize, server_width: Width, now: Time) -> Job {
    let own_width = dice.one_in(2).then(|| width(dice.pick(&[1, 5, 60, 300])));
    let limits = Limits {
        width: effective(own_width, server_width),
        timeout: dice.millis(500, 3000),
        max_checks: 1 + dice.below(6) as u32,
        max_horizon: dice.millis(120_000, 900_000),
        max_attempts: 1 + dice.below(4) as u32,
        retry_after: dice.millis(500, 20_000),
        on_missed: dice.pick(OnMissed::ALL),
        max_lateness: dice.one_in(2).then(|| dice.millis(1000, 60_000)),
        keep_history: dice.pick(KeepHistory::ALL),
    };
    assert_eq!(limits.check(), Ok(()));
    Job { role: number % ROLES, own_width, limits, paused: false, able_since: now }
}
