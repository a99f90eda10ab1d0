//! Which jobs are claimed, and how many checks at once, so that the calls of one job leave places for another.

use std::collections::HashMap;

/// A job has up to so many calls for each place that is free.
const CALLS: usize = 4;

/// The jobs to claim, and the largest claim. Where there is more than one job, a job with `CALLS` calls for each place that is free is left
/// out: so one alone has four fifths of the places, and two have eight ninths. The last place is for a job without calls. No claim leads
/// beyond that, even if all of it is of one job.
pub(super) fn share(mut jobs: Vec<String>, calls: &HashMap<String, usize>, free: usize) -> (Vec<String>, usize) {
    if jobs.len() < 2 {
        return (jobs, free);
    }
    let of = |job: &String| calls.get(job).copied().unwrap_or(0);
    let may_have = free.saturating_mul(CALLS);
    jobs.retain(|job| of(job) < may_have && (free > 1 || of(job) == 0));
    let most = jobs.iter().map(of).max().unwrap_or(may_have);
    (jobs, ((may_have - most) / (CALLS + 1)).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(jobs: &[&str], calls: &[(&str, usize)], free: usize) -> (Vec<String>, usize) {
        let calls = calls.iter().map(|(job, count)| ((*job).to_owned(), *count)).collect();
        share(jobs.iter().map(|job| (*job).to_owned()).collect(), &calls, free)
    }

    #[test]
    fn one_job_alone_has_all_places() {
        assert_eq!(shared(&["a"], &[("a", 1_999)], 1), (vec!["a".to_owned()], 1));
    }

    #[test]
    fn a_job_with_four_calls_for_each_free_place_is_left_out() {
        assert_eq!(shared(&["a", "b"], &[("a", 1_600)], 400), (vec!["b".to_owned()], 320));
        assert_eq!(shared(&["a", "b"], &[("a", 1_599)], 401).0.len(), 2);
        assert_eq!(shared(&["a", "b"], &[("a", 4), ("b", 4)], 1).0, Vec::<String>::new());
        assert_eq!(shared(&["a", "b"], &[], 1), (vec!["a".to_owned(), "b".to_owned()], 1));
    }

    #[test]
    fn whatever_one_job_takes_there_is_room_for_another() {
        for places in 2..200 {
            let mut greedy = 0;
            loop {
                let (jobs, most) = shared(&["greedy", "other"], &[("greedy", greedy)], places - greedy);
                if !jobs.contains(&"greedy".to_owned()) {
                    break;
                }
                assert!(most > 0);
                greedy += most;
            }
            assert!(greedy >= places / 2 && greedy < places, "{greedy} of {places}");
            assert!(greedy * 5 >= places * 4 - 5, "{greedy} of {places}");
        }
    }
}
