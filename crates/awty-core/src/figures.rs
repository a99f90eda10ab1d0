//! Counts the runs of one job, for the view `awty.job_status`.
//!
//! Invariant: each run belongs to exactly one class of lateness.

use crate::{Outcome, Time};
use chrono::TimeDelta;

/// Upper bounds of the classes of lateness. One more class counts the runs that are later than all bounds.
pub const LATE: [TimeDelta; 5] = [
    TimeDelta::milliseconds(10),
    TimeDelta::milliseconds(100),
    TimeDelta::seconds(1),
    TimeDelta::seconds(10),
    TimeDelta::minutes(1),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Again,
    Retry,
    End(Outcome),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOf {
    pub started_at: Time,
    pub finished_at: Time,
    pub lateness: TimeDelta,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    pub runs: u64,
    pub done: u64,
    pub failed: u64,
    pub timed_out: u64,
    pub retries: u64,
    pub other: u64,
    pub met: u64,
    pub late_rows: u64,
    /// Sum of the durations of all runs. A run of several checks counts only once.
    pub run_time: TimeDelta,
    pub max_run_time: TimeDelta,
    pub late: [u64; LATE.len() + 1],
    pub last_run_at: Option<Time>,
    pub last_end: Option<(Time, Outcome)>,
    pub last_success_at: Option<Time>,
    pub last_failure_at: Option<Time>,
}

impl Figures {
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

    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

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

    pub fn took(&mut self, run_time: TimeDelta) {
        self.run_time = self.run_time.checked_add(&run_time).unwrap_or(TimeDelta::MAX);
        self.max_run_time = self.max_run_time.max(run_time);
    }

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
