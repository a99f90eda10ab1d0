//! `awty.schedule_many()` and `awty.cancel_many()`: checks of many entities in a few statements.
//!
//! Invariant: keys are sorted before anything is written or locked. Nothing is written if anything is refused.

use super::args::{Args, MAX_ARGS, MAX_ENTITY_KEY, MAX_ENTITY_NAME, MAX_JOB};
use super::rights;
use super::schedule::{due_after, say_slot, stand_for};
use crate::error::{Error, Label, Result};
use crate::function;
use crate::pg::array::{self, JSONB, TEXT, TIME};
use crate::pg::subtransaction::{has_one_snapshot, unless_duplicate};
use crate::pg::text::Text;
use crate::pg::{catalog, clock};
use crate::shmem::wakeup;
use crate::store::job::{self, Job};
use crate::store::many::{self, NewChecks};
use crate::store::{future_job, history, repetition};
use awty_core::{Conflict, OnConflict, Outcome, Time, policy};
use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use std::collections::HashMap;

/// The most keys in one call.
const MAX_KEYS: usize = 1_000_000;
/// How often checks may be taken from under a call before the call gives up.
const ROUNDS: u32 = 100;

#[pg_extern(sql = false)]
fn schedule_many(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<i64, ErrorReport> {
    Ok(schedule_checks(&Args::new(fcinfo))?)
}

#[pg_extern(sql = false)]
fn cancel_many(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<i64, ErrorReport> {
    Ok(cancel_checks(&Args::new(fcinfo))?)
}

/// The keys of a call.
struct Keys {
    texts: Vec<pg_sys::Datum>,
    /// Their places in the order in which they are written.
    sorted: Vec<usize>,
}

impl Keys {
    /// The second argument. NULL, as `array_agg()` makes it of no rows, is no keys.
    fn of(args: &Args) -> Result<Self> {
        const ARGUMENT: &str = "entity_keys";
        let Some(datum) = args.datum(1) else { return Ok(Self { texts: Vec::new(), sorted: Vec::new() }) };
        // SAFETY: the functions are declared with text[].
        let texts = unsafe { array::elements(datum, TEXT) }.ok_or(Error::ArrayShape { argument: ARGUMENT })?;
        if texts.len() > MAX_KEYS {
            return Err(Error::TooManyKeys { max: MAX_KEYS });
        }
        let texts: Option<Vec<pg_sys::Datum>> = texts.into_iter().collect();
        let texts = texts.ok_or(Error::Null { argument: ARGUMENT })?;
        // SAFETY: elements of the argument, which lives as long as the call.
        let bytes: Vec<&[u8]> = texts.iter().map(|text| unsafe { array::bytes(*text) }).collect();
        for key in &bytes {
            match key.len() {
                0 => return Err(Error::Empty { argument: ARGUMENT }),
                1..=MAX_ENTITY_KEY => {}
                _ => return Err(Error::TooLong { argument: ARGUMENT, max: MAX_ENTITY_KEY }),
            }
        }
        let mut sorted: Vec<usize> = (0..texts.len()).collect();
        sorted.sort_unstable_by_key(|place| bytes[*place]);
        if let Some(twice) = sorted.windows(2).find(|pair| bytes[pair[0]] == bytes[pair[1]]) {
            return Err(Error::KeyTwice { key: label(texts[twice[0]]) });
        }
        Ok(Self { texts, sorted })
    }

    /// Some of them as an array.
    fn array(&self, places: &[usize]) -> pg_sys::Datum {
        // SAFETY: texts.
        unsafe { array::build(places.iter().map(|place| Some(self.texts[*place])), TEXT) }
    }
}

/// A key for an error.
fn label(text: pg_sys::Datum) -> String {
    // SAFETY: a text.
    unsafe { pgrx::FromDatum::from_datum(text, false) }.map(|text: Text| text.to_string()).unwrap_or_default()
}

/// What is to be written.
struct Wanted<'a> {
    job: &'a Job,
    entity_name: &'a Text,
    keys: Keys,
    /// One for each key, or one for all.
    slots: Vec<Time>,
    args: Option<Vec<Option<pg_sys::Datum>>>,
    on_conflict: OnConflict,
    now: Time,
}

fn schedule_checks(args: &Args) -> Result<i64> {
    rights::gate_write("awty.schedule_many()")?;
    let entity_name = args.name(0, "entity_name", MAX_ENTITY_NAME)?;
    let keys = Keys::of(args)?;
    let name = args.name(2, "job", MAX_JOB)?;
    let on_conflict: OnConflict = args
        .choice(6, "on_conflict", "replace, keep, earliest, latest, error")?
        .ok_or(Error::Null { argument: "on_conflict" })?;
    let job = rights::schedulable_job(&name)?;
    function::of_job(&job)?;
    if keys.texts.is_empty() {
        return Ok(0);
    }
    let now = clock::now();
    let (times, after) = due_times(args, keys.texts.len())?;
    let slot = |time| {
        policy::schedule(time, &job.options.limits, now).map_err(|too_far| Error::TooFar {
            job: job.name.to_string(),
            time,
            max_horizon: too_far.horizon(),
        })
    };
    let slots: Vec<Time> = times.into_iter().map(slot).collect::<Result<_>>()?;
    let job_args = job_args(args, keys.texts.len())?;
    let earliest = slots.iter().min().copied().unwrap_or(now);
    let wanted = Wanted { job: &job, entity_name: &entity_name, keys, slots, args: job_args, on_conflict, now };
    let written = wanted.write()?;
    wakeup::at_commit(job.role, clock::to_timestamp(earliest));
    rights::warn_if_nothing_runs();
    if after.is_some_and(|after| policy::is_surprising(after, earliest, now)) {
        say_slot(&job, earliest);
    }
    Ok(written)
}

/// One time for each key by `at`, or one for all by `after`.
fn due_times(args: &Args, keys: usize) -> Result<(Vec<Time>, Option<chrono::TimeDelta>)> {
    match (args.datum(3), args.datum(4)) {
        (Some(at), None) => {
            // SAFETY: the function is declared with timestamptz[].
            let times = unsafe { array::elements(at, TIME) }.filter(|times| times.len() == keys);
            let time = |time: Option<pg_sys::Datum>| {
                let time = time.ok_or(Error::Null { argument: "at" })?;
                clock::from_timestamp(time.value() as i64).ok_or(Error::OutOfRange { argument: "at" })
            };
            let times = times.ok_or(Error::ArrayShape { argument: "at" })?;
            Ok((times.into_iter().map(time).collect::<Result<_>>()?, None))
        }
        (None, Some(after)) => due_after(args, after).map(|(time, after)| (vec![time], Some(after))),
        (both, _) => Err(Error::AtOrAfter { both: both.is_some() }),
    }
}

/// One for each key, or none at all.
fn job_args(args: &Args, keys: usize) -> Result<Option<Vec<Option<pg_sys::Datum>>>> {
    let Some(datum) = args.datum(5) else { return Ok(None) };
    // SAFETY: the function is declared with jsonb[].
    let values = unsafe { array::elements(datum, JSONB) }.filter(|values| values.len() == keys);
    let values = values.ok_or(Error::ArrayShape { argument: "args" })?;
    if values.iter().flatten().any(|value| super::args::size(*value) > MAX_ARGS) {
        return Err(Error::ArgsTooLarge { max: MAX_ARGS });
    }
    Ok(Some(values))
}

impl Wanted<'_> {
    fn slot(&self, place: usize) -> Time {
        if self.slots.len() == 1 { self.slots[0] } else { self.slots[place] }
    }

    /// Writes the checks, dealing with those that may be pending already as `on_conflict` says. Returns how many were written.
    fn write(&self) -> Result<i64> {
        let checks = NewChecks {
            job: self.job.name.datum(),
            entity_name: self.entity_name.datum(),
            scheduled_by: catalog::current_role(),
            scheduled_at: self.now,
        };
        let (mut left, mut written) = (self.keys.sorted.clone(), 0);
        let mut stand_for = Vec::new();
        for _ in 0..ROUNDS {
            let mut is_pending = vec![false; left.len()];
            many::pending(&checks, self.keys.array(&left)).into_iter().for_each(|place| is_pending[place] = true);
            let fresh = without(&left, &is_pending);
            if !fresh.is_empty() {
                if unless_duplicate(|| self.insert(&checks, &fresh)).is_none() {
                    // Somebody has written one of them meanwhile, which the next round sees.
                    if has_one_snapshot() {
                        break;
                    }
                    continue;
                }
                wakeup::count_written(fresh.len() as u64);
                written += fresh.len() as i64;
            }
            is_pending.iter_mut().for_each(|is_pending| *is_pending = !*is_pending);
            left = self.make_room(&checks, &without(&left, &is_pending), &mut stand_for)?;
            if left.is_empty() {
                self.stand_for(&stand_for);
                return Ok(written);
            }
        }
        Err(Error::Contended {
            job: self.job.name.to_string(),
            entity: self.label(left.first().copied().unwrap_or_default()),
        })
    }

    fn insert(&self, checks: &NewChecks, places: &[usize]) {
        let slot = |place: &usize| Some(pg_sys::Datum::from(clock::to_timestamp(self.slots[*place])));
        // SAFETY: times, and values of the array of jsonb.
        let slots = (self.slots.len() > 1).then(|| unsafe { array::build(places.iter().map(slot), TIME) });
        let args = self.args.as_ref();
        // SAFETY: as above.
        let args = args.map(|args| unsafe { array::build(places.iter().map(|place| args[*place]), JSONB) });
        many::insert(checks, self.keys.array(places), slots, args, self.slots[0]);
    }

    /// Ends the pending checks that are to be replaced. Returns the places whose checks are to be written now: of those, and of those
    /// that are not pending any more.
    fn make_room(
        &self,
        checks: &NewChecks,
        places: &[usize],
        stand_for: &mut Vec<(usize, repetition::Pending)>,
    ) -> Result<Vec<usize>> {
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let mut at = HashMap::new();
        let mut is_kept = vec![false; places.len()];
        let mut replaced = Vec::new();
        for (place, id, slot) in many::lock(checks, self.keys.array(places)) {
            match self.on_conflict.decide(slot, self.slot(places[place])) {
                Conflict::Keep => is_kept[place] = true,
                Conflict::Replace => {
                    replaced.push(id);
                    at.insert(id, places[place]);
                }
                Conflict::Refuse => {
                    let (job, entity) = (self.job.name.to_string(), self.label(places[place]));
                    return Err(Error::AlreadyPending { job, entity, id });
                }
            }
        }
        if self.job.repeats {
            let found = repetition::of_checks(&replaced).into_iter();
            stand_for.extend(found.filter_map(|pending| Some((*at.get(&pending.check)?, pending))));
        }
        wakeup::count_ended(replaced.len() as u64);
        history::end(&replaced, Outcome::Replaced, self.now, None);
        Ok(without(places, &is_kept))
    }

    /// The checks that have taken the place of occurrences stand for them.
    fn stand_for(&self, replaced: &[(usize, repetition::Pending)]) {
        for (place, pending) in replaced {
            let check = future_job::lock_of(self.entity_name.datum(), self.keys.texts[*place], &self.job.name);
            if let Some(check) = check {
                stand_for(check, pending, self.slot(*place));
            }
        }
    }

    fn label(&self, place: usize) -> Label {
        Label { name: self.entity_name.to_string(), key: label(self.keys.texts[place]) }
    }
}

/// The places that are not marked.
fn without(places: &[usize], marked: &[bool]) -> Vec<usize> {
    places.iter().zip(marked).filter(|(_, marked)| !**marked).map(|(place, _)| *place).collect()
}

/// Ends the pending checks of entities. Without a job, those of jobs that the caller may not schedule stay, unseen.
fn cancel_checks(args: &Args) -> Result<i64> {
    rights::gate_write("awty.cancel_many()")?;
    let entity_name = args.name(0, "entity_name", MAX_ENTITY_NAME)?;
    let keys = Keys::of(args)?;
    let name = args.optional_name(2, "job", MAX_JOB)?;
    if let Some(name) = &name {
        rights::schedulable_job(name)?;
    }
    // Of each job: may it be cancelled, and is it repeated?
    let mut jobs: HashMap<Text, (bool, bool)> = HashMap::new();
    let mut look = |job: Text| {
        let look = |job: &Text| match job::find(job) {
            Some(Ok(job)) => (name.is_some() || rights::may_schedule(&job), job.repeats),
            _ => (name.is_some(), false),
        };
        *jobs.entry(job).or_insert_with_key(look)
    };
    let (mut count, mut repeats) = (0, false);
    for _ in 0..ROUNDS {
        let found = many::of_entities(entity_name.datum(), keys.array(&keys.sorted), name.as_ref());
        // Only what may be cancelled is locked, so that nobody holds up checks of others.
        let mut may_cancel = |job| {
            let (may, repeated) = look(job);
            repeats |= may && repeated;
            may
        };
        let ids: Vec<i64> = found.into_iter().filter_map(|(id, job)| may_cancel(job).then_some(id)).collect();
        if ids.is_empty() {
            break;
        }
        let ids = many::lock_in_order(ids);
        if repeats {
            let ended: Vec<i64> = repetition::of_checks(&ids).iter().map(|pending| pending.repetition.id).collect();
            repetition::remove(&ended);
        }
        wakeup::count_ended(ids.len() as u64);
        history::end(&ids, Outcome::Cancelled, clock::now(), None);
        count += ids.len() as i64;
        // Where a lock had to wait for the end of a run, the next occurrence is pending by now.
        if !repeats {
            break;
        }
    }
    Ok(count)
}
