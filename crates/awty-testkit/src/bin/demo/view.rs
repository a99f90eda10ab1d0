use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use awty_testkit::Cluster;
use awty_testkit::postgres::{Client, Row};

use crate::shop::SHOP;

const SLOTS: i32 = 20;

const NUMBERS: &str = "
SELECT s.pending, (extract(epoch FROM s.lag) * 1000)::bigint AS lag, s.workers::bigint AS workers,
       (SELECT count(*) FROM shop.orders) AS placed,
       (SELECT count(*) FROM shop.shipment) AS shipped,
       (SELECT count(*) FROM awty.alert) AS late,
       (SELECT count(*) FROM awty.alert WHERE level = 2) AS escalated
FROM awty.status s";

/// In the demo, a check runs at `first_check_at`, and may run once more at `next_check_at`.
const CHART: &str = "
WITH run AS (
    SELECT first_check_at AS slot FROM awty.future_job_history WHERE check_count >= 1
    UNION ALL SELECT next_check_at FROM awty.future_job_history WHERE check_count >= 2
    UNION ALL SELECT first_check_at FROM awty.future_job WHERE check_count >= 1
)
SELECT (SELECT count(*) FROM run WHERE run.slot = s.slot) AS runs
FROM generate_series(date_trunc('second', clock_timestamp()) - make_interval(secs => $1 - 1),
                     clock_timestamp(), '1 second') AS s(slot)
ORDER BY s.slot";

pub(crate) struct View {
    client: Client,
    start: Instant,
    shown: Option<Instant>,
    drawn_lines: usize,
    terminal: bool,
}

impl View {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        let client = cluster.client(SHOP, SHOP);
        View { client, start: Instant::now(), shown: None, drawn_lines: 0, terminal: std::io::stdout().is_terminal() }
    }

    pub(crate) fn show_each_second(&mut self) {
        if self.shown.is_none_or(|shown| shown.elapsed() >= Duration::from_secs(1)) {
            self.show();
        }
    }

    pub(crate) fn show(&mut self) {
        self.shown = Some(Instant::now());
        let seconds = self.start.elapsed().as_secs();
        let numbers = self.client.query_one(NUMBERS, &[]).unwrap_or_else(|error| panic!("{NUMBERS}: {error:?}"));
        let chart = self.client.query(CHART, &[&SLOTS]).unwrap_or_else(|error| panic!("{CHART}: {error:?}"));
        let runs: Vec<i64> = chart.iter().map(|row| row.get("runs")).collect();
        let n = |column: &str| -> i64 { numbers.get(column) };
        if !self.terminal {
            let last = runs.iter().rev().nth(1).copied().unwrap_or(0);
            println!(
                "{seconds:>4} s   orders {:>4}   shipped {:>4}   pending {:>4}   lag {:>4} ms   runs in the last slot {last:>3}   \
                 alerts {:>3} late, {:>3} escalated",
                n("placed"),
                n("shipped"),
                n("pending"),
                n("lag"),
                n("late"),
                n("escalated")
            );
            return;
        }
        self.draw(&frame(seconds, &numbers, &runs));
    }

    pub(crate) fn note(&mut self, line: &str) {
        self.end();
        println!("{line}");
    }

    pub(crate) fn end(&mut self) {
        self.drawn_lines = 0;
    }

    fn draw(&mut self, frame: &str) {
        let up = if self.drawn_lines > 0 { format!("\x1b[{}A\x1b[J", self.drawn_lines) } else { String::new() };
        print!("{up}{frame}");
        let _ = std::io::stdout().flush();
        self.drawn_lines = frame.lines().count();
    }
}

fn frame(seconds: u64, numbers: &Row, runs: &[i64]) -> String {
    let n = |column: &str| -> i64 { numbers.get(column) };
    let mut frame = format!(
        "\n  {seconds:>3} s    orders {:<6} shipped {:<6} pending {:<5} lag {:>3} ms   workers {}\n\n",
        n("placed"),
        n("shipped"),
        n("pending"),
        n("lag"),
        n("workers")
    );
    frame.push_str(&bars(runs));
    frame.push_str(&format!("\n  alerts   late {:<6} escalated {}\n\n", n("late"), n("escalated")));
    frame
}

fn bars(runs: &[i64]) -> String {
    const HEIGHT: i64 = 5;
    let most = runs.iter().copied().max().unwrap_or(0).max(1);
    let mut chart = String::new();
    for level in (1..=HEIGHT).rev() {
        let label = if level == HEIGHT { most.to_string() } else { String::new() };
        chart.push_str(&format!("  {label:>4} |"));
        for &count in runs {
            let height = (count * HEIGHT + most - 1) / most;
            chart.push_str(if height >= level { "##" } else { "  " });
            chart.push(' ');
        }
        chart.push('\n');
    }
    chart.push_str(&format!(
        "     0 +{}\n        runs in each of the last {} slots; now is at the right\n",
        "-".repeat(runs.len() * 3),
        runs.len()
    ));
    chart
}
