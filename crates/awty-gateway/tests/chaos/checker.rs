//! Invariant: for each rule of this checker, a test in `checker_tests` violates the rule.

use std::collections::{BTreeMap, BTreeSet};

/// Identifies a call by its path, its planned time in microseconds, and how often the endpoint has asked to be called
/// again.
pub type Occurrence = (String, i64, i64);

#[derive(Clone, Debug)]
pub struct Call {
    pub at: f64,
    pub occurrence: Occurrence,
    pub key: String,
    /// Status, or `None` if the receiver hung or closed the connection.
    pub answered: Option<u16>,
}

#[derive(Clone, Debug)]
pub struct Booked {
    pub occurrence: Occurrence,
    pub key: String,
    pub ok: bool,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub path: String,
    pub first: i64,
    pub period: i64,
    pub pending: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Committed,
    RolledBack,
    InDoubt,
}

#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub calls: Vec<Call>,
    pub booked: Vec<Booked>,
    pub failed: BTreeSet<(String, i64)>,
    pub plans: Vec<Plan>,
    pub sends: BTreeMap<String, Fate>,
    pub once: &'static str,
    pub first_fault: f64,
}

pub fn findings(evidence: &Evidence) -> Vec<String> {
    let mut found = keys(evidence);
    found.extend(plans(evidence));
    found.extend(sends(evidence));
    found.extend(books(evidence));
    found.extend(repeats(evidence));
    found
}

fn keys(evidence: &Evidence) -> Vec<String> {
    let calls = evidence.calls.iter().map(|call| (&call.occurrence, &call.key));
    let all: BTreeSet<_> = calls.chain(evidence.booked.iter().map(|one| (&one.occurrence, &one.key))).collect();
    let (mut by_occurrence, mut by_key) = (BTreeMap::new(), BTreeMap::new());
    let mut found = Vec::new();
    for (occurrence, key) in all {
        if let Some(other) = by_occurrence.insert(occurrence, key) {
            found.push(format!("{occurrence:?} has two keys: {other} and {key}"));
        }
        if let Some(other) = by_key.insert(key, occurrence) {
            found.push(format!("{key} is the key of {other:?} and of {occurrence:?}"));
        }
    }
    found
}

fn plans(evidence: &Evidence) -> Vec<String> {
    let place = |(path, slot, _): &Occurrence| (path.clone(), *slot);
    let mut known: BTreeSet<(String, i64)> = evidence.calls.iter().map(|call| place(&call.occurrence)).collect();
    known.extend(evidence.booked.iter().filter(|one| !one.ok).map(|one| place(&one.occurrence)));
    known.extend(evidence.failed.iter().cloned());
    let mut found = Vec::new();
    for plan in &evidence.plans {
        let slots = (plan.first..plan.pending).step_by(usize::try_from(plan.period).unwrap());
        let missing: Vec<i64> = slots.filter(|slot| !known.contains(&(plan.path.clone(), *slot))).collect();
        if let Some(first) = missing.first() {
            found.push(format!("{}: {} slots were never called, the first at {first}", plan.path, missing.len()));
        }
    }
    found
}

fn sends(evidence: &Evidence) -> Vec<String> {
    let mut arrived: BTreeMap<&str, bool> = BTreeMap::new();
    for call in &evidence.calls {
        *arrived.entry(&call.occurrence.0).or_default() |= call.answered == Some(200);
    }
    let failed: BTreeSet<&str> = evidence.failed.iter().map(|(path, _)| path.as_str()).collect();
    let mut found = Vec::new();
    for (path, fate) in &evidence.sends {
        match (fate, arrived.get(path.as_str())) {
            (Fate::RolledBack, Some(_)) => found.push(format!("{path} was rolled back, and called")),
            (Fate::Committed, Some(true)) | (Fate::RolledBack | Fate::InDoubt, _) => {}
            (Fate::Committed, _) if failed.contains(path.as_str()) => {}
            (Fate::Committed, Some(false)) => found.push(format!("{path} was called without success and given up")),
            (Fate::Committed, None) => found.push(format!("{path} was committed, and never called")),
        }
    }
    found
}

fn books(evidence: &Evidence) -> Vec<String> {
    let answered: BTreeSet<&str> =
        evidence.calls.iter().filter(|call| call.answered == Some(200)).map(|call| call.key.as_str()).collect();
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    for one in evidence.booked.iter().filter(|one| one.ok) {
        if !seen.insert(&one.key) {
            found.push(format!("two successes are booked for {:?}", one.occurrence));
        }
        if !answered.contains(one.key.as_str()) {
            found.push(format!("a success is booked for {:?}, which nobody has answered", one.occurrence));
        }
    }
    found
}

/// Finds calls that were repeated without a reason. Before the first injected fault, only a call with a recorded
/// failure may be repeated.
fn repeats(evidence: &Evidence) -> Vec<String> {
    let failed: BTreeSet<&str> = evidence.booked.iter().filter(|one| !one.ok).map(|one| one.key.as_str()).collect();
    let (mut seen, mut found) = (BTreeMap::<&str, Option<u16>>::new(), Vec::new());
    for call in &evidence.calls {
        let before = seen.insert(&call.key, call.answered);
        if before.is_some() && call.occurrence.0.starts_with(evidence.once) {
            found.push(format!("{:?} was called twice", call.occurrence));
        }
        if before == Some(Some(200)) && call.at < evidence.first_fault && !failed.contains(call.key.as_str()) {
            found.push(format!("{:?} was called again without a reason", call.occurrence));
        }
    }
    found
}

pub fn repeated(evidence: &Evidence) -> usize {
    let mut answered = BTreeSet::new();
    evidence.calls.iter().filter(|call| !answered.insert(&call.key) && call.answered == Some(200)).count()
}
