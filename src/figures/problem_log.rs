//! Invariant: with `awty.log_failures = codes`, log entries contain only numbers, outcomes and SQLSTATEs.

use crate::error::Label;
use crate::pg::catch::Failure;
use crate::pg::report::report;
use crate::pg::text::Text;
use crate::pg::{catalog, clock, unbound};
use crate::settings::{self, LogFailures};
use crate::shmem;
use crate::store::future_job;
use awty_core::{Outcome, Passed, Time};
use pgrx::prelude::PgLogLevel;
use std::ffi::CString;

const WARNING: &str = "01000";

pub struct Problem {
    pub id: i64,
    pub entity: Label,
    pub fate: Fate,
    pub attempt: (u32, u32),
    pub failure: Option<Failure>,
}

#[derive(Clone, Copy)]
pub enum Fate {
    Retry(Time),
    End(Outcome),
}

#[derive(Default)]
pub struct Problems {
    first: Option<Problem>,
    count: Passed,
}

impl Problems {
    pub fn add(&mut self, is_end: bool, problem: impl FnOnce() -> Problem) {
        self.count.events += 1;
        self.count.ends += u64::from(is_end);
        if self.first.is_none() && settings::log_failures() != LogFailures::None {
            self.first = Some(problem());
        }
    }

    pub fn count(&self) -> Passed {
        self.count
    }

    pub fn tell(&mut self, job: &Text) {
        let Some(problem) = self.first.take() else { return };
        let (count, now, mono) = (std::mem::take(&mut self.count), clock::now(), clock::mono());
        let here = catalog::database();
        let told = shmem::write(|shared| shared.may_log(here, job.as_bytes(), count, now, mono));
        if let Some(before) = told {
            problem.write(job, before);
        }
    }
}

impl Problem {
    fn write(&self, job: &Text, before: Passed) {
        let names_all = match settings::log_failures() {
            LogFailures::All => true,
            LogFailures::Codes => false,
            LogFailures::None => return,
        };
        let level = if matches!(self.fate, Fate::End(_)) { PgLogLevel::WARNING } else { PgLogLevel::LOG };
        let code = self.failure.as_ref().map_or(WARNING, |failure| failure.sqlstate.as_str());
        let mut detail: Vec<String> = Vec::new();
        if self.failure.is_some() {
            detail.push(format!("SQLSTATE {code}."));
        }
        if names_all && self.attempt.0 > 0 {
            let of = if self.attempt.1 > 0 { format!(" of {}", self.attempt.1) } else { String::new() };
            detail.push(format!("Attempt {}{of}.", self.attempt.0));
        }
        if let Fate::Retry(slot) = self.fate {
            detail.push(format!("Next try at {}.", slot.format("%Y-%m-%d %H:%M:%S UTC")));
        }
        if before.events > 0 {
            detail.push(format!("And {} more of this job in the minute before.", grouped(before.events)));
        }
        let what = match self.fate {
            Fate::Retry(_) => "failed in a run".to_owned(),
            Fate::End(outcome) => format!("ended as {outcome}"),
        };
        let (mut message, mut context) = (format!("awty: check {} {what}", self.id), "");
        if names_all {
            let Label { name, key } = &self.entity;
            let entity = Label { name: shortened(name), key: shortened(key) };
            let job = shortened(&job.to_string());
            message = format!("awty: check {} of job \"{job}\" for {entity} {what}", self.id);
            if let Some(failure) = &self.failure {
                message += ": ";
                message += &failure.message;
                context = &failure.context;
            }
        }
        report(level, code, &message, &detail.join(" "), context);
    }
}

pub fn tell_summaries() {
    let (here, mono) = (catalog::database(), clock::mono());
    for (job, passed) in shmem::write(|shared| shared.log_summaries(here, mono)) {
        let job = match settings::log_failures() {
            LogFailures::All => format!("of job \"{}\" ", String::from_utf8_lossy(&job)),
            LogFailures::Codes => String::new(),
            LogFailures::None => continue,
        };
        let level = if passed.ends > 0 { PgLogLevel::WARNING } else { PgLogLevel::LOG };
        let message = format!(
            "awty: and {} more failed runs and problems {job}in the last minute, {} of them ends of checks",
            grouped(passed.events),
            grouped(passed.ends)
        );
        report(level, WARNING, &message, "", "");
    }
}

fn shortened(name: &str) -> String {
    name.chars().take(200).collect()
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let parts: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|part| std::str::from_utf8(part).ok()).collect();
    parts.join(",")
}

/// Notifies the clients that listen for the given checks. Returns problems that the caller must log after the commit.
pub fn ends(ids: &[i64], outcome: Outcome, failure: &Failure) -> Vec<(Text, Problems)> {
    let mut told: Vec<(Text, Problems)> = Vec::new();
    let mut checks = if ids.is_empty() { Vec::new() } else { future_job::describe(ids) };
    checks.sort_unstable_by(|one, other| one.job.cmp(&other.job));
    for check in checks {
        notify(check.notify.as_ref(), check.id);
        if told.last().is_none_or(|(job, _)| *job != check.job) {
            told.push((check.job.clone(), Problems::default()));
        }
        if let Some((_, problems)) = told.last_mut() {
            let (id, entity, failure) = (check.id, check.entity, Some(failure.clone()));
            let fate = Fate::End(outcome);
            problems.add(true, || Problem { id, entity, fate, attempt: (0, 0), failure });
        }
    }
    told
}

/// The payload contains no name, because any role may listen to the channel.
pub fn notify(channel: Option<&Text>, id: i64) {
    let Some(channel) = channel else { return };
    if let (Ok(channel), Ok(payload)) = (CString::new(channel.as_bytes()), CString::new(id.to_string())) {
        unbound::async_notify(&channel, &payload);
    }
}
