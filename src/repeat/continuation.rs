//! Schedules the next check of a repetition when its current check ends.

use super::statements::repetition::{self, Pending};
use super::{of, say_stopped};
use crate::failpoint::failpoint;
use crate::pg::clock;
use crate::pg::zone::Local;
use crate::shmem::wakeup;
use crate::store::check_row::Row;
use crate::store::hold;
use crate::store::job::Job;
use awty_core::repeat::{Repetition, occurrence};
use awty_core::{After, Answer, Before, Check, Failed, Time, policy};
use std::collections::HashMap;

pub struct Continuation<'a> {
    job: &'a Job,
    found: HashMap<i64, (Pending, Option<Repetition<Local>>)>,
    next: Vec<(i64, Time)>,
    held: Vec<(i64, Time, i64)>,
    over: Vec<i64>,
    begun: Vec<(i64, bool)>,
}

pub enum Decision {
    Policy(Before),
    Replace,
}

impl<'a> Continuation<'a> {
    /// The caller must have locked the rows of the checks.
    pub fn of(job: &'a Job, checks: &[i64]) -> Self {
        let found = if job.repeats && !checks.is_empty() { repetition::of_checks(checks) } else { Vec::new() };
        Self::with(job, found)
    }

    pub fn of_rows(job: &'a Job, rows: &[&Row]) -> Self {
        match rows {
            [row] if job.repeats => Self::with(job, repetition::of_row(row).into_iter().collect()),
            _ => Self::of(job, &rows.iter().map(|row| row.id).collect::<Vec<_>>()),
        }
    }

    fn with(job: &'a Job, found: Vec<Pending>) -> Self {
        let width = job.options.limits.width;
        let found = found
            .into_iter()
            .map(|pending| {
                let repetition = of(&pending.repetition, width);
                if repetition.is_none() {
                    say_stopped(&pending.repetition);
                }
                (pending.check, (pending, repetition))
            })
            .collect();
        Self { job, found, next: Vec::new(), held: Vec::new(), over: Vec::new(), begun: Vec::new() }
    }

    /// Returns whether the check may have a row in `awty_internal.check_stat` even before its first run.
    pub fn is_noted(&self, check: i64) -> bool {
        self.found.get(&check).is_some_and(|(pending, _)| pending.occurrence.passed.is_some())
    }

    pub fn next_of(&self, check: i64) -> Option<bool> {
        self.begun.iter().find(|(ended, _)| *ended == check).map(|(_, held)| *held)
    }

    fn known(&self, check: i64) -> Option<&(Pending, Option<Repetition<Local>>)> {
        self.found.get(&check)
    }

    fn follow(&mut self, check: i64, next: Option<Time>) {
        if let Some((pending, _)) = self.found.get(&check) {
            if next.is_some() {
                self.begun.push((check, pending.held));
            }
            match next {
                Some(slot) if pending.held => self.held.push((pending.repetition.id, slot, check)),
                Some(slot) => self.next.push((pending.repetition.id, slot)),
                None => self.over.push(pending.repetition.id),
            }
        }
    }

    fn fate(&mut self, check: i64, after: occurrence::After) -> After {
        match after {
            occurrence::After::Again(slot) => After::Again(slot),
            occurrence::After::End { outcome, next } => {
                self.follow(check, next);
                After::End(outcome)
            }
        }
    }

    pub fn before(&mut self, check: i64, by_policy: Before, able_since: Time, now: Time) -> Decision {
        let Some((pending, Some(repetition))) = self.known(check) else { return Decision::Policy(by_policy) };
        match repetition.before(&pending.occurrence, &self.job.options.limits, able_since, now) {
            occurrence::Before::NotYet => Decision::Policy(Before::NotYet),
            occurrence::Before::Run => Decision::Policy(Before::Run),
            occurrence::Before::Replace(slot) => {
                self.follow(check, Some(slot));
                Decision::Replace
            }
            occurrence::Before::End { outcome, next } => {
                self.follow(check, next);
                Decision::Policy(Before::End(outcome))
            }
        }
    }

    pub fn after(&mut self, id: i64, check: &Check, answer: Answer, now: Time) -> After {
        let limits = &self.job.options.limits;
        let Some((pending, Some(repetition))) = self.known(id) else {
            return policy::after(check, limits, answer, now);
        };
        let after = repetition.after(&pending.occurrence, limits, answer, now);
        self.fate(id, after)
    }

    pub fn failed(&mut self, id: i64, check: &Check, how: Failed, now: Time) -> After {
        let limits = &self.job.options.limits;
        let Some((pending, Some(repetition))) = self.known(id) else {
            return policy::failed(check, limits, how, now);
        };
        let after = repetition.failed(&pending.occurrence, limits, how, now);
        self.fate(id, after)
    }

    /// The ended checks must already be deleted, because an entity can have only one pending check of a job.
    pub fn begin_next(self, now: Time) -> Option<Time> {
        if !self.over.is_empty() {
            repetition::remove(&self.over);
        }
        if !self.held.is_empty() {
            let (next, ended): (Vec<_>, Vec<_>) =
                self.held.iter().map(|&(id, slot, check)| ((id, slot), (id, check))).unzip();
            repetition::schedule(&next, true, now);
            hold::carry(&ended);
        }
        let first = self.next.iter().map(|(_, slot)| *slot).min()?;
        repetition::schedule(&self.next, false, now);
        failpoint!("run.next_begun");
        if first <= now {
            // Makes a worker search again after the commit, because the next check is already due, and a running search
            // may miss it.
            wakeup::at_commit(self.job.runner(), clock::to_timestamp(first));
        }
        Some(first)
    }
}
