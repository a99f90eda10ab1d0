use crate::checker::Violation;
use crate::faults::Fault;
use crate::integrity::without_numbers;
use crate::speed::Speed;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

#[derive(Default)]
struct Line {
    times: u64,
    missed: u64,
    violations: u64,
    first: Vec<f64>,
    all: Vec<f64>,
}

#[derive(Default)]
pub struct Report {
    lines: BTreeMap<Option<Fault>, Line>,
    seen: BTreeSet<(String, &'static str, i64, String)>,
    timed: BTreeMap<&'static str, Vec<f64>>,
    pub outcomes: BTreeMap<String, u64>,
    pub effects: u64,
    pub alerts: u64,
    pub actions: u64,
    pub unknown: u64,
    pub rounds: u64,
    pub server: String,
}

pub struct Run {
    pub seed: u64,
    pub minutes: f64,
    pub commit: String,
}

impl Report {
    pub fn struck(&mut self, fault: Fault, came_about: bool) {
        let line = self.lines.entry(Some(fault)).or_default();
        *(if came_about { &mut line.times } else { &mut line.missed }) += 1;
    }

    pub fn recovered(&mut self, fault: Fault, speed: Speed) {
        let line = self.lines.entry(Some(fault)).or_default();
        line.first.extend(speed.first);
        line.all.push(speed.all);
    }

    pub fn timed(&mut self, what: &'static str, seconds: f64) {
        self.timed.entry(what).or_default().push(seconds);
    }

    pub fn violated(&mut self, after: Option<Fault>, place: &str, violation: &Violation) {
        let words = match violation {
            Violation { promise: "integrity", what, .. } => without_numbers(what),
            Violation { check: 0, what, .. } => what.clone(),
            _ => String::new(),
        };
        if self.seen.insert((place.into(), violation.promise, violation.check, words)) {
            self.lines.entry(after).or_default().violations += 1;
            println!("VIOLATION of {} in {place}, check {}: {}", violation.promise, violation.check, violation.what);
        }
    }

    pub fn violations(&self) -> u64 {
        self.lines.values().map(|line| line.violations).sum()
    }

    pub fn faults(&self) -> u64 {
        self.lines.values().map(|line| line.times).sum()
    }

    pub fn print(&self, run: &Run) {
        println!("\n{}", self.table());
        println!("{}", self.summary(run));
    }

    fn table(&self) -> String {
        let mut table = String::from(
            "| fault | times | missed | violations | rate is below (95 %) | first run, s | all done, s |\n\
             |---|--:|--:|--:|--:|--:|--:|\n",
        );
        for (fault, line) in &self.lines {
            let name = fault.map_or("(none)".into(), Fault::name);
            let bound = bound(line.times, line.violations);
            let Line { times, missed, violations, first, all } = line;
            let (first, all) = (spread(first), spread(all));
            let _ = writeln!(table, "| {name} | {times} | {missed} | {violations} | {bound} | {first} | {all} |");
        }
        let (faults, violations) = (self.faults(), self.violations());
        let bound = bound(faults, violations);
        table + &format!("| **all** | {faults} | | {violations} | {bound} | | |\n")
    }

    fn summary(&self, run: &Run) -> String {
        let Run { seed, minutes, commit } = run;
        let Report { rounds, effects, alerts, actions, unknown, server, .. } = self;
        let ended: u64 = self.outcomes.values().sum();
        let outcomes: Vec<String> = self.outcomes.iter().map(|(outcome, count)| format!("{outcome} {count}")).collect();
        let mut text = format!(
            "First run: from when the server takes connections again to the first run of what is due, in the database where \
             that takes longest. All done: until all is done that is due then. Each: median / 99 % / most.\n\n\
             - awty {commit}, PostgreSQL {server}, seed {seed}, {rounds} rounds, {minutes:.1} minutes\n\
             - {ended} checks ended ({}), {effects} effects of runs, {alerts} alerts of watched rows\n\
             - {actions} transactions of clients; of {unknown} a fault kept the answer\n",
            outcomes.join(", ")
        );
        for (what, seconds) in &self.timed {
            let _ = writeln!(text, "- {what}: {} times, {} s", seconds.len(), spread(seconds));
        }
        text
    }

    pub fn tsv(&self, run: &Run, when: &str) -> String {
        let most =
            |seconds: &[f64]| seconds.iter().copied().reduce(f64::max).map_or(String::new(), |s| format!("{s:.3}"));
        let Run { seed, minutes, commit } = run;
        self.lines.iter().fold(String::new(), |mut lines, (fault, line)| {
            let name = fault.map_or("(none)".into(), Fault::name);
            let Line { times, missed, violations, first, all } = line;
            let (server, first, all) = (&self.server, most(first), most(all));
            let _ = writeln!(
                lines,
                "{when}\t{commit}\t{server}\t{seed}\t{minutes:.1}\t{name}\t{times}\t{missed}\t{violations}\t{first}\t{all}"
            );
            lines
        })
    }
}

/// Rule of three: after n trials without a failure, the failure rate is below 3/n.
fn bound(times: u64, violations: u64) -> String {
    match (times, violations) {
        (0, _) | (_, 1..) => String::new(),
        (n, 0) => format!("{:.3} %", (300.0 / n as f64).min(100.0)),
    }
}

fn spread(seconds: &[f64]) -> String {
    let mut sorted = seconds.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = |share: f64| sorted.get(((sorted.len() as f64 * share).ceil() as usize).saturating_sub(1));
    match (rank(0.5), rank(0.99), sorted.last()) {
        (Some(median), Some(high), Some(most)) => format!("{median:.2} / {high:.2} / {most:.2}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_median_percentile_and_maximum() {
        assert_eq!(spread(&[]), "");
        assert_eq!(spread(&[2.0]), "2.00 / 2.00 / 2.00");
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(spread(&hundred), "50.00 / 99.00 / 100.00");
    }

    #[test]
    fn nothing_in_300_is_below_one_in_a_hundred() {
        assert_eq!(bound(300, 0), "1.000 %");
        assert_eq!(bound(2, 0), "100.000 %");
        assert_eq!(bound(300, 1), "");
    }

    #[test]
    fn a_violation_is_counted_once() {
        let mut report = Report::default();
        let violation = |check, what: &str| Violation { promise: "P1", check, what: what.into() };
        for (check, what) in [(1, "a"), (1, "in other words"), (0, "a"), (0, "b"), (0, "b")] {
            report.violated(None, "here", &violation(check, what));
        }
        assert_eq!(report.violations(), 3);
        for what in ["XX001 in block 7", "XX001 in block 23", "XX in block 7 of another"] {
            report.violated(None, "here", &Violation { promise: "integrity", check: 0, what: what.into() });
        }
        assert_eq!(report.violations(), 5);
    }
}
