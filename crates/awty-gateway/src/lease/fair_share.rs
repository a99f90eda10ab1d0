//! Keeps one tenant from taking all places for concurrent calls, or all memory for requests. Limits are per job, because
//! each tenant is one role with one job.

use std::collections::{HashMap, HashSet};

const CALLS: usize = 4;
const PART: usize = 4;

/// Places for concurrent calls, or memory for requests of the largest size.
pub(super) struct Supply {
    pub used: HashMap<String, usize>,
    pub free: usize,
    pub most: usize,
}

/// Returns the jobs that have less than their share of each supply, and the maximum number of checks in one claim.
pub(super) fn fair_share_of(supplies: [Supply; 2], jobs: &[String]) -> (Vec<String>, usize) {
    let [places, room] = supplies.map(|supply| fair_share(jobs.to_vec(), &supply.used, supply.free, supply.most));
    let has_room: HashSet<String> = room.0.into_iter().collect();
    let jobs = places.0.into_iter().filter(|job| has_room.contains(job)).collect();
    (jobs, places.1.min(room.1))
}

/// Returns the jobs from which to claim checks, and the maximum number of checks in one claim. A place allows one
/// concurrent call. If there is only one job, its claim may fill all free places.
///
/// If there are several jobs, a job's running calls are limited to a quarter of all places, or to `CALLS` times the
/// number of free places, whichever is lower. One free place is reserved for each job without running calls, up to half
/// of all places.
///
/// A job that has reached three quarters of its limit is left out, because its claims would be small. The size of the
/// claim must suit the job with the most running calls, because all checks may belong to this job.
fn fair_share(
    mut jobs: Vec<String>,
    calls: &HashMap<String, usize>,
    free: usize,
    places: usize,
) -> (Vec<String>, usize) {
    if jobs.len() < 2 {
        return (jobs, free);
    }
    let of = |job: &String| calls.get(job).copied().unwrap_or(0);
    let by_free = free.saturating_mul(CALLS);
    let may_have = by_free.min((places / PART).max(1));
    let enough = may_have - may_have / 4;
    let kept = jobs.iter().filter(|job| of(job) == 0).count().min(places / 2);
    jobs.retain(|job| of(job) == 0 || of(job) < enough && free > kept);
    let most = jobs.iter().map(of).max().unwrap_or(may_have);
    let left = (free + usize::from(most == 0)).saturating_sub(kept);
    (jobs, ((by_free - most) / (CALLS + 1)).min(may_have.saturating_sub(most)).min(left).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(jobs: &[&str], calls: &[(&str, usize)], free: usize, places: usize) -> (Vec<String>, usize) {
        let calls = calls.iter().map(|(job, count)| ((*job).to_owned(), *count)).collect();
        fair_share(jobs.iter().map(|job| (*job).to_owned()).collect(), &calls, free, places)
    }

    #[test]
    fn a_job_with_its_share_of_the_memory_is_left_out_though_it_has_few_calls() {
        let supply = |used: &[(&str, usize)], free, most| Supply {
            used: used.iter().map(|(job, count)| ((*job).to_owned(), *count)).collect(),
            free,
            most,
        };
        let jobs = ["a", "b"].map(str::to_owned);
        let places = || supply(&[("a", 48)], 1_952, 2_000);
        assert_eq!(fair_share_of([places(), supply(&[("a", 48)], 208, 256)], &jobs), (vec!["b".to_owned()], 64));
        assert_eq!(fair_share_of([places(), supply(&[("a", 47)], 209, 256)], &jobs).0.len(), 2);
        assert_eq!(fair_share_of([places(), supply(&[("a", 47)], 209, 256)], &jobs[..1]), (vec!["a".to_owned()], 209));
    }

    #[test]
    fn one_job_alone_has_all_places() {
        assert_eq!(shared(&["a"], &[("a", 1_999)], 1, 2_000), (vec!["a".to_owned()], 1));
    }

    #[test]
    fn a_job_with_three_quarters_of_a_quarter_is_left_out() {
        assert_eq!(shared(&["a", "b"], &[("a", 375)], 1_625, 2_000), (vec!["b".to_owned()], 500));
        assert_eq!(shared(&["a", "b"], &[("a", 374)], 1_626, 2_000).0.len(), 2);
        assert_eq!(shared(&["a", "b"], &[("a", 374)], 1_626, 2_000).1, 126);
        assert_eq!(shared(&["a", "b"], &[("a", 4), ("b", 4)], 1, 9).0, Vec::<String>::new());
        assert_eq!(shared(&["a", "b"], &[], 1, 1), (vec!["a".to_owned(), "b".to_owned()], 1));
    }

    #[test]
    fn whatever_greedy_jobs_take_there_is_room_for_another() {
        for places in (4..40).chain([200, 2_000]) {
            for greedy in 1..(places / 2).min(30) {
                let names: Vec<String> = (0..greedy).map(|n| n.to_string()).chain(["other".to_owned()]).collect();
                let mut calls: HashMap<String, usize> = HashMap::new();
                for turn in 0.. {
                    let free = places - calls.values().sum::<usize>();
                    let (jobs, most) = fair_share(names.clone(), &calls, free, places);
                    let takers: Vec<&String> = jobs.iter().filter(|job| *job != "other").collect();
                    if takers.is_empty() {
                        assert!(free > 0 && jobs == ["other"], "{greedy} of {places}: {free} free, {jobs:?}");
                        break;
                    }
                    assert!((1..=free).contains(&most), "{most} of {free}");
                    *calls.entry(takers[turn % takers.len()].clone()).or_default() += most;
                }
                let largest = calls.values().max().copied().unwrap_or(0);
                assert!(largest <= (places / PART).max(1), "{largest} of {places}");
            }
        }
    }
}
