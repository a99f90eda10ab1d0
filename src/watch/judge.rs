//! Runs the job of a rule: reads the rows of due checks, and raises alerts for late rows.

use super::statements::alert::{self, Open};
use super::statements::raised::{self, Raised};
use super::statements::rule_check::{self, RuleCheck, ScheduledBy};
use super::stops::{self, Clocks, Seeing};
use super::{BACKFILL, CLEARED, SWEEP, call, cleared, sweep, untold, walk};
use crate::error::Result;
use crate::pg::text::Text;
use crate::pg::{clock, unbound};
use crate::rule::Watched;
use crate::shmem::wakeup;
use awty_core::Time;
use awty_core::watch::{Alert, RowState, Verdict, judge};
use std::collections::HashMap;

pub const MET: Time = Time::MIN_UTC;

pub fn answers(watched: &Watched, given: &[RuleCheck]) -> Result<Vec<Option<Time>>> {
    untold::forget();
    stops::was_overtaken();
    let now = clock::now();
    let mut answers = vec![None; given.len()];
    let (mut rows, mut cleared, mut special) = (Vec::new(), Vec::new(), Vec::new());
    for (place, check) in given.iter().enumerate() {
        match check.entity_name.as_bytes() {
            name if name == BACKFILL.as_bytes() => special.push((place, walk::piece as fn(&Watched, Time) -> _)),
            name if name == SWEEP.as_bytes() => special.push((place, sweep::piece)),
            name if name == CLEARED.as_bytes() => cleared.extend(check.key.to_string().parse::<i64>()),
            _ => rows.push(place),
        }
    }
    cleared::tell(watched, &cleared)?;
    for (place, again) in judged(watched, given, &rows, now)? {
        answers[place] = again;
    }
    // Runs background checks last, so that their locks on many rows are not held while users' functions run.
    for (place, work) in special {
        answers[place] = work(watched, now);
    }
    Ok(answers)
}

fn judged(watched: &Watched, given: &[RuleCheck], places: &[usize], now: Time) -> Result<Vec<(usize, Option<Time>)>> {
    if places.is_empty() {
        return Ok(Vec::new());
    }
    let rule = &watched.rule;
    let limits = &watched.job.options.limits;
    let keys: Vec<Text> = places.iter().map(|place| given[*place].key.clone()).collect();
    let mut clocks = Clocks::read(watched, &keys);
    let found: HashMap<usize, _> = watched.source.by_exact_keys(&keys).into_iter().collect();
    let open: HashMap<Text, Open> =
        alert::open(&rule.name, &keys).into_iter().map(|open| (open.key.clone(), open)).collect();
    let (mut answers, mut clear, mut over, mut stay) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut raised, mut silent) = (Vec::new(), Vec::new());
    for (row, place) in places.iter().enumerate() {
        let key = &keys[row];
        let (seen, appeared) = (found.get(&row), given[*place].scheduled_at);
        clocks.see(watched, key, seen, appeared, Seeing::Known(now));
        let found = seen.map_or(RowState::Gone, |row| row.state.found(appeared, clocks.stops(key)));
        let known = open.get(key);
        let alert = known.map_or(Alert::NONE, |open| open.alert);
        let verdict = judge(found, alert, &watched.levels, limits, now);
        let mut raise = |level| {
            if let RowState::Waiting { start, stops, .. } = found {
                let (since, due_at) = (watched.since(start), watched.due_at(start, stops));
                let id = known.map(|open| open.id);
                let to = if alert.is_held(now) { &mut silent } else { &mut raised };
                to.push(Raised { id, key, from: alert.level, level, since, due_at });
            }
        };
        let again = match verdict {
            Verdict::Settled => {
                clear.extend(known.map(|open| open.key.clone()));
                (found == RowState::Met && alert.level == 0).then_some(MET)
            }
            Verdict::Ahead(slot) => {
                clear.extend(known.filter(|open| open.alert.level > 0).map(|open| open.key.clone()));
                Some(slot)
            }
            Verdict::Remind(slot) => {
                raise(0);
                Some(slot)
            }
            Verdict::Stay(again) => {
                stay.extend(known.filter(|_| again.is_none()).map(|open| open.key.clone()));
                again
            }
            Verdict::Tell(again) => {
                raise(alert.level);
                again
            }
            Verdict::Raise(level, again) => {
                raise(level);
                again
            }
        };
        if alert.is_hold_over(now) && !matches!(verdict, Verdict::Remind(_) | Verdict::Tell(_) | Verdict::Raise(..)) {
            over.extend(known.map(|open| open.id));
        }
        if let ([place], [raised]) = (places, raised.as_slice()) {
            untold::remember(&given[*place], raised, again);
        }
        answers.push((*place, again));
    }
    tell(watched, &raised, now)?;
    let is_stored =
        watched.source.stopped.is_some() && (!raised.is_empty() || !silent.is_empty() || clocks.is_changed());
    if is_stored {
        // Locks the run's checks, so that no client can stop the clock of a watched row meanwhile. Fails if a client
        // has already locked a check.
        let is_own = |place: &&usize| given[**place].entity_name == rule.entity_name;
        if rule_check::lock_free(rule, &keys).len() < places.iter().filter(is_own).count() {
            return Err(stops::overtaken(watched));
        }
    }
    if !raised::escalate(&raised, now) || !raised::escalate_untold(&silent, now) {
        return Err(stops::overtaken(watched));
    }
    if !over.is_empty() {
        alert::end_holds(&over, now);
    }
    if is_stored {
        clocks.store_of_run(watched, &keys)?;
    }
    let became_late = raised.iter().chain(&silent).filter(|raised| raised.from == 0 && raised.level > 0).count();
    wakeup::count_rows(rule.name.as_bytes(), 0, became_late as u64);
    // If another session has locked an alert, this run cannot see whether that session will clear the alert. The check
    // of the watched row then runs again.
    let mut left = cleared::clear_free(watched, &clear, ScheduledBy { role: watched.job.role, at: now });
    if !stay.is_empty() {
        // Updates the alerts that stay open, so that a concurrent background cleanup (sweep) skips the alerts. The
        // cleanup may have read older rows, and would then clear the alerts.
        let touched = alert::touch(&rule.name, &stay);
        left.extend(stay.into_iter().filter(|key| !touched.contains(key)));
    }
    for (place, again) in &mut answers {
        if left.contains(&given[*place].key) {
            *again = Some(now);
        }
    }
    Ok(answers)
}

fn tell(watched: &Watched, raised: &[Raised], now: Time) -> Result<()> {
    if raised.is_empty() {
        return Ok(());
    }
    let terms = &watched.rule.terms;
    let tells = terms.notify.is_some() || terms.call.is_some();
    let written = raised::raise(&watched.rule, raised, now, tells);
    if let Some(channel) = &terms.notify {
        for (_, id, _) in &written {
            unbound::async_notify(
                &crate::pg::catalog::c_name(channel.as_bytes()),
                &crate::pg::text::server(&id.to_string()),
            );
        }
    }
    match &terms.call {
        Some(function) => call::with_alerts(watched, function, written.iter().map(|(_, _, row)| *row)),
        None => Ok(()),
    }
}
