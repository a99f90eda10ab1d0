//! Invariant: before a call changes anything, it checks the length of each array. An array is NULL, or as long as the
//! array of leases.

use crate::call::args::Args;
use crate::call::argument_limits::{MAX_CLAIMED_JOBS, MAX_JOB, MAX_LEASES};
use crate::call::rights;
use crate::error::{Error, LeaseError, Result};
use crate::pg::array::{self, Element, INT8, TEXT};
use crate::pg::text::Text;
use crate::store::job::Job;
use pgrx::{FromDatum, pg_sys};

type Elements = Vec<Option<pg_sys::Datum>>;

fn elements(datum: pg_sys::Datum, element: Element, argument: &'static str) -> Result<Elements> {
    // SAFETY: each caller names the declared type of the argument.
    Ok(unsafe { array::elements(datum, element) }.ok_or(LeaseError::Unequal { argument })?)
}

/// `array_agg()` over no rows returns NULL, so NULL means no leases.
pub fn leases(args: &Args) -> Result<Vec<Option<i64>>> {
    let Some(datum) = args.datum(0) else { return Ok(Vec::new()) };
    let numbers = elements(datum, INT8, "leases")?;
    if numbers.len() > MAX_LEASES {
        return Err(LeaseError::TooMany { argument: "leases", max: MAX_LEASES }.into());
    }
    Ok(numbers.into_iter().map(|number| number.map(|number| number.value() as i64)).collect())
}

pub fn each(args: &Args, index: usize, element: Element, argument: &'static str, leases: usize) -> Result<Elements> {
    let Some(datum) = args.datum(index) else { return Ok(vec![None; leases]) };
    let values = elements(datum, element, argument)?;
    if values.len() != leases {
        return Err(LeaseError::Unequal { argument }.into());
    }
    Ok(values)
}

/// Returns the jobs, and whether a claim of them has the limits of a claim of several jobs. A job that is named twice
/// has them as well: so the gateway claims from one of its many jobs.
pub fn jobs(args: &Args) -> Result<(Vec<Job>, bool)> {
    const ARGUMENT: &str = "jobs";
    let names = elements(args.datum(0).ok_or(Error::Null { argument: ARGUMENT })?, TEXT, ARGUMENT)?;
    if names.len() > MAX_CLAIMED_JOBS {
        return Err(LeaseError::TooMany { argument: ARGUMENT, max: MAX_CLAIMED_JOBS }.into());
    }
    let is_shared = names.len() > 1;
    let mut jobs = Vec::with_capacity(names.len());
    for name in names {
        // SAFETY: the datum is an element of an array of texts.
        let name = unsafe { Text::from_datum(name.ok_or(Error::Null { argument: ARGUMENT })?, false) };
        let name =
            name.filter(|name| name.len() <= MAX_JOB).ok_or(Error::TooLong { argument: ARGUMENT, max: MAX_JOB })?;
        jobs.push(rights::claimable_job(&name)?);
    }
    jobs.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    jobs.dedup_by(|one, other| one.name == other.name);
    Ok((jobs, is_shared))
}
