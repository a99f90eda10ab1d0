//! Computes the numbers that identify the PostgreSQL locks for external workers, and for names of jobs.
//!
//! Invariant: a user cannot choose a job name whose locks collide with another job's, because the installation's random
//! number is secret. Superusers, the owner of the database and members of `pg_read_all_data` can read the number.

use sha2::{Digest, Sha256};

pub type Number = (u32, u16);

/// Number of locks for all targets of a job. Targets share locks, so that they cannot fill the server's lock table.
const TARGETS: u16 = 64;

fn numbers(identity: i64, name: &[u8]) -> Number {
    let mut hash = Sha256::new();
    hash.update(identity.to_be_bytes());
    hash.update(name);
    let hash = hash.finalize();
    (u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]), u16::from_be_bytes([hash[4], hash[5]]))
}

/// All claims of a job take this lock. Two jobs share a lock with a probability of 1 in 2⁴⁸.
pub fn of_claims(identity: i64, job: &[u8]) -> Number {
    numbers(identity, job)
}

/// Transactions that schedule checks of a job share this lock.
pub fn of_name(identity: i64, job: &[u8]) -> Number {
    numbers(identity, job)
}

pub fn of_target(identity: i64, job: &[u8], target: &[u8]) -> Number {
    let (_, part) = numbers(identity, target);
    (numbers(identity, job).0, part % TARGETS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_collide_by_chance_only() {
        let jobs: HashSet<Number> = (0..100_000).map(|n| of_claims(7, format!("job {n}").as_bytes())).collect();
        assert_eq!(jobs.len(), 100_000);
        assert_ne!(of_claims(7, b"http"), of_claims(8, b"http"), "another installation");
    }

    #[test]
    fn a_target_shares_its_lock_with_targets_of_its_job_alone() {
        let all = |job: &'static [u8]| (0..10_000).map(move |n| of_target(7, job, format!("target {n}").as_bytes()));
        let (one, other): (HashSet<Number>, HashSet<Number>) = (all(b"http").collect(), all(b"http.app").collect());
        assert_eq!((one.len(), other.len()), (usize::from(TARGETS), usize::from(TARGETS)));
        assert!(one.is_disjoint(&other));
    }
}
