//! Tables of the results as Markdown, and the page in docs/.
//!
//! Does not: judge.

use crate::events::Event;
use crate::judge::Verdict;
use crate::place::Mode;
use std::collections::BTreeMap;
use std::fmt::Write as _;

#[derive(Default)]
struct Line {
    times: u64,
    not_whole: u64,
    /// Seconds until the cluster was whole again.
    whole: Vec<f64>,
    /// Seconds from "ready" to the first run, for each primary of the event.
    first_run: Vec<f64>,
}

#[derive(Default)]
pub struct Report {
    lines: BTreeMap<(Mode, Event), Line>,
    verdicts: Vec<(Mode, Verdict)>,
    notes: Vec<String>,
    pub violations: Vec<String>,
}

impl Report {
    pub fn struck(&mut self, mode: Mode, event: Event, seconds: f64, first_run: Vec<f64>) {
        let line = self.lines.entry((mode, event)).or_default();
        line.times += 1;
        line.whole.push(seconds);
        line.first_run.extend(first_run);
    }

    /// Records that the cluster was not whole in time. This says nothing about awty, so the event is no success.
    pub fn stuck(&mut self, mode: Mode, event: Event, message: &str) {
        let line = self.lines.entry((mode, event)).or_default();
        line.times += 1;
        line.not_whole += 1;
        self.notes.push(format!("{} {}: {message}", mode.name(), event.name()));
    }

    pub fn judged(&mut self, mode: Mode, verdict: Verdict) {
        self.violations.extend(verdict.violations.iter().map(|what| format!("{}: {what}", mode.name())));
        self.verdicts.push((mode, verdict));
    }

    /// Adds the findings of a restore or a move.
    pub fn violated(&mut self, mode: Mode, event: Event, what: &[String]) {
        self.violations.extend(what.iter().map(|what| format!("{} {}: {what}", mode.name(), event.name())));
    }

    /// Number of events after which the cluster was whole.
    pub fn events(&self) -> u64 {
        self.lines.values().map(|line| line.times - line.not_whole).sum()
    }

    pub fn tables(&self) -> String {
        let mut text = String::from(
            "| mode | orders acknowledged | late | alerts | lost, doubled or missing because of awty | acknowledged and lost by the failover | \
             runs repeated by the failover | runs on a cut-off primary |\n|---|--:|--:|--:|--:|--:|--:|--:|\n",
        );
        for (mode, verdict) in &self.verdicts {
            let Verdict { acknowledged, late, alerts, violations, .. } = verdict;
            let Verdict { lost_by_failover, repeated_by_failover, on_cut_off, .. } = verdict;
            let _ = writeln!(
                text,
                "| {} | {acknowledged} | {late} | {alerts} | {} | {lost_by_failover} | {repeated_by_failover} | {on_cut_off} |",
                mode.name(),
                violations.len()
            );
        }
        text.push_str(
            "\n| mode | event | times | not whole in 180 s | whole again, s | ready to first run, s |\n|---|---|--:|--:|--:|--:|\n",
        );
        for ((mode, event), line) in &self.lines {
            let (whole, first) = (spread(&line.whole, 1), spread(&line.first_run, 2));
            let Line { times, not_whole, .. } = line;
            let _ =
                writeln!(text, "| {} | {} | {times} | {not_whole} | {whole} | {first} |", mode.name(), event.name());
        }
        for note in &self.notes {
            let _ = writeln!(text, "\n- {note}");
        }
        text
    }

    pub fn page(&self, minutes: f64, seed: u64) -> String {
        let commit = std::env::var("AWTY_COMMIT").unwrap_or_else(|_| "unknown".into());
        let patroni = std::env::var("AWTY_PATRONI").unwrap_or_else(|_| "Patroni".into());
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let now = chrono::Utc::now().format("%Y-%m-%d %H:%M UTC");
        format!(
            "{HEAD}\n{}\n{TAIL}\nMeasured until {now} at commit {commit} by `make failover MINUTES={minutes} SEED={seed}`, with {patroni} on {cores} cores; \
             load before it ended: {}.\n",
            self.tables(),
            load.trim()
        )
    }
}

const HEAD: &str = "# Failover: losses, doubles and the time to the first run

Patroni runs three members with etcd on one machine (`ttl` 20 s). Writers place 200 orders a second at whatever member Patroni calls the primary. Half of the orders
ship in time, a tenth ship late, and the others never ship. A rule watches the table (`within` 4 seconds, slots of a second) and calls a function for each late order.
The mode *synchronous* has `synchronous_mode` of Patroni and `awty.synchronous_commit` on. The mode *asynchronous* has both off.
";

const TAIL: &str = "- **Lost, doubled or missing**: each order that is not shipped must have one open alert, one run in the outbox and one check in the history. An order that was shipped in time has no alert.
- **By the failover**: PostgreSQL loses commits in asynchronous mode that no standby had. The new primary then does not have an acknowledged order, or runs a check again whose run was lost.
  In synchronous mode either counts as a violation.
- **Runs on a cut-off primary** began, or became visible, on a timeline after a later timeline had begun. The marks are lines of the servers' logs and notifications, which no rewind takes back.
- **Whole again**: from the event until there are a primary and two standbys that stream.
- **Ready to first run**: from \"ready to accept connections\" in the log of the new primary to its first run. Both columns: median / most.
- **Pitr, PgBackRest**: a restore beside the running original. Before `awty.adopt()` the copy runs nothing and `why` has the reason. After it each late order has its alert. **Move**: by logical replication, in the steps of
  [operations](operations.md).
- Patroni uses etcd's older interface (`--enable-v2`). By the newer one, Patroni 3.0.2 takes the key of the primary without a comparison. A Patroni that was frozen then takes the key
  from the new primary, and PostgreSQL loses acknowledged orders, in synchronous mode too. awty has no part in this.
";

/// Median and maximum.
fn spread(seconds: &[f64], digits: usize) -> String {
    let mut sorted = seconds.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    match (sorted.get(sorted.len().saturating_sub(1) / 2), sorted.last()) {
        (Some(median), Some(most)) => format!("{median:.digits$} / {most:.digits$}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_median_and_maximum() {
        assert_eq!(spread(&[], 1), "");
        assert_eq!(spread(&[3.0, 1.0, 2.0], 1), "2.0 / 3.0");
    }

    #[test]
    fn a_cluster_that_is_not_whole_is_no_event_that_succeeded() {
        let mut report = Report::default();
        report.struck(Mode::Synchronous, Event::Switchover, 4.0, vec![0.1]);
        report.stuck(Mode::Synchronous, Event::Switchover, "waited 180 s");
        assert_eq!(report.events(), 1);
        assert!(report.tables().contains("| synchronous | Switchover | 2 | 1 | 4.0 / 4.0 | 0.10 / 0.10 |"));
    }
}
