use crate::events::Event;
use crate::judge::Verdict;
use crate::place::Mode;
use awty_testkit::markdown::{between_markers, wrap};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

#[derive(Default)]
struct Line {
    times: u64,
    not_whole: u64,
    whole: Vec<f64>,
    /// For each new primary, the seconds between the log message that the server is ready and the server's first run.
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

    pub fn violated(&mut self, mode: Mode, event: Event, what: &[String]) {
        self.violations.extend(what.iter().map(|what| format!("{} {}: {what}", mode.name(), event.name())));
    }

    pub fn events(&self) -> u64 {
        self.lines.values().map(|line| line.times - line.not_whole).sum()
    }

    pub fn results(&self, minutes: f64, seed: u64) -> Results {
        let commit = std::env::var("AWTY_COMMIT").unwrap_or_else(|_| "unknown".into());
        let patroni = std::env::var("AWTY_PATRONI").unwrap_or_else(|_| "Patroni".into());
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let now = chrono::Utc::now().format("%Y-%m-%d %H:%M UTC");
        let orders = self.verdicts.iter().map(|(mode, verdict)| Orders {
            mode: mode.name().into(),
            acknowledged: verdict.acknowledged,
            late: verdict.late,
            alerts: verdict.alerts,
            because_of_awty: verdict.violations.len(),
            lost_by_failover: verdict.lost_by_failover,
            repeated_by_failover: verdict.repeated_by_failover,
            on_cut_off: verdict.on_cut_off,
        });
        let events = self.lines.iter().map(|((mode, event), line)| Events {
            mode: mode.name().into(),
            event: event.name(),
            times: line.times,
            not_whole: line.not_whole,
            whole: spread(&line.whole),
            first_run: spread(&line.first_run),
        });
        Results {
            orders: orders.collect(),
            events: events.collect(),
            notes: self.notes.clone(),
            measured: format!(
                "Measured until {now} at commit {commit} by `make failover MINUTES={minutes} SEED={seed}`, with {patroni} on {cores} cores; \
                 load before it ended: {}.",
                load.trim()
            ),
        }
    }
}

#[derive(Serialize, Deserialize)]
pub struct Results {
    orders: Vec<Orders>,
    events: Vec<Events>,
    notes: Vec<String>,
    measured: String,
}

#[derive(Serialize, Deserialize)]
struct Orders {
    mode: String,
    acknowledged: usize,
    late: usize,
    alerts: usize,
    because_of_awty: usize,
    lost_by_failover: usize,
    repeated_by_failover: usize,
    on_cut_off: usize,
}

#[derive(Serialize, Deserialize)]
struct Events {
    mode: String,
    event: String,
    times: u64,
    not_whole: u64,
    whole: Option<[f64; 2]>,
    first_run: Option<[f64; 2]>,
}

impl Results {
    pub fn tables(&self) -> String {
        let mut text = String::from(
            "| mode | orders acknowledged | late | alerts | lost, doubled or missing because of awty | acknowledged and lost by the failover | \
             runs repeated by the failover | runs on a cut-off primary |\n|---|--:|--:|--:|--:|--:|--:|--:|\n",
        );
        for row in &self.orders {
            let Orders { mode, acknowledged, late, alerts, because_of_awty, .. } = row;
            let Orders { lost_by_failover, repeated_by_failover, on_cut_off, .. } = row;
            let _ = writeln!(
                text,
                "| {mode} | {acknowledged} | {late} | {alerts} | {because_of_awty} | {lost_by_failover} | {repeated_by_failover} | {on_cut_off} |",
            );
        }
        text.push_str(
            "\n| mode | event | times | not whole in 180 s | whole again, s | ready to first run, s |\n|---|---|--:|--:|--:|--:|\n",
        );
        for Events { mode, event, times, not_whole, whole, first_run } in &self.events {
            let show = |seconds: &Option<[f64; 2]>, digits: usize| {
                seconds.map_or(String::new(), |[median, most]| format!("{median:.digits$} / {most:.digits$}"))
            };
            let (whole, first_run) = (show(whole, 1), show(first_run, 2));
            let _ = writeln!(text, "| {mode} | {event} | {times} | {not_whole} | {whole} | {first_run} |");
        }
        for note in &self.notes {
            let _ = writeln!(text, "\n- {note}");
        }
        text
    }

    pub fn write(&self, directory: &Path) -> Result<(), String> {
        let (data, page) = (directory.join("results/failover.json"), directory.join("failover.md"));
        let said = |file: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        fs::create_dir_all(directory.join("results")).map_err(|error| said(&data, &error))?;
        let json = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        fs::write(&data, json + "\n").map_err(|error| said(&data, &error))?;
        let before = fs::read_to_string(&page).unwrap_or_else(|_| MARKERS.join("\n"));
        fs::write(&page, self.on(&before)?).map_err(|error| said(&page, &error))
    }

    fn on(&self, page: &str) -> Result<String, String> {
        between_markers(page, MARKERS, &format!("{}\n{}", self.tables(), wrap(&self.measured)))
    }
}

const MARKERS: [&str; 2] = ["<!-- results: begin; written by make failover -->", "<!-- results: end -->"];

fn spread(seconds: &[f64]) -> Option<[f64; 2]> {
    let mut sorted = seconds.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some([*sorted.get(sorted.len().saturating_sub(1) / 2)?, *sorted.last()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_median_and_maximum() {
        assert_eq!((spread(&[]), spread(&[3.0, 1.0, 2.0])), (None, Some([2.0, 3.0])));
    }

    #[test]
    fn a_cluster_that_is_not_whole_is_no_event_that_succeeded() {
        let mut report = Report::default();
        report.struck(Mode::Synchronous, Event::Switchover, 4.0, vec![0.1]);
        report.stuck(Mode::Synchronous, Event::Switchover, "waited 180 s");
        assert_eq!(report.events(), 1);
        let tables = report.results(0.0, 1).tables();
        assert!(tables.contains("| synchronous | Switchover | 2 | 1 | 4.0 / 4.0 | 0.10 / 0.10 |"), "{tables}");
    }

    #[test]
    fn the_page_is_written_from_the_results() {
        let docs = awty_testkit::checkout().join("docs");
        let results: Results =
            serde_json::from_str(&fs::read_to_string(docs.join("results/failover.json")).unwrap()).unwrap();
        let page = fs::read_to_string(docs.join("failover.md")).unwrap();
        assert_eq!(page, results.on(&page).unwrap());
    }
}
