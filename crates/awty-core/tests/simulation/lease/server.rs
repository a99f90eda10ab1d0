//! Simulates a server that makes its decisions with `awty_core`.

use super::ledger::Ledger;
use crate::dice::Dice;
use crate::world::width;
use awty_core::lease::key::{Home, key};
use awty_core::lease::order::{Waiting, shares};
use awty_core::lease::{Delivery, LeaseOptions, State, Unanswered};
use awty_core::{After, Answer, Before, Check, Failed, Lease, Limits, Outcome, Time, policy};
use chrono::TimeDelta;
use std::collections::BTreeMap;

const HOME: Home = Home { identity: 7, database: 5 };
const MAX_CRASHES: u32 = 3;
const ROLES: usize = 2;
const JOBS: usize = 4;
const MOST: usize = 40;

#[derive(Clone, Debug)]
pub struct Job {
    role: usize,
    pub limits: Limits,
    pub terms: LeaseOptions,
    served_at: Option<Time>,
}

#[derive(Clone, Debug)]
pub struct Row {
    pub job: usize,
    pub check: Check,
    crashes: u32,
    held: bool,
    scheduled_at: Time,
}

#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub number: u64,
    pub lease: Lease,
}

#[derive(Clone, Copy, Debug)]
pub struct Hand {
    pub number: u64,
    pub check: i64,
    pub count: u32,
}

#[derive(Clone)]
pub struct Server {
    pub now: Time,
    pub jobs: Vec<Job>,
    pub rows: BTreeMap<i64, Row>,
    pub leases: BTreeMap<i64, Held>,
    pub last_id: i64,
}

impl Server {
    pub fn new(dice: &mut Dice) -> Self {
        let job = |number: usize| {
            let limits = Limits {
                timeout: TimeDelta::seconds(30),
                max_attempts: 1 + dice.below(3) as u32,
                max_lateness: (number == 1).then(|| TimeDelta::minutes(10)),
                ..Limits::defaults(width(1))
            };
            let heartbeat = dice.one_in(2).then(|| TimeDelta::seconds(5));
            let delivery = if number == 3 { Delivery::AtMostOnce } else { Delivery::AtLeastOnce };
            let heartbeat = if number == 0 { Some(TimeDelta::seconds(5)) } else { heartbeat };
            Job {
                role: number % ROLES,
                limits,
                terms: LeaseOptions { heartbeat, delivery, ..LeaseOptions::DEFAULTS },
                served_at: None,
            }
        };
        let jobs = (0..JOBS).map(job).collect();
        let now = Time::UNIX_EPOCH + TimeDelta::days(21_000);
        Self { now, jobs, rows: BTreeMap::new(), leases: BTreeMap::new(), last_id: 0 }
    }

    pub fn schedule(&mut self, dice: &mut Dice, ledger: &mut Ledger) {
        if self.rows.len() >= MOST {
            return;
        }
        let job = dice.below(JOBS);
        let wanted = self.now + dice.millis(-5000, 20_000);
        let Ok(slot) = policy::schedule(wanted, &self.jobs[job].limits, self.now) else { return };
        self.last_id += 1;
        let check = Check { slot, check_count: 0, attempt: 0 };
        let row = Row { job, check, crashes: 0, held: false, scheduled_at: self.now };
        self.rows.insert(self.last_id, row);
        ledger.created(self.last_id);
    }

    fn any(&self, dice: &mut Dice) -> Option<i64> {
        let ids: Vec<i64> = self.rows.keys().copied().collect();
        (!ids.is_empty()).then(|| dice.pick(&ids))
    }

    pub fn cancel(&mut self, dice: &mut Dice, ledger: &mut Ledger) {
        if let Some(id) = self.any(dice) {
            self.end(id, Outcome::Cancelled, ledger);
        }
    }

    pub fn hold_or_release(&mut self, dice: &mut Dice) {
        if let Some(row) = self.any(dice).and_then(|id| self.rows.get_mut(&id)) {
            row.held = !row.held;
            row.crashes = 0;
        }
    }

    pub fn release_all(&mut self) {
        self.rows.values_mut().for_each(|row| (row.held, row.crashes) = (false, 0));
    }

    /// As in awty, the check's lease stays until a later call removes the lease.
    fn end(&mut self, id: i64, outcome: Outcome, ledger: &mut Ledger) {
        self.rows.remove(&id);
        ledger.ended(id, outcome);
    }

    pub fn book_overdue(&mut self, wanted: Option<i64>, ledger: &mut Ledger) {
        let over: Vec<i64> = match wanted {
            Some(id) => vec![id],
            None => self.leases.iter().filter(|(_, held)| !held.lease.counts(self.now)).map(|(id, _)| *id).collect(),
        };
        for id in over {
            let Some(held) = self.leases.get(&id).copied() else { continue };
            let Some(job) = self.rows.get(&id).map(|row| self.jobs[row.job].clone()) else {
                self.leases.remove(&id);
                continue;
            };
            let unanswered = held.lease.unanswered(job.terms.delivery, self.now);
            if unanswered == Unanswered::Wait {
                continue;
            }
            ledger.over(id, held.number, self.now);
            match unanswered {
                Unanswered::Wait => {}
                Unanswered::Crash => self.count_crash(id, ledger),
                Unanswered::Failure(how) => self.fail(id, how, ledger),
            }
            self.leases.remove(&id);
        }
    }

    fn count_crash(&mut self, id: i64, ledger: &mut Ledger) {
        let Some(row) = self.rows.get_mut(&id) else { return };
        row.crashes += 1;
        ledger.tally.crashes += 1;
        assert!(row.crashes <= MAX_CRASHES, "check {id} should be held");
        if row.crashes == MAX_CRASHES {
            row.held = true;
            ledger.tally.held += 1;
        }
    }

    pub fn claim(&mut self, max: usize, number: &mut impl FnMut() -> u64, ledger: &mut Ledger) -> Vec<Hand> {
        self.book_overdue(None, ledger);
        let mut by_role: Vec<Vec<(Time, i64)>> = vec![Vec::new(); ROLES];
        for (id, row) in &self.rows {
            let free = self.leases.get(id).is_none_or(|held| held.lease.state(self.now) != State::Live);
            if !row.held && free && row.check.slot <= self.now {
                by_role[self.jobs[row.job].role].push((row.check.slot, *id));
            }
        }
        by_role.iter_mut().for_each(|due| due.sort_unstable());
        let served = |role| self.jobs.iter().filter(|job| job.role == role).filter_map(|job| job.served_at).max();
        let waiting: Vec<Waiting> =
            by_role.iter().enumerate().map(|(role, due)| Waiting { served_at: served(role), due: due.len() }).collect();
        let mut hands = Vec::new();
        for (share, due) in shares(&waiting, max).into_iter().zip(by_role) {
            hands.extend(due.into_iter().take(share).filter_map(|(_, id)| self.hand_out(id, number(), ledger)));
        }
        hands
    }

    fn hand_out(&mut self, id: i64, number: u64, ledger: &mut Ledger) -> Option<Hand> {
        self.book_overdue(Some(id), ledger);
        let row = self.rows.get(&id).filter(|row| !row.held)?.clone();
        let job = &mut self.jobs[row.job];
        match policy::before(&row.check, &job.limits, Time::MIN_UTC, self.now) {
            Before::Run => {}
            Before::NotYet => return None,
            Before::Move(slot) => {
                self.rows.get_mut(&id)?.check.slot = slot;
                return None;
            }
            Before::End(outcome) => {
                self.end(id, outcome, ledger);
                return None;
            }
        }
        job.served_at = Some(self.now);
        let lease = Lease::begin(self.now, job.limits.timeout, job.terms.heartbeat);
        let count = row.check.check_count;
        let once = job.terms.delivery == Delivery::AtMostOnce;
        let key = key(HOME, id, row.scheduled_at, count);
        ledger.handed_out((id, count), &key, number, lease.expires_at, once, self.now);
        self.leases.insert(id, Held { number, lease });
        Some(Hand { number, check: id, count })
    }

    fn take(&mut self, hand: &Hand, ledger: &mut Ledger) -> Option<usize> {
        let held = self.leases.get(&hand.check).filter(|held| held.number == hand.number);
        let job =
            held.filter(|held| held.lease.counts(self.now)).and_then(|_| self.rows.get(&hand.check)).map(|row| row.job);
        let Some(job) = job else {
            ledger.tally.void += 1;
            return None;
        };
        self.leases.remove(&hand.check);
        ledger.answered(hand.check, hand.number, self.now);
        Some(job)
    }

    pub fn complete(&mut self, hand: &Hand, answer: Answer, ledger: &mut Ledger) {
        let Some(job) = self.take(hand, ledger) else { return };
        let Some(row) = self.rows.get_mut(&hand.check) else { return };
        match policy::after(&row.check, &self.jobs[job].limits, answer, self.now) {
            After::Again(slot) => {
                row.check = Check { slot, check_count: row.check.check_count + 1, attempt: 0 };
                row.crashes = 0;
            }
            After::End(outcome) => self.end(hand.check, outcome, ledger),
        }
    }

    pub fn report(&mut self, hand: &Hand, not_started: bool, chance: u64, ledger: &mut Ledger) {
        let Some(job) = self.take(hand, ledger) else { return };
        if not_started {
            ledger.not_started((hand.check, hand.count));
        }
        let how = self.jobs[job].terms.reported(None, false, not_started, chance);
        self.fail(hand.check, how, ledger);
    }

    fn fail(&mut self, id: i64, how: Failed, ledger: &mut Ledger) {
        let Some(row) = self.rows.get_mut(&id) else { return };
        match policy::failed(&row.check, &self.jobs[row.job].limits, how, self.now) {
            After::Again(slot) => {
                row.check = Check { slot, attempt: row.check.attempt + 1, ..row.check };
                row.crashes = 0;
            }
            After::End(outcome) => self.end(id, outcome, ledger),
        }
    }

    pub fn beat(&mut self, hand: &Hand, ledger: &mut Ledger) {
        let Some(job) = self.rows.get(&hand.check).map(|row| &self.jobs[row.job]) else { return };
        let Some(held) = self.leases.get_mut(&hand.check).filter(|held| held.number == hand.number) else { return };
        if let Some(lease) = held.lease.beat(self.now, job.terms.heartbeat) {
            held.lease = lease;
            ledger.beaten(hand.check, hand.number, lease.expires_at);
        }
    }

    pub fn give_back(&mut self, hand: &Hand, ledger: &mut Ledger) {
        if self.take(hand, ledger).is_some() {
            ledger.not_started((hand.check, hand.count));
            ledger.tally.given_back += 1;
        }
    }
}
