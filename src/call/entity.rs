//! Invariant: if the caller may not see a check's job, the check counts as missing.

use super::args::Args;
use super::argument_limits::{MAX_ENTITY_NAME, MAX_JOB};
use super::rights;
use crate::error::{Error, Label, Result};
use crate::pg::text::Text;
use crate::store::future_job;
use crate::store::job::Job;

pub struct Entity {
    pub name: Text,
    pub key: Text,
}

impl Entity {
    pub fn of(args: &Args) -> Result<Self> {
        Ok(Self { name: args.name(0, "entity_name", MAX_ENTITY_NAME)?, key: args.key(1, "entity_key")? })
    }

    pub fn label(&self) -> Label {
        Label { name: self.name.to_string(), key: self.key.to_string() }
    }

    /// Keeps the names of the returned jobs from other roles until the transaction ends.
    pub fn jobs(&self, may: impl Fn(&Job) -> bool) -> Vec<Job> {
        future_job::jobs_of_entity(self.name.datum(), self.key.datum())
            .iter()
            .filter_map(|name| rights::shared_job(name, &may))
            .collect()
    }

    /// Returns the named job. If no job is named, returns the only job of the entity for which the caller may schedule
    /// checks.
    pub fn one_job(&self, args: &Args, function: &'static str) -> Result<Job> {
        if let Some(name) = args.optional_name(2, "job", MAX_JOB)? {
            return rights::schedulable_job(&name);
        }
        let mut jobs = self.jobs(rights::may_schedule);
        // Sorts the caller's own jobs first, because the error's hint suggests the first job of this list. The list can
        // also have jobs of other roles that have given the caller a right.
        jobs.sort_by_key(|job| !rights::owns(job));
        match jobs.len() {
            0 => Err(self.missing(None)),
            1 => Ok(jobs.remove(0)),
            _ => Err(Error::ManyChecks {
                entity: self.label(),
                jobs: jobs.iter().map(|job| job.name.to_string()).collect(),
                function,
            }),
        }
    }

    pub fn missing(&self, job: Option<&Text>) -> Error {
        Error::NoCheck { entity: self.label(), job: job.map(ToString::to_string) }
    }
}
