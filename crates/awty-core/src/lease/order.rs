//! Decides how many due checks of each role and target an external worker gets in one claim.
//!
//! Invariant: a role gets a second check only after each waiting role has got a first check. The role that was served
//! longest ago comes first. A job's targets take turns in the order of their names.

use crate::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub served_at: Option<Time>,
    pub due: usize,
}

pub fn shares(waiting: &[Waiting], max: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..waiting.len()).collect();
    order.sort_by_key(|role| waiting[*role].served_at);
    let in_turn = in_turn(&order.iter().map(|role| waiting[*role].due).collect::<Vec<_>>(), max);
    let mut shares = vec![0; waiting.len()];
    order.into_iter().zip(in_turn).for_each(|(role, share)| shares[role] = share);
    shares
}

/// Returns how many checks each role or target gets, at most `max` in total. In each round, each role or target that
/// still has due checks gets one check.
pub fn in_turn(due: &[usize], max: usize) -> Vec<usize> {
    let (mut shares, mut left) = (vec![0; due.len()], max);
    loop {
        let wanting: Vec<usize> = (0..due.len()).filter(|place| shares[*place] < due[*place]).take(left).collect();
        if wanting.is_empty() {
            return shares;
        }
        let least = wanting.iter().map(|place| due[*place] - shares[*place]).min().unwrap_or(1);
        let rounds = least.min(left / wanting.len()).max(1);
        left -= rounds * wanting.len();
        wanting.into_iter().for_each(|place| shares[place] += rounds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::clock;
    use proptest::prelude::*;

    #[test]
    fn a_backlog_puts_off_a_single_check_by_at_most_one_claim() {
        let (early, late) = (Some(clock("10:00:00")), Some(clock("10:00:01")));
        let waiting = |served_at, due| Waiting { served_at, due };
        assert_eq!(shares(&[waiting(early, 100_000), waiting(late, 1)], 1), [1, 0]);
        assert_eq!(shares(&[waiting(late, 100_000), waiting(early, 1)], 1), [0, 1]);
        assert_eq!(shares(&[waiting(late, 100_000), waiting(None, 1)], 500), [499, 1]);
        assert_eq!(shares(&[waiting(early, 3), waiting(early, 2)], 10), [3, 2]);
        assert_eq!(shares(&[], 10), [0_usize; 0]);
    }
    proptest! {
        #[test]
        fn shares_are_those_of_dealing_one_by_one(due in prop::collection::vec(0_usize..40, 0..20), max in 0_usize..300) {
            let (mut dealt, mut left) = (vec![0; due.len()], max);
            while left > 0 && dealt != due {
                for place in 0..due.len() {
                    if left > 0 && dealt[place] < due[place] {
                        dealt[place] += 1;
                        left -= 1;
                    }
                }
            }
            prop_assert_eq!(in_turn(&due, max), dealt);
        }
    }
}
