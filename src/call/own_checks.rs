//! The checks by which awty itself keeps a rule true. Their job is that of the rule.

use super::rights;
use crate::error::{Error, Result};
use crate::pg::text::Text;
use crate::store::job::Job;

/// Schema and name of the function of each rule's job.
pub const FUNCTION: (&str, &str) = ("awty_internal", "check_rows");

/// Value of `entity_name` by which awty finds the check that adds the existing rows.
pub const BACKFILL: &str = "awty.backfill";
/// Value of `entity_name` by which awty finds the check that compares the open alerts with their rows.
pub const SWEEP: &str = "awty.sweep";
/// Value of `entity_name` of the checks that call `call_cleared`. The key is the id of the alert.
pub const CLEARED: &str = "awty.cleared";

pub fn is_rules(job: &Job) -> bool {
    (job.schema.as_bytes(), job.function.as_bytes()) == (FUNCTION.0.as_bytes(), FUNCTION.1.as_bytes())
}

pub fn is_own(entity_name: &[u8]) -> bool {
    [BACKFILL, SWEEP, CLEARED].map(str::as_bytes).contains(&entity_name)
}

/// Refuses a caller who does not own the rule's job.
pub fn keep(job: &Job, entity_name: &Text) -> Result<()> {
    if is_own(entity_name.as_bytes()) && is_rules(job) && !rights::owns(job) {
        return Err(Error::NotOwner { job: job.name.to_string() });
    }
    Ok(())
}
