//! What the runs of one job come to: the counters of `awty.job_status`.
//!
//! Invariant: the numbers by lateness are disjoint and add up to the number of runs; counting in parts and adding up is the same as
//! counting all. Nothing overflows.
//!
//! Does not: know whose they are (see [`crate::job_table`]).

use crate::{Outcome, Time};
use chrono::TimeDelta;

/// Runs that started no later than these after their slots are counted together; the others are the last number.
pub const LATE: [TimeDelta; 5] = [
    TimeDelta::milliseconds(10),
    TimeDelta::milliseconds(100),
    TimeDelta::seconds(1),
    TimeDelta::seconds(10),
    TimeDelta::minutes(1),
];

/// What became of a check by its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is asked again.
    Again,
    /// The run failed, and is tried again.
    Retry,
    /// It ended.
    End(Outcome),
}

/// One run of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOf {
    /// When it began.
    pub started_at: Time,
    /// When it was over.
    pub finished_at: Time,
    /// How long after its slot it began.
    pub lateness: TimeDelta,
}

/// Counters and last times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Runs.
    pub runs: u64,
    /// Checks that ended as `done`.
    pub done: u64,
    /// Checks that ended as `failed`.
    pub failed: u64,
    /// Checks that ended as `timed_out`.
    pub timed_out: u64,
    /// Failed runs that are tried again.
    pub retries: u64,
    /// Checks that a run ended otherwise.
    pub other: u64,
    /// The time of all runs, those of one set once.
    pub run_time: TimeDelta,
    /// The longest run.
    pub max_run_time: TimeDelta,
    /// Runs by lateness, see [`LATE`].
    pub late: [u64; LATE.len() + 1],
    /// When the last run began.
    pub last_run_at: Option<Time>,
    /// How the last check ended that a run ended, and when.
    pub last_end: Option<(Time, Outcome)>,
    /// When the last run was over that did not fail.
    pub last_success_at: Option<Time>,
    /// When the last run failed, or a run ended its check with a problem.
    pub last_failure_at: Option<Time>,
}

impl Figures {
    /// Nothing has run.
    pub const NONE: Self = Self {
        runs: 0,
        done: 0,
        failed: 0,
        timed_out: 0,
        retries: 0,
        other: 0,
        run_time: TimeDelta::zero(),
        max_run_time: TimeDelta::zero(),
        late: [0; LATE.len() + 1],
        last_run_at: None,
        last_end: None,
        last_success_at: None,
        last_failure_at: None,
    };

    /// A check has run.
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

    /// A run, of one check or of a set, took so long.
    pub fn took(&mut self, run_time: TimeDelta) {
        self.run_time = self.run_time.checked_add(&run_time).unwrap_or(TimeDelta::MAX);
        self.max_run_time = self.max_run_time.max(run_time);
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, more: &Self) {
        for (number, more) in [
            (&mut self.runs, more.runs),
            (&mut self.done, more.done),
            (&mut self.failed, more.failed),
            (&mut self.timed_out, more.timed_out),
            (&mut self.retries, more.retries),
            (&mut self.other, more.other),
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

/// The later of two ends; the second, where they are at the same time.
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
        let Figures { runs, done, failed, timed_out, retries, other, .. } = figures;
        assert_eq!((runs, done, failed, timed_out, retries), (12, 1, 1, 1, 1));
        assert_eq!(done + failed + timed_out + other, Outcome::ALL.len() as u64);
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
