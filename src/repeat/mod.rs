//! Invariant: a row of `awty_internal.repetition` has exactly one check, which is pending or held. The transaction that
//! ends this check inserts the next check or removes the row.

mod api;
pub mod continuation;
mod forecast;
pub mod own_run;
pub mod replaced;
pub mod statements;
mod terms;
pub mod upkeep;

use self::statements::repetition::{Definition, StoredRepetition};
use crate::calendar;
use crate::pg::clock;
use crate::pg::text::Text;
use crate::pg::zone::{self, Local};
use awty_core::Width;
use awty_core::calendar::Calendar;
use awty_core::repeat::jitter::{self, Jitter};
use awty_core::repeat::{Plan, RepeatError, Repetition, Rhythm};
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

pub fn rhythm(terms: &Definition) -> Result<Rhythm, RepeatError> {
    Rhythm::new(terms.every, terms.cron.as_deref())
}

pub fn repetition(
    terms: &Definition,
    rhythm: Rhythm,
    zone: Local,
    calendar: Option<Rc<Calendar<Local>>>,
    [job, entity_name, entity_key]: [&str; 3],
    width: Width,
) -> Repetition<Local> {
    Repetition {
        plan: Plan::new(rhythm, zone, terms.starts, terms.ends).within(calendar),
        jitter: Jitter { hash: jitter::hash(job, entity_name, entity_key), at_most: terms.jitter },
        width,
        catch_up: terms.catch_up,
    }
}

/// Returns `None` if PostgreSQL does not know the time zone, the calendar is closed at all planned times, or the row
/// is invalid.
pub fn of(stored: &StoredRepetition, width: Width) -> Option<Repetition<Local>> {
    let terms = &stored.terms;
    let zone = zone::find(&terms.zone)?;
    let subject = [&stored.job, &stored.entity_name, &stored.entity_key].map(Text::to_string);
    let calendar = terms.calendar.as_ref().and_then(stored_calendar);
    let repetition =
        repetition(terms, rhythm(terms).ok()?, zone, calendar, subject.each_ref().map(String::as_str), width);
    (!repetition.plan.is_shut(clock::now())).then_some(repetition)
}

/// All time is open if the calendar's row was deleted by hand.
fn stored_calendar(name: &Text) -> Option<Rc<Calendar<Local>>> {
    calendar::find(name).map(|known| Rc::clone(&known.calendar))
}

pub fn say_stopped(stored: &StoredRepetition) {
    thread_local! {
        static SAID: RefCell<HashSet<i64>> = RefCell::default();
    }
    if SAID.with_borrow_mut(|said| said.insert(stored.id)) {
        pgrx::log!(
            "awty: the repetition of job \"{}\" for \"{}\" \"{}\" has stopped: its time zone \"{}\" is gone, its calendar leaves no moment, or its row is invalid",
            stored.job,
            stored.entity_name,
            stored.entity_key,
            stored.terms.zone
        );
    }
}
