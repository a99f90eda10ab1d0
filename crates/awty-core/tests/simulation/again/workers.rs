use super::{Row, World};
use awty_core::repeat::occurrence::{After, Before};
use awty_core::{Answer, Check, Outcome, Time, policy};
use chrono::TimeDelta;

#[derive(Clone, Copy)]
enum Finish {
    Answer(Answer),
    Error,
    TimedOut,
    CancelsItself,
    SchedulesItself(Time),
}

#[derive(Clone, Copy)]
pub struct Run {
    ends: i64,
    finish: Finish,
}

impl World {
    pub fn a_worker_acts(&mut self) {
        let due = |row: &&Row| {
            let open = !row.held && !self.jobs[row.key.0].paused && row.occurrence.check.slot <= self.now;
            row.run.map_or(open, |run| run.ends <= self.mono)
        };
        let due: Vec<_> = self.rows.iter().filter(|(_, row)| due(row)).map(|(id, _)| *id).collect();
        if due.is_empty() {
            return;
        }
        let id = self.dice.pick(&due);
        let row = &self.rows[&id];
        match row.run {
            Some(run) => self.finish(id, run),
            None => self.begin(id),
        }
    }

    fn begin(&mut self, id: u64) {
        let row = &self.rows[&id];
        let (key, occurrence, job) = (row.key, row.occurrence, &self.jobs[row.key.0]);
        let able_since = row.able_since.max(job.able_since);
        match self.repetition(key).before(&occurrence, &job.limits, able_since, self.now) {
            Before::NotYet => assert!(occurrence.check.slot > self.now),
            Before::Run => self.start(id),
            Before::Replace(slot) => {
                self.ledger.tally.count("replaced by the next");
                self.goes_on(id, Outcome::Missed, Some(slot), false);
            }
            Before::End { outcome, next } => self.goes_on(id, outcome, next, outcome != Outcome::Missed),
        }
    }

    fn start(&mut self, id: u64) {
        let run_time = if self.dice.one_in(30) { self.dice.millis(0, 2_000_000) } else { self.dice.millis(0, 2_000) };
        let check = self.rows[&id].occurrence.check;
        let timeout = self.jobs[self.rows[&id].key.0].limits.timeout;
        let finish = if run_time > timeout { Finish::TimedOut } else { self.choose(check) };
        let ends = self.mono + run_time.min(timeout).num_microseconds().unwrap_or_default();
        let (now, tally) = (self.now, &mut self.ledger.tally);
        tally.count("run");
        if let Some(row) = self.rows.get_mut(&id) {
            assert!(check.slot <= now, "P2: check {id} runs early");
            assert!(row.last.is_none_or(|moment| moment <= now), "P2: check {id} runs before its moment");
            row.run = Some(Run { ends, finish });
        }
    }

    fn choose(&mut self, check: Check) -> Finish {
        match self.dice.below(40) {
            0..24 => Finish::Answer(Answer::Done),
            24..30 => Finish::Answer(Answer::Again(check.slot + self.dice.millis(1, 900_000))),
            30 => Finish::Answer(Answer::Again(check.slot - self.dice.millis(0, 60_000))),
            31 => Finish::Answer(Answer::Again(Time::MAX_UTC)),
            32 => Finish::CancelsItself,
            33 => Finish::SchedulesItself(self.now + self.dice.millis(-5000, 1_000_000)),
            34 => Finish::TimedOut,
            35 => Finish::Answer(Answer::Again(check.slot + self.dice.millis(6_000_000, 14_400_000))),
            _ => Finish::Error,
        }
    }

    fn finish(&mut self, id: u64, run: Run) {
        let Some(row) = self.rows.get_mut(&id) else { return };
        row.run = None;
        let (key, occurrence, held) = (row.key, row.occurrence, row.held);
        let (repetition, limits, now) = (self.repetition(key), self.jobs[key.0].limits, self.now);
        let after = match run.finish {
            Finish::Answer(answer) => repetition.after(&occurrence, &limits, answer, now),
            Finish::Error => repetition.failed(&occurrence, &limits, false, now),
            Finish::TimedOut => repetition.failed(&occurrence, &limits, true, now),
            Finish::CancelsItself => {
                self.ledger.tally.count("cancelled inside");
                self.rows.remove(&id);
                return self.is_over(key);
            }
            Finish::SchedulesItself(t) => {
                let Ok(slot) = policy::schedule(t, &limits, now) else { return };
                let Some(row) = self.rows.remove(&id) else { return };
                if let Some(last) = row.last {
                    self.ledger.booked(key, last, Outcome::Done);
                    self.ledger.gone(key, last);
                }
                self.ledger.tally.count("scheduled inside");
                return self.insert(key, occurrence.followed_at(slot), false, held);
            }
        };
        match (after, run.finish) {
            (After::End { outcome, next }, _) => self.goes_on(id, outcome, next, true),
            (After::Again(slot), Finish::Answer(_)) => {
                self.ledger.tally.count("asked again");
                self.again(id, Check { slot, check_count: occurrence.check.check_count + 1, attempt: 0 });
            }
            (After::Again(slot), _) => {
                self.ledger.tally.count("retried");
                self.again(id, Check { slot, attempt: occurrence.check.attempt + 1, ..occurrence.check });
            }
        }
    }

    fn again(&mut self, id: u64, check: Check) {
        let row = &self.rows[&id];
        let (own, terms) = (self.used_up(row), self.terms[&row.key]);
        let next = self.ledger.next(row.key, own, &terms, self.width, self.now - terms.catch_up);
        assert!(next.is_none_or(|next| check.slot < next), "check {id} takes the place of the next occurrence");
        assert!(check.slot > row.occurrence.check.slot && check.slot - self.now <= TimeDelta::days(1));
        if let Some(row) = self.rows.get_mut(&id) {
            row.occurrence.check = check;
        }
    }
}
