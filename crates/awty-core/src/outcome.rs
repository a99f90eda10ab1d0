//! The outcome of a check says why the check ended. Every finished check has exactly one outcome.

use crate::KeepHistory;
use crate::label::labels;

labels! {
    Outcome for "outcome" {
        /// The job returned NULL, which means that nothing is left to check.
        Done = "done",
        /// The watched row met the rule's condition before its alert reached level 1.
        Met = "met",
        /// A client cancelled the check, or removed the job.
        Cancelled = "cancelled",
        /// A client scheduled a new check of the same entity, which replaced this check.
        Replaced = "replaced",
        /// The job requested more checks than `max_checks` allows.
        Exhausted = "exhausted",
        /// The job requested a time that is not after the check's slot.
        Past = "past",
        /// The job requested a time beyond `max_horizon`.
        BeyondHorizon = "beyond_horizon",
        /// `max_attempts` runs failed in a row. An error ended the last run.
        Failed = "failed",
        /// `max_attempts` runs failed in a row. The time limit ended the last run.
        TimedOut = "timed_out",
        /// The check's slot passed while no check could run, and the option `on_missed` is `skip`.
        Missed = "missed",
        /// The check could not run within `max_lateness`.
        Expired = "expired",
    }
}

impl Outcome {
    pub const fn is_problem(self) -> bool {
        !matches!(self, Self::Done | Self::Met | Self::Cancelled | Self::Replaced)
    }

    pub const fn kept(self, keep: KeepHistory, runs: u32) -> bool {
        match keep {
            KeepHistory::All => true,
            KeepHistory::Ran => runs > 0,
            KeepHistory::Problems => self.is_problem(),
            KeepHistory::None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keep_history_decides_what_is_archived() {
        for outcome in Outcome::ALL {
            assert!(outcome.kept(KeepHistory::All, 0));
            assert!(outcome.kept(KeepHistory::Ran, 1));
            assert!(!outcome.kept(KeepHistory::Ran, 0));
            assert!(!outcome.kept(KeepHistory::None, 1));
            assert_eq!(outcome.kept(KeepHistory::Problems, 0), outcome.is_problem());
        }
    }

    #[test]
    fn a_problem_is_every_outcome_but_four() {
        let none: Vec<&str> = Outcome::ALL.iter().filter(|end| !end.is_problem()).map(|end| end.as_str()).collect();
        assert_eq!(none, ["done", "met", "cancelled", "replaced"]);
    }

    #[test]
    fn the_labels_are_those_of_the_sql_surface() {
        let labels = "done met cancelled replaced exhausted past beyond_horizon failed timed_out missed expired";
        assert_eq!(Outcome::LABELS.join(" "), labels);
    }
}
