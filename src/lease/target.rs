//! Chooses the due checks that a claim hands out to an external worker.
//!
//! Invariant: while a claim holds the lock on the job's claims, no target gets more calls than its limits allow. A
//! session that removes rows that claims read must first take this lock.

use super::statements::lease::DueCheck;
use super::statements::live::Live;
use super::statements::target::{self, Key};
use crate::pg::text::Text;
use crate::pg::{claim_lock, relations, subtransaction};
use crate::shmem;
use crate::store::job::Job;
use crate::store::origin;
use awty_core::Time;
use awty_core::lease::breaker::Breaker;
use awty_core::lease::lock;
use awty_core::lease::order::in_turn;
use awty_core::lease::target::Target;
use pgrx::pg_sys;
use std::collections::{BTreeMap, HashMap, HashSet};

const STEPS: usize = 5000;
const AT_LEAST: usize = 100;

/// Returns the maximum number of targets that a claim visits for each of its jobs. The maximum keeps a job with
/// thousands of blocked targets from delaying other jobs.
pub fn steps(jobs: usize) -> usize {
    (STEPS / jobs.max(1)).max(AT_LEAST)
}

#[derive(Default)]
pub struct Chosen {
    /// Chosen checks. Each check has two numbers: its position within its target, and the position of its target among
    /// all targets.
    pub due: Vec<(DueCheck, (usize, usize))>,
    pub targets: HashMap<Text, Target>,
    /// Earliest time at which one of the currently blocked targets allows calls again.
    pub until: Option<Time>,
    pub walked_to: Option<Text>,
    pub is_cut: bool,
}

pub struct Search<'a> {
    pub here: pg_sys::Oid,
    pub job: &'a Text,
    pub jobs: usize,
    /// Whether the job has limits for targets, or circuit breakers.
    pub is_known: bool,
    pub live: &'a Live,
    pub max: usize,
    pub now: Time,
}

type Found = BTreeMap<Text, BTreeMap<(Time, i64), DueCheck>>;

impl Search<'_> {
    pub fn choose(&self, oldest: Vec<DueCheck>, is_all: bool) -> Chosen {
        if is_all && !self.is_known {
            let due = oldest.into_iter().enumerate().map(|(place, due)| (due, (place, 0))).collect();
            return Chosen { due, ..Chosen::default() };
        }
        let mut chosen = Chosen::default();
        let mut found = Found::new();
        for due in oldest {
            found.entry(due.target.clone()).or_default().insert((due.check.slot, due.id), due);
        }
        let mut allowed: BTreeMap<Text, usize> = BTreeMap::new();
        let names: Vec<Text> = found.keys().cloned().collect();
        self.look(names, &mut chosen, &mut allowed);
        let cursor = Text::from(shmem::read(|shared| shared.target_of(self.here, self.job.as_bytes())));
        if !is_all {
            self.walk(&cursor, &mut chosen, &mut allowed);
            self.fetch(&allowed, &mut found);
        }
        // Starts with the target after the previous claim's last target, so that the targets take turns.
        let (first, rest): (Vec<_>, Vec<_>) = found.into_iter().partition(|(name, _)| *name > cursor);
        let in_order: Vec<(Text, BTreeMap<_, DueCheck>)> = first.into_iter().chain(rest).collect();
        let counts: Vec<usize> =
            in_order.iter().map(|(name, due)| due.len().min(allowed.get(name).copied().unwrap_or(0))).collect();
        let shares = in_turn(&counts, self.max);
        for (place, ((_, due), share)) in in_order.into_iter().zip(shares).enumerate() {
            let in_turn = due.into_values().take(share).enumerate();
            chosen.due.extend(in_turn.map(|(round, due)| (due, (round, place))));
        }
        chosen
    }

    fn look(&self, names: Vec<Text>, chosen: &mut Chosen, allowed: &mut BTreeMap<Text, usize>) -> usize {
        if !self.is_known || names.is_empty() {
            let count = names.len();
            allowed.extend(names.into_iter().map(|name| (name, usize::MAX)));
            return count;
        }
        let mut good = 0;
        for (name, target) in target::read(self.job, &names, self.live) {
            match target.allows(self.now) {
                0 => chosen.until = chosen.until.into_iter().chain(target.standing(self.now).until()).min(),
                most => {
                    good += 1;
                    allowed.insert(name.clone(), most);
                }
            }
            chosen.targets.insert(name, target);
        }
        good
    }

    fn walk(&self, cursor: &Text, chosen: &mut Chosen, allowed: &mut BTreeMap<Text, usize>) {
        let (max, most) = (self.max, steps(self.jobs));
        let (mut at, mut has_turned, mut steps, mut good) = (cursor.clone(), cursor.len() == 0, 0, 0);
        while good < max && steps < most {
            let seen = target::walk(self.job, &at, self.now, most - steps, max - good, self.live);
            let is_end = seen.iter().filter(|(_, is_due)| *is_due).count() < max - good && seen.len() < most - steps;
            steps += seen.len().max(1);
            let last = seen.last().map(|(name, _)| name.clone());
            let names = seen.into_iter().filter(|(name, is_due)| *is_due && !chosen.targets.contains_key(name));
            let names: Vec<Text> = names.map(|(name, _)| name).filter(|name| !allowed.contains_key(name)).collect();
            good += self.look(names, chosen, allowed);
            if let Some(last) = last {
                chosen.walked_to = Some(last.clone());
                at = last;
            }
            if is_end {
                if has_turned {
                    return;
                }
                has_turned = true;
                at = Text::from("");
            }
        }
        chosen.is_cut = true;
    }

    fn fetch(&self, allowed: &BTreeMap<Text, usize>, found: &mut Found) {
        if allowed.is_empty() {
            return;
        }
        let max = self.max;
        let each = max.div_ceil(allowed.len()) + 1;
        let mut asked: Vec<(Text, usize)> =
            allowed.iter().map(|(name, most)| (name.clone(), each.min(*most))).collect();
        for _ in 0..2 {
            let mut counts: HashMap<Text, usize> = HashMap::new();
            for due in target::due_of(self.job, &asked, self.now, self.live) {
                *counts.entry(due.target.clone()).or_default() += 1;
                found.entry(due.target.clone()).or_default().insert((due.check.slot, due.id), due);
            }
            let total: usize =
                found.iter().map(|(name, due)| due.len().min(allowed.get(name).copied().unwrap_or(0))).sum();
            asked.retain(|(name, most)| counts.get(name) == Some(most) && allowed[name] > *most);
            if total >= max || asked.is_empty() {
                return;
            }
            asked.iter_mut().for_each(|(name, most)| *most = max.min(allowed[name]));
        }
    }
}

pub fn given(
    here: pg_sys::Oid,
    job: &Job,
    targets: &HashMap<Text, Target>,
    given: &[(Text, (usize, usize))],
    now: Time,
) {
    let mut counts: BTreeMap<&Text, usize> = BTreeMap::new();
    given.iter().for_each(|(name, _)| *counts.entry(name).or_default() += 1);
    let taken: Vec<_> = counts
        .into_iter()
        .filter_map(|(name, count)| {
            let (tokens, full_at) = targets.get(name)?.take(count, now)?;
            Some((name.clone(), tokens, full_at))
        })
        .collect();
    if !taken.is_empty() {
        target::take_tokens(&job.name, &taken, now);
    }
    if let Some((name, _)) = given.iter().max_by_key(|(_, turn)| *turn) {
        shmem::write(|shared| shared.note_target(here, job.name.as_bytes(), name.as_bytes(), now));
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    Answered,
    Down(String),
}

/// Does nothing under REPEATABLE READ or SERIALIZABLE, because the transaction cannot see other sessions' reports.
pub fn record_reports(reports: Vec<(Key, Report)>, now: Time) {
    let mut by_target: BTreeMap<Key, Vec<Report>> = BTreeMap::new();
    for (key, report) in reports {
        by_target.entry(key).or_default().push(report);
    }
    let mut keys: Vec<Key> = by_target.keys().cloned().collect();
    if keys.is_empty() || subtransaction::has_one_snapshot() {
        return;
    }
    let is_down = |key: &Key| by_target[key].iter().any(|report| matches!(report, Report::Down(_)));
    let before: HashMap<Key, Breaker> = target::breakers(&keys).into_iter().collect();
    keys.retain(|key| is_down(key) || before.contains_key(key));
    let Some(class) = relations::oid(relations::BREAKER).filter(|_| !keys.is_empty()) else { return };
    let identity = origin::identity();
    keys.retain(|(job, of)| claim_lock::try_take(class, lock::of_target(identity, job.as_bytes(), of.as_bytes())));
    let mut now_known: HashMap<Key, Breaker> = target::breakers(&keys).into_iter().collect();
    // `awty.alter_target()` for a whole job locks the breakers of all targets, but takes the lock of one target only.
    let free: HashSet<Key> = target::free_breakers(&keys).into_iter().collect();
    keys.retain(|key| now_known.contains_key(key) == free.contains(key));
    for key in keys {
        let before = now_known.remove(&key);
        let (mut breaker, mut last, mut has_changed) = (before, "", false);
        for report in &by_target[&key] {
            match (report, breaker) {
                (Report::Down(message), _) => {
                    if let Some(after) = Breaker::after_failure(breaker, now) {
                        (breaker, last, has_changed) = (Some(after), message.as_str(), true);
                    }
                }
                (Report::Answered, Some(one)) if one.ends_with_answer(now) => (breaker, has_changed) = (None, true),
                (Report::Answered, _) => {}
            }
        }
        if has_changed && (before.is_some() || breaker.is_some()) {
            target::set_breaker(&key, breaker.map(|breaker| (breaker, last)), now);
        }
    }
}
