//! One statement claims checks of many jobs, so a job that makes the statement fail is left out for a while.

use crate::db::Trouble;
use crate::sqlstate::{Kind, kind};
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

const PAUSES: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));

#[derive(Debug, Default)]
pub(super) struct Aside(HashMap<String, (Instant, Duration)>);

impl Aside {
    pub fn add(&mut self, job: &str, now: Instant) -> Duration {
        self.0.retain(|_, (until, pause)| *until + *pause > now);
        let pause = self.0.get(job).map_or(PAUSES.0, |(_, pause)| (*pause * 2).min(PAUSES.1));
        self.0.insert(job.to_owned(), (now + pause, pause));
        pause
    }

    pub fn has(&self, job: &str, now: Instant) -> bool {
        self.0.get(job).is_some_and(|(until, _)| *until > now)
    }
}

/// Returns whether the failure may be the fault of a single job, and not of the whole database.
pub(super) fn is_of_a_job(trouble: &Trouble) -> bool {
    match trouble {
        Trouble::Away(_) => false,
        Trouble::Refused { sqlstate, .. } if sqlstate == "55000" => true,
        Trouble::Refused { sqlstate, .. } => !matches!(kind(sqlstate), Kind::Away | Kind::Standby | Kind::Again),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_fails_again_is_left_alone_for_longer() {
        let (mut aside, start) = (Aside::default(), Instant::now());
        assert_eq!(aside.add("a", start), PAUSES.0);
        assert!(aside.has("a", start) && !aside.has("b", start) && !aside.has("a", start + PAUSES.0));
        assert_eq!(aside.add("a", start + PAUSES.0), PAUSES.0 * 2);
        let later = start + PAUSES.0 * 3;
        assert!(!aside.has("a", later));
        assert_eq!(aside.add("a", later + PAUSES.0 * 2), PAUSES.0);
        for _ in 0..20 {
            aside.add("c", start);
        }
        assert_eq!(aside.add("c", start), PAUSES.1);
    }
}
