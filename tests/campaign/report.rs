//! The report: fault, how often, what was violated, and what it means that nothing was.

use crate::checker::Violation;
use crate::faults::Fault;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct Report {
    /// How often each fault came about, was missed, and was followed by violations that were new.
    faults: BTreeMap<Option<Fault>, [u64; 3]>,
    seen: BTreeSet<(String, &'static str, i64, String)>,
    pub checks: u64,
    pub effects: u64,
}

impl Report {
    pub fn struck(&mut self, fault: Fault, came_about: bool) {
        self.faults.entry(Some(fault)).or_default()[usize::from(!came_about)] += 1;
    }

    /// Prints a violation that has not been seen yet; `place` is its database and round.
    pub fn violated(&mut self, after: Option<Fault>, place: &str, violation: &Violation) {
        // What is about one check may be said in other words next time.
        let words = if violation.check == 0 { violation.what.clone() } else { String::new() };
        if self.seen.insert((place.into(), violation.promise, violation.check, words)) {
            self.faults.entry(after).or_default()[2] += 1;
            println!("VIOLATION of {} in {place}, check {}: {}", violation.promise, violation.check, violation.what);
        }
    }

    pub fn violations(&self) -> u64 {
        self.faults.values().map(|[_, _, violations]| violations).sum()
    }

    pub fn faults(&self) -> u64 {
        self.faults.values().map(|[times, ..]| times).sum()
    }

    pub fn print(&self) {
        println!(
            "\n{:<20} {:>6} {:>7} {:>11}   zero in that many: below, with 95 %",
            "fault", "times", "missed", "violations"
        );
        for (fault, [times, missed, violations]) in &self.faults {
            let name = fault.map_or("(none)".into(), Fault::name);
            println!("{name:<20} {times:>6} {missed:>7} {violations:>11}   {}", bound(*times, *violations));
        }
        let (faults, violations) = (self.faults(), self.violations());
        println!("{:<20} {faults:>6} {:>7} {violations:>11}   {}", "all", "", bound(faults, violations));
        println!("{} checks ended, {} effects of runs\n", self.checks, self.effects);
    }
}

/// The rule of three: with no failure in n, the rate of failure is below 3/n.
fn bound(times: u64, violations: u64) -> String {
    match (times, violations) {
        (0, _) | (_, 1..) => String::new(),
        (n, 0) => format!("{:.3} %", (300.0 / n as f64).min(100.0)),
    }
}
