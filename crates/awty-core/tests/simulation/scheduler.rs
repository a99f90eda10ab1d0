use crate::table::{Id, Row};
use crate::world::World;
use awty_core::plan::{MAX_SLEEP, plan};
use awty_core::{After, Answer, Before, Check, Mono, Outcome, Time, policy};
use chrono::TimeDelta;
use std::time::Duration;

#[derive(Clone, Copy)]
enum Finish {
    Answer(Answer),
    Error,
    TimedOut,
    CancelsItself,
    SchedulesItself(Time),
}

pub struct Run {
    pub id: Id,
    version: u64,
    check: Check,
    since: Mono,
    ends: Mono,
    finish: Finish,
}

pub enum Doing {
    Looking,
    Found(Id),
    Running(Run),
}

pub struct Worker {
    pub role: usize,
    pub doing: Doing,
}

impl World {
    pub fn launcher_acts(&mut self) {
        self.latch = false;
        self.clock_jumped = false;
        for job in &mut self.jobs {
            job.able_since = job.able_since.min(self.now);
        }
        if self.mono >= self.next_sweep {
            self.next_sweep = self.mono.plus(Duration::from_mins(1));
            (0..self.roles.len()).for_each(|role| self.hint(role));
        }
        let plan = plan(self.now, self.mono, &self.roles, &self.caps);
        for role in plan.start {
            if self.dice.one_in(50) {
                self.roles[role].parked_until = Some(self.mono.plus(Duration::from_secs(3)));
                continue;
            }
            assert!(self.roles[role].parked_until.is_none_or(|end| end <= self.mono), "a parked role got a worker");
            self.ledger.tally.helpers += u64::from(self.roles[role].workers > 0);
            self.workers.push(Worker { role, doing: Doing::Looking });
            self.role_changed(role);
            assert!(self.roles[role].workers <= self.caps.max_workers_per_role, "too many workers of a role");
        }
        assert!(self.workers.len() <= self.caps.max_workers as usize, "too many workers");
        assert!(plan.wake_in <= MAX_SLEEP);
        self.waiting = plan.waiting;
        self.ledger.tally.waited += u64::from(plan.waiting > 0);
        self.launcher_wakes = self.mono.plus(plan.wake_in);
    }

    fn role_changed(&mut self, role: usize) {
        let of_role = self.workers.iter().filter(|worker| worker.role == role);
        let since = of_role.clone().map(|worker| match &worker.doing {
            Doing::Running(run) => Some(run.since),
            _ => None,
        });
        let behind_since = since.reduce(|a, b| Some(a?.max(b?))).flatten();
        let workers = of_role.count() as u32;
        if workers != self.roles[role].workers {
            self.served += 1;
            self.roles[role].last_served = self.served;
        }
        (self.roles[role].workers, self.roles[role].behind_since) = (workers, behind_since);
    }

    pub fn hint(&mut self, role: usize) {
        self.roles[role].due = self.earliest(role).map(|(slot, _)| slot);
    }

    fn earliest(&self, role: usize) -> Option<(Time, Id)> {
        self.table.of_role(role).find(|(_, id)| self.open_to_workers(&self.table.rows[id], *id))
    }

    fn open_to_workers(&self, row: &Row, id: Id) -> bool {
        !row.held && !self.jobs[row.job].paused && !self.claimed(id)
    }

    fn claimed(&self, id: Id) -> bool {
        self.workers.iter().any(|worker| matches!(&worker.doing, Doing::Running(run) if run.id == id))
    }

    pub fn a_worker_acts(&mut self) {
        if !self.workers.is_empty() {
            let worker = self.dice.below(self.workers.len());
            self.act(worker);
        }
    }

    pub fn act(&mut self, worker: usize) {
        match &self.workers[worker].doing {
            Doing::Looking => self.look(worker),
            Doing::Found(id) => self.claim(worker, *id),
            Doing::Running(run) if run.ends <= self.mono => self.finish(worker),
            Doing::Running(_) => {}
        }
    }

    fn look(&mut self, worker: usize) {
        let role = self.workers[worker].role;
        // A worker that starts before its first check is due finds the check again and again until the check is due.
        match self.earliest(role).filter(|(slot, _)| *slot <= self.now + self.caps.lead) {
            Some((_, id)) if self.waiting == 0 || self.dice.one_in(2) => self.workers[worker].doing = Doing::Found(id),
            None if self.dice.one_in(2) => self.hint(role),
            _ => self.leave(worker),
        }
    }

    pub fn leave(&mut self, worker: usize) {
        let role = self.workers.swap_remove(worker).role;
        self.hint(role);
        self.role_changed(role);
        self.latch = true;
    }

    fn claim(&mut self, worker: usize, id: Id) {
        self.workers[worker].doing = Doing::Looking;
        let Some(row) = self.table.rows.get(&id).filter(|row| self.open_to_workers(row, id)) else { return };
        let (check, version, locked, job) = (row.check, row.version, row.locked, row.job);
        let job = &self.jobs[job];
        match policy::before(&check, &job.limits, job.able_since, self.now) {
            Before::NotYet => {}
            Before::Run => self.start(worker, id, version, check),
            _ if locked => {}
            Before::Move(slot) => {
                self.ledger.missed(id);
                self.ledger.tally.moved += 1;
                self.put(id, Check { slot, ..check }, self.now);
            }
            Before::End(outcome) => {
                if outcome == Outcome::Missed {
                    self.ledger.missed(id);
                }
                self.end(id, outcome);
            }
        }
    }

    fn start(&mut self, worker: usize, id: Id, version: u64, check: Check) {
        let role = self.workers[worker].role;
        let longest = if self.dice.one_in(20) { 5000 } else { 30 };
        let (run_time, timeout) = (self.dice.millis(0, longest), self.jobs[self.table.rows[&id].job].limits.timeout);
        let finish = if run_time > timeout { Finish::TimedOut } else { self.choose(check.slot) };
        let taken = run_time.min(timeout).to_std().unwrap_or_default();
        let ends = self.mono.plus(taken);
        self.workers[worker].doing = Doing::Running(Run { id, version, check, since: self.mono, ends, finish });
        self.ledger.started(id, self.now);
        self.hint(role);
        self.role_changed(role);
    }

    fn choose(&mut self, slot: Time) -> Finish {
        match self.dice.below(20) {
            0..8 => Finish::Answer(Answer::Done),
            8..13 => Finish::Answer(Answer::Again(slot + self.dice.millis(1, 60_000))),
            13 => Finish::Answer(Answer::Again(slot - self.dice.millis(0, 60_000))),
            14 => Finish::Answer(Answer::Again(slot + self.dice.millis(100_000, 1_200_000))),
            15 => Finish::CancelsItself,
            16 => Finish::SchedulesItself(self.now + self.dice.millis(-5000, 60_000)),
            _ => Finish::Error,
        }
    }

    fn finish(&mut self, worker: usize) {
        let Doing::Running(run) = std::mem::replace(&mut self.workers[worker].doing, Doing::Looking) else { return };
        let role = self.workers[worker].role;
        match self.table.rows.get_mut(&run.id) {
            Some(row) if row.version == run.version && !row.locked => {
                row.runs += 1;
                let (job, entity) = (row.job, row.entity);
                self.ledger.booked(run.id);
                self.book(&run, job, entity);
            }
            _ => {
                self.ledger.discarded(run.id);
                self.ledger.tally.discarded += 1;
            }
        }
        self.hint(role);
        self.role_changed(role);
    }

    fn book(&mut self, run: &Run, job: usize, entity: usize) {
        let (id, check, limits, now) = (run.id, run.check, self.jobs[job].limits, self.now);
        let after = match run.finish {
            Finish::Answer(answer) => policy::after(&check, &limits, answer, now),
            Finish::Error => policy::failed(&check, &limits, false, now),
            Finish::TimedOut => policy::failed(&check, &limits, true, now),
            Finish::CancelsItself => After::End(Outcome::Cancelled),
            Finish::SchedulesItself(_) => After::End(Outcome::Replaced),
        };
        match (after, run.finish) {
            (After::End(outcome), _) => self.end(id, outcome),
            (After::Again(slot), Finish::Answer(Answer::Again(t))) => {
                self.put(id, Check { slot, check_count: check.check_count + 1, attempt: 0 }, t.max(now));
            }
            (After::Again(slot), _) => {
                self.ledger.tally.retried += 1;
                self.put(id, Check { slot, attempt: check.attempt + 1, ..check }, now + limits.retry_after);
            }
        }
        if let Finish::SchedulesItself(t) = run.finish
            && let Ok(slot) = policy::schedule(t, &limits, now)
        {
            self.insert(job, entity, slot, t.max(now), self.mono);
        }
    }

    fn put(&mut self, id: Id, check: Check, not_before: Time) {
        let since = self.mono;
        assert!(check.slot > self.table.rows[&id].check.slot, "check {id} makes no progress");
        assert!(check.slot - not_before <= TimeDelta::days(1), "check {id} is put off for more than a slot");
        self.table.update(id, check);
        self.ledger.again(id, not_before, since);
    }
}
