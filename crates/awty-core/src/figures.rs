//! Counts the runs of one job, for the view `awty.job_status`.
//!
//! Invariant: each run counts in exactly one lateness class, so the classes add up to `runs`.

use crate::{Outcome, Time};
use chrono::TimeDelta;

/// Upper bounds of the lateness classes. The last class has no bound.
pub const LATE: [TimeDelta; 5] = [
    TimeDelta::milliseconds(10),
    TimeDelta::milliseconds(100),
    TimeDelta::seconds(1),
    TimeDelta::seconds(10),
    TimeDelta::minutes(1),
];

/// What a run did to its check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The job requested another check.
    Again,
    /// The run failed and will be retried.
    Retry,
    /// The run ended the check.
    End(Outcome),
}

/// A run of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOf {
    /// Start of the run.
    pub started_at: Time,
    /// End of the run.
    pub finished_at: Time,
    /// Time from the check's slot to the start of the run.
    pub lateness: TimeDelta,
}

/// Counters of a job's runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Number of runs.
    pub runs: u64,
    /// Checks that ended as `done`.
    pub done: u64,
    /// Checks that ended as `failed`.
    pub failed: u64,
    /// Checks that ended as `timed_out`.
    pub timed_out: u64,
    /// Failed runs that are retried.
    pub retries: u64,
    /// Checks that a run ended with another outcome.
    pub other: u64,
    /// Watched rows that met a rule in time.
    pub met: u64,
    /// Watched rows whose alert reached level 1.
    pub late_rows: u64,
    /// Total duration of the runs. A run of several checks counts once.
    pub run_time: TimeDelta,
    /// Longest duration of a run.
    pub max_run_time: TimeDelta,
    /// Number of runs in each lateness class of [`LATE`].
    pub late: [u64; LATE.len() + 1],
    /// Start of the last run.
    pub last_run_at: Option<Time>,
    /// Time and outcome of the last check that a run ended.
    pub last_end: Option<(Time, Outcome)>,
    /// End of the last run that did not fail.
    pub last_success_at: Option<Time>,
    /// End of the last run that failed or ended its check with a problem.
    pub last_failure_at: Option<Time>,
}

impl Figures {
    /// A job without runs.
    pub const NONE: Self = Self {
        runs: 0,
        done: 0,
        failed: 0,
        timed_out: 0,
        retries: 0,
        other: 0,
        met: 0,
        late_rows: 0,
        run_time: TimeDelta::zero(),
        max_run_time: TimeDelta::zero(),
        late: [0; LATE.len() + 1],
        last_run_at: None,
        last_end: None,
        last_success_at: None,
        last_failure_at: None,
    };

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    /// Counts a run.
    pub fn ran(&mut self, run: &RunOf, fate: Fate) {
        self.runs = self.runs.saturating_add(1);
        let place = LATE.iter().position(|late| run.lateness <= *late).unwrap_or(LATE.len());
        self.late[place] = self.late[place].saturating_add(1);
        self.last_run_at = self.last_run_at.max(Some(run.started_at));
        let is_problem = match fate {
            Fate::Again => false,
            Fate::Retry => {
                self.retries = self.retries.saturating_add(1);
                true
            }
            Fate::End(outcome) => {
                let number = match outcome {
                    Outcome::Done => &mut self.done,
                    Outcome::Failed => &mut self.failed,
                    Outcome::TimedOut => &mut self.timed_out,
                    Outcome::Met => &mut self.met,
                    _ => &mut self.other,
                };
                *number = number.saturating_add(1);
                self.last_end = later_end(self.last_end, Some((run.finished_at, outcome)));
                outcome.is_problem()
            }
        };
        let last = if is_problem { &mut self.last_failure_at } else { &mut self.last_success_at };
        *last = (*last).max(Some(run.finished_at));
    }

    /// Adds the duration of a run.
    pub fn took(&mut self, run_time: TimeDelta) {
        self.run_time = self.run_time.checked_add(&run_time).unwrap_or(TimeDelta::MAX);
        self.max_run_time = self.max_run_time.max(run_time);
    }

    /// Adds the counters of other runs.
    pub fn add(&mut self, more: &Self) {
        for (number, more) in [
            (&mut self.runs, more.runs),
            (&mut self.done, more.done),
            (&mut self.failed, more.failed),
            (&mut self.timed_out, more.timed_out),
            (&mut self.retries, more.retries),
            (&mut self.other, more.other),
            (&mut self.met, more.met),
            (&mut self.late_rows, more.late_rows),
        ] {
            *number = number.saturating_add(more);
        }
        for (number, more) in self.late.iter_mut().zip(more.late) {
            *number = number.saturating_add(more);
        }
        self.run_time = self.run_time.checked_add(&more.run_time).unwrap_or(TimeDelta::MAX);
        self.max_run_time = self.max_run_time.max(more.max_run_time);
        self.last_run_at = self.last_run_at.max(more.last_run_at);
        self.last_success_at = self.last_success_at.max(more.last_success_at);
        self.last_failure_at = self.last_failure_at.max(more.last_failure_at);
        self.last_end = later_end(self.last_end, more.last_end);
    }
}

fn later_end(one: Option<(Time, Outcome)>, other: Option<(Time, Outcome)>) -> Option<(Time, Outcome)> {
    let at = |end: Option<(Time, Outcome)>| end.map(|(at, _)| at);
    if at(one) > at(other) { one } else { other }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::clock;

    fn run(late_ms: i64) -> RunOf {
        RunOf {
            started_at: clock("10:00:00"),
            finished_at: clock("10:00:01"),
            lateness: TimeDelta::milliseconds(late_ms),
        }
    }

    #[test]
    fn each_fate_is_counted_once() {
        let mut figures = Figures::NONE;
        figures.ran(&run(0), Fate::Again);
        figures.ran(&run(0), Fate::Retry);
        for outcome in Outcome::ALL {
            figures.ran(&run(0), Fate::End(*outcome));
        }
        let Figures { runs, done, failed, timed_out, retries, other, met, .. } = figures;
        assert_eq!((runs, done, failed, timed_out, retries, met), (13, 1, 1, 1, 1, 1));
        assert_eq!(done + failed + timed_out + met + other, Outcome::ALL.len() as u64);
        assert_eq!(figures.last_end, Some((clock("10:00:01"), Outcome::Expired)));
        assert_eq!(
            (figures.last_success_at, figures.last_failure_at),
            (Some(clock("10:00:01")), Some(clock("10:00:01")))
        );
    }

    #[test]
    fn a_run_is_counted_by_its_lateness_in_one_place() {
        let mut figures = Figures::NONE;
        for late_ms in [0, 10, 11, 100, 101, 1_000, 1_001, 10_000, 10_001, 60_000, 60_001] {
            figures.ran(&run(late_ms), Fate::Again);
        }
        assert_eq!(figures.late, [2, 2, 2, 2, 2, 1]);
    }

    #[test]
    fn the_time_of_a_set_is_counted_once() {
        let mut figures = Figures::NONE;
        figures.took(TimeDelta::seconds(2));
        figures.took(TimeDelta::seconds(1));
        assert_eq!((figures.run_time, figures.max_run_time), (TimeDelta::seconds(3), TimeDelta::seconds(2)));
        figures.took(TimeDelta::MAX);
        assert_eq!(figures.run_time, TimeDelta::MAX);
    }
}
