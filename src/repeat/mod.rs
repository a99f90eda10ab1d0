//! Repetitions: what a stored one means, and how it goes on.
//!
//! - [`going_on`] books the end of an occurrence together with the beginning of the next one;
//! - [`own`] says which checks a run may change as its own;
//! - [`upkeep`] is what the maintainer does for them.
//!
//! Invariant (P11): while a repetition exists, exactly one check of its job and entity is pending or held. Who ends that check
//! inserts the next one, or removes the repetition, in the same transaction.
//! Does not: know when a moment comes (see `awty_core::repeat`), or hold SQL.

pub mod going_on;
pub mod own;
pub mod upkeep;

use crate::pg::zone::{self, Local};
use crate::store::repetition::{Stored, Terms};
use awty_core::Width;
use awty_core::repeat::{Plan, RepeatError, Repetition, Rhythm, jitter};
use std::cell::RefCell;
use std::collections::HashSet;

/// The rhythm that the terms give.
pub fn rhythm(terms: &Terms) -> Result<Rhythm, RepeatError> {
    Rhythm::new(terms.every, terms.cron.as_deref())
}

/// The repetition of a job and entity by these terms, in a zone that was found.
pub fn repetition(
    terms: &Terms,
    rhythm: Rhythm,
    zone: Local,
    [job, entity_name, entity_key]: [&str; 3],
    width: Width,
) -> Repetition<Local> {
    Repetition {
        plan: Plan::new(rhythm, zone, terms.starts, terms.ends),
        delay: jitter::delay(jitter::hash(job, entity_name, entity_key), terms.jitter),
        width,
        catch_up: terms.catch_up,
    }
}

/// What a stored repetition means at slots of that width; `None` where its zone is gone or its row makes no sense.
pub fn of(stored: &Stored, width: Width) -> Option<Repetition<Local>> {
    let zone = zone::find(&stored.terms.zone)?;
    let subject = [&*stored.job, &*stored.entity_name, &*stored.entity_key];
    Some(repetition(&stored.terms, rhythm(&stored.terms).ok()?, zone, subject, width))
}

/// Says once in each process that a repetition cannot go on.
pub fn say_stopped(stored: &Stored) {
    thread_local! {
        static SAID: RefCell<HashSet<i64>> = RefCell::default();
    }
    if SAID.with_borrow_mut(|said| said.insert(stored.id)) {
        pgrx::log!(
            "awty: the repetition of job \"{}\" for \"{}\" \"{}\" stands still: its time zone \"{}\" is gone, or its row is invalid",
            stored.job,
            stored.entity_name,
            stored.entity_key,
            stored.terms.zone
        );
    }
}
