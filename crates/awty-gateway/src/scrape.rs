//! Invariant: a scrape waits at most a few seconds for the database, and leaves out values that are not ready by then.
//!
//! Invariant: all scrapes together use one connection to the database.

use crate::db::{Figures, Target};
use crate::lease::Worker;
use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

const LONGEST: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Seen {
    open: HashMap<(String, String), DateTime<Utc>>,
    until: Option<DateTime<Utc>>,
    missed: BTreeMap<String, u64>,
}

struct Scraper {
    worker: Arc<Worker>,
    seen: Arc<Mutex<Seen>>,
}

pub fn router(worker: Arc<Worker>) -> Router {
    let scraper = Scraper { worker, seen: Arc::default() };
    Router::new().route("/metrics", get(metrics)).with_state(Arc::new(scraper))
}

impl Seen {
    /// Returns how often circuit breakers have opened since the last scrape. Each opening has a new end time and lasts
    /// at least 30 s, so a scrape every 30 s misses none.
    fn opened(&mut self, targets: &[Target]) -> u64 {
        let open: HashMap<_, _> = targets
            .iter()
            .filter_map(|target| target.open.clone())
            .map(|(job, name, until)| ((job, name), until))
            .collect();
        let opened = open.iter().filter(|(target, until)| self.open.get(target) != Some(until)).count();
        self.open = open;
        opened as u64
    }

    /// Adds newly missed checks to the counters. The next scrape starts at `self.until`, which never decreases, so that
    /// no check counts twice after the clock was set back.
    fn add_missed(&mut self, until: DateTime<Utc>, missed: Vec<(String, i64)>) {
        self.until = self.until.max(Some(until));
        for (job, count) in missed {
            *self.missed.entry(job).or_default() += count.unsigned_abs();
        }
    }
}

struct Known {
    figures: Vec<Figures>,
    targets: Vec<Target>,
    missed: BTreeMap<String, u64>,
}

/// Runs statements in a task of their own, because a statement whose client has gone would close its connection to the
/// database, and the session would stay until the statement ends.
async fn read<T: Send + 'static>(until: Instant, statements: impl Future<Output = T> + Send + 'static) -> Option<T> {
    timeout_at(until, tokio::spawn(statements)).await.ok()?.ok()
}

impl Scraper {
    async fn known(&self) -> Option<Known> {
        let (worker, until) = (&self.worker, Instant::now() + LONGEST);
        let view = worker.view();
        let has_http = view.standing.is_some_and(|standing| standing.has_http);
        let jobs: Vec<String> = view.jobs.into_iter().map(|job| job.name).collect();
        // A task that takes longer keeps the lock, so that the next scrape waits for the end of its statements.
        let seen = timeout_at(until, self.seen.clone().lock_owned()).await.ok()?;
        let (db, names) = (worker.requests_db.clone(), jobs.clone());
        let (figures, mut seen) = read(until, async move { (db.figures(&names, has_http).await, seen) }).await?;
        let (figures, targets) = figures.ok()?;
        worker.metrics.opened(seen.opened(&targets));
        let (db, before) = (worker.requests_db.clone(), seen.missed.clone());
        let missed = read(until, async move {
            // If this query fails, `seen.until` keeps its value, so that the next scrape counts the missed checks.
            if let Ok((until, missed)) = db.missed(&jobs, seen.until).await {
                seen.add_missed(until, missed);
            }
            seen.missed.clone()
        });
        Some(Known { figures, targets, missed: missed.await.unwrap_or(before) })
    }
}

async fn metrics(State(scraper): State<Arc<Scraper>>) -> Response {
    let (known, worker) = (scraper.known().await, &scraper.worker);
    let mut text = worker.metrics.text(worker.in_flight());
    let own = text.rfind("# EOF").unwrap_or(text.len());
    text.truncate(own);
    write_connections(&mut text, worker);
    if let Some(Known { figures, targets, missed }) = known {
        write_figures(&mut text, &figures, &missed);
        write_states(&mut text, &targets);
    }
    text.push_str("# EOF\n");
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

fn write_connections(text: &mut String, worker: &Worker) {
    let pools = [&worker.db, &worker.answers_db, &worker.requests_db].map(|db| db.connections());
    let (all, resting) = pools.iter().fold((0, 0), |(all, resting), (more, idle)| (all + more, resting + idle));
    text.push_str("# TYPE awty_gateway_db_connections gauge\n");
    for (state, count) in [("busy", all.saturating_sub(resting)), ("idle", resting)] {
        let _ = writeln!(text, "awty_gateway_db_connections{{state=\"{state}\"}} {count}");
    }
}

fn write_figures(text: &mut String, figures: &[Figures], missed: &BTreeMap<String, u64>) {
    let now = crate::clock::now();
    let lag = |figures: &Figures| figures.oldest.map_or(0.0, |at| (now - at).as_seconds_f64().max(0.0));
    type Row = (&'static str, fn(&Figures) -> i64);
    let rows: [Row; 4] = [
        ("awty_pending", |figures| figures.pending),
        ("awty_overdue", |figures| figures.overdue),
        ("awty_schedules_failing", |figures| figures.failing),
        ("awty_held", |figures| figures.held),
    ];
    for (name, of) in rows {
        let _ = writeln!(text, "# TYPE {name} gauge");
        for one in figures {
            let _ = writeln!(text, "{name}{{job={:?}}} {}", one.job, of(one));
        }
    }
    text.push_str("# TYPE awty_lag_seconds gauge\n");
    for one in figures {
        let _ = writeln!(text, "awty_lag_seconds{{job={:?}}} {}", one.job, lag(one));
    }
    text.push_str("# TYPE awty_outcomes counter\n");
    for one in figures {
        for (outcome, count) in ["done", "failed", "timed_out", "other"].into_iter().zip(one.ends) {
            let _ = writeln!(text, "awty_outcomes_total{{job={:?},outcome=\"{outcome}\"}} {count}", one.job);
        }
    }
    text.push_str("# TYPE awty_missed counter\n");
    for one in figures {
        let _ = writeln!(text, "awty_missed_total{{job={:?}}} {}", one.job, missed.get(&one.job).unwrap_or(&0));
    }
}

fn write_states(text: &mut String, targets: &[Target]) {
    let mut states = BTreeMap::<&str, usize>::new();
    targets.iter().for_each(|target| *states.entry(&target.state).or_default() += 1);
    text.push_str("# TYPE awty_targets gauge\n");
    for (state, count) in states {
        let _ = writeln!(text, "awty_targets{{state={state:?}}} {count}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    #[test]
    fn each_opening_of_a_breaker_counts_once() {
        let (mut seen, now) = (Seen::default(), DateTime::UNIX_EPOCH);
        let target = |name: &str, seconds: Option<i64>| Target {
            state: if seconds.is_some() { "open" } else { "half_open" }.to_owned(),
            open: seconds.map(|seconds| ("http".into(), name.into(), now + TimeDelta::seconds(seconds))),
        };
        assert_eq!(seen.opened(&[target("a", Some(30)), target("b", Some(30))]), 2);
        assert_eq!(seen.opened(&[target("b", Some(30)), target("a", Some(30))]), 0, "the same ones");
        assert_eq!(
            seen.opened(&[target("a", Some(90)), target("b", None)]),
            1,
            "one has opened again, one is half open"
        );
        assert_eq!(seen.opened(&[]), 0);
        assert_eq!(seen.opened(&[target("b", Some(30))]), 1);
    }

    #[test]
    fn what_was_missed_adds_up_and_a_clock_that_was_set_back_repeats_nothing() {
        let (mut seen, now) = (Seen::default(), DateTime::UNIX_EPOCH);
        seen.add_missed(now, vec![("http".into(), 2)]);
        seen.add_missed(now - TimeDelta::hours(1), vec![("http".into(), 3)]);
        assert_eq!((seen.until, seen.missed.get("http")), (Some(now), Some(&5)));
    }
}
