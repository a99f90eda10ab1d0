//! Invariant: a call locks and writes checks in the order of their keys, so that two calls cannot deadlock.

use super::cancel;
use super::schedule::{due_after, inherit_occurrence, say_blocked, say_paused, say_slot, slot_of};
use crate::call::args::{Args, calls, is_too_large};
use crate::call::argument_limits::{MAX_ARGS, MAX_ENTITY_KEY, MAX_ENTITY_NAME, MAX_JOB, MAX_KEYS};
use crate::call::entity::Entity;
use crate::call::{own_checks, rights};
use crate::error::{Error, Label, Result};
use crate::pg::array::{self, JSONB, TEXT, TIME};
use crate::pg::subtransaction::unless_duplicate;
use crate::pg::text::Text;
use crate::pg::{catalog, clock};
use crate::repeat::statements::repetition;
use crate::shmem::wakeup;
use crate::store::job::Job;
use crate::store::many::{self, EntityCheck, NewChecks, Values};
use crate::store::{future_job, history};
use crate::{function, watch};
use awty_core::{Conflict, OnConflict, Outcome, Time, policy};
use pgrx::pg_sys;
use std::collections::HashMap;

calls! {
    fn schedule_many -> i64 = schedule_checks;
    fn cancel_many -> i64 = cancel_checks;
}

struct Keys {
    texts: Vec<pg_sys::Datum>,
    sorted: Vec<usize>,
}

impl Keys {
    /// Reads NULL as an empty list, because `array_agg()` over no rows returns NULL.
    fn of(args: &Args) -> Result<Self> {
        const ARGUMENT: &str = "entity_keys";
        let Some(datum) = args.datum(1) else { return Ok(Self { texts: Vec::new(), sorted: Vec::new() }) };
        // SAFETY: SQL declares the argument as text[].
        let texts = unsafe { array::elements(datum, TEXT) }.ok_or(Error::ArrayShape { argument: ARGUMENT })?;
        if texts.len() > MAX_KEYS {
            return Err(Error::TooManyKeys { max: MAX_KEYS });
        }
        let texts: Option<Vec<pg_sys::Datum>> = texts.into_iter().collect();
        let texts = texts.ok_or(Error::Null { argument: ARGUMENT })?;
        // SAFETY: each text lives as long as the call's argument.
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

    fn array(&self, places: &[usize]) -> pg_sys::Datum {
        // SAFETY: every value is a text.
        unsafe { array::build(places.iter().map(|place| Some(self.texts[*place])), TEXT) }
    }
}

fn text(key: pg_sys::Datum) -> Option<Text> {
    // SAFETY: `key` is an element of a text array.
    unsafe { pgrx::FromDatum::from_datum(key, false) }
}

fn label(key: pg_sys::Datum) -> String {
    text(key).map(|text| text.to_string()).unwrap_or_default()
}

struct Request<'a> {
    job: &'a Job,
    entity_name: &'a Text,
    keys: Keys,
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
    own_checks::keep(&job, &entity_name)?;
    function::check(&job)?;
    if keys.texts.is_empty() {
        return Ok(0);
    }
    let now = clock::now();
    let (times, after) = due_times(args, keys.texts.len())?;
    let slots: Vec<Time> = times.into_iter().map(|time| slot_of(&job, time, now)).collect::<Result<_>>()?;
    let job_args = job_args(args, keys.texts.len())?;
    let earliest = slots.iter().min().copied().unwrap_or(now);
    let wanted = Request { job: &job, entity_name: &entity_name, keys, slots, args: job_args, on_conflict, now };
    let written = wanted.write()?;
    wakeup::at_commit(job.runner(), clock::to_timestamp(earliest));
    rights::warn_if_nothing_runs();
    if job.paused {
        say_paused(&job);
    }
    say_blocked(&job, &entity_name, now);
    if after.is_some_and(|after| policy::is_surprising(after, earliest, now)) {
        say_slot(&job, earliest);
    }
    Ok(written)
}

fn due_times(args: &Args, keys: usize) -> Result<(Vec<Time>, Option<chrono::TimeDelta>)> {
    match (args.datum(3), args.datum(4)) {
        (Some(at), None) => {
            // SAFETY: SQL declares the argument as timestamptz[].
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

fn job_args(args: &Args, keys: usize) -> Result<Option<Vec<Option<pg_sys::Datum>>>> {
    let Some(datum) = args.datum(5) else { return Ok(None) };
    // SAFETY: SQL declares the argument as jsonb[].
    let values = unsafe { array::elements(datum, JSONB) }.filter(|values| values.len() == keys);
    let values = values.ok_or(Error::ArrayShape { argument: "args" })?;
    // SAFETY: every value is an element of a jsonb array.
    if values.iter().flatten().any(|value| unsafe { is_too_large(*value, MAX_ARGS) }) {
        return Err(Error::ArgsTooLarge { max: MAX_ARGS });
    }
    Ok(Some(values))
}

impl Request<'_> {
    fn slot(&self, place: usize) -> Time {
        if self.slots.len() == 1 { self.slots[0] } else { self.slots[place] }
    }

    fn write(&self) -> Result<i64> {
        let checks = NewChecks {
            job: self.job.name.datum(),
            entity_name: self.entity_name.datum(),
            scheduled_by: catalog::current_role(),
            scheduled_at: self.now,
        };
        let places = &self.keys.sorted;
        // Tries a plain INSERT first, because usually no check is pending, and ON CONFLICT takes twice as long.
        if many::pending(&checks, self.keys.array(places)).is_empty()
            && unless_duplicate(|| many::insert(&checks, self.values(places))).is_some()
        {
            wakeup::count_written(places.len() as u64);
            return Ok(places.len() as i64);
        }
        let mut inserted = many::insert_or_lock(&checks, self.values(places));
        inserted.sort_unstable();
        let mut inherit_occurrence = Vec::new();
        let replaced = self.make_room(&checks, &inserted, &mut inherit_occurrence)?;
        if !replaced.is_empty() {
            many::insert(&checks, self.values(&replaced));
            self.inherit_occurrence(&inherit_occurrence);
        }
        let written = inserted.len() + replaced.len();
        wakeup::count_written(written as u64);
        Ok(written as i64)
    }

    fn values(&self, places: &[usize]) -> Values {
        let slot = |place: &usize| Some(pg_sys::Datum::from(clock::to_timestamp(self.slots[*place])));
        // SAFETY: every value is a timestamptz.
        let slots = (self.slots.len() > 1).then(|| unsafe { array::build(places.iter().map(slot), TIME) });
        let args = self.args.as_ref();
        // SAFETY: every value is an element of a jsonb array.
        let args = args.map(|args| unsafe { array::build(places.iter().map(|place| args[*place]), JSONB) });
        Values { keys: self.keys.array(places), slots, args, slot: self.slots[0] }
    }

    fn make_room(
        &self,
        checks: &NewChecks,
        inserted: &[i64],
        inherit_occurrence: &mut Vec<(usize, repetition::Pending)>,
    ) -> Result<Vec<usize>> {
        let places = &self.keys.sorted;
        let mut replaced = Vec::new();
        for (place, id, slot) in many::pending(checks, self.keys.array(places)) {
            let place = places[place];
            if inserted.binary_search(&id).is_ok() {
                continue;
            }
            match self.on_conflict.decide(slot, self.slot(place)) {
                Conflict::Keep => {}
                Conflict::Replace => replaced.push((id, place)),
                Conflict::Refuse => {
                    let (job, entity) = (self.job.name.to_string(), self.label(place));
                    return Err(Error::AlreadyPending { job, entity, id });
                }
            }
        }
        let (ids, places): (Vec<i64>, Vec<usize>) = replaced.iter().copied().unzip();
        if self.job.repeats {
            let at: HashMap<i64, usize> = replaced.into_iter().collect();
            let found = repetition::of_checks(&ids).into_iter();
            inherit_occurrence.extend(found.filter_map(|pending| Some((*at.get(&pending.check)?, pending))));
        }
        wakeup::count_ended(ids.len() as u64);
        history::end(&ids, Outcome::Replaced, self.now, None);
        Ok(places)
    }

    fn inherit_occurrence(&self, replaced: &[(usize, repetition::Pending)]) {
        for (place, pending) in replaced {
            let check = future_job::lock_of(self.entity_name.datum(), self.keys.texts[*place], &self.job.name);
            if let Some(check) = check {
                inherit_occurrence(check, pending, self.slot(*place));
            }
        }
    }

    fn label(&self, place: usize) -> Label {
        Label { name: self.entity_name.to_string(), key: label(self.keys.texts[place]) }
    }
}

fn cancel_checks(args: &Args) -> Result<i64> {
    rights::gate_write("awty.cancel_many()")?;
    let entity_name = args.name(0, "entity_name", MAX_ENTITY_NAME)?;
    let keys = Keys::of(args)?;
    let name = args.optional_name(2, "job", MAX_JOB)?;
    let mut jobs: HashMap<Text, Option<Job>> = HashMap::new();
    if let Some(name) = &name {
        let job = rights::schedulable_job(name)?;
        if watch::silence::applies(&job, &entity_name) {
            let keys: Vec<Text> = keys.sorted.iter().filter_map(|place| text(keys.texts[*place])).collect();
            return Ok(watch::silence::rows(&job, &entity_name, &keys));
        }
        jobs.insert(name.clone(), Some(job));
    }
    let found = many::of_entities(entity_name.datum(), keys.array(&keys.sorted), name.as_ref());
    for EntityCheck { job, .. } in &found {
        // Does not cancel checks of rules if the caller names no job, so that rules keep watching their rows.
        let may = |job: &Job| rights::may_schedule(job) && !own_checks::is_rules(job);
        jobs.entry(job.clone()).or_insert_with_key(|job| rights::shared_job(job, may));
    }
    let found = found.iter().filter_map(|found| Some((found, jobs.get(&found.job)?.as_ref()?)));
    let ids: Vec<i64> = if jobs.values().flatten().any(|job| job.repeats) {
        // Locks each check by its key instead of its id, because a run may have replaced the check by the next check of
        // its repetition.
        let lock = |(found, job): (&EntityCheck, &Job)| {
            let key = text(keys.texts[keys.sorted[found.place]])?;
            cancel::lock(&Entity { name: entity_name.clone(), key }, job)
        };
        found.filter_map(lock).collect()
    } else {
        many::lock_in_order(found.filter_map(|(found, _)| found.check).collect())
    };
    wakeup::count_ended(ids.len() as u64);
    history::end(&ids, Outcome::Cancelled, clock::now(), None);
    Ok(ids.len() as i64)
}
