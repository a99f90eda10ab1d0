//! Who is next: how a claim is divided among roles.
//!
//! Invariant: no role gets two checks while another one waits for its first; the role that has waited longest comes first. So one
//! role's backlog puts off another's single check by at most one claim.
//!
//! Does not: look at checks. Within a role the oldest comes first.

use crate::Time;

/// A role with checks that are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// When a check of it was last handed out.
    pub served_at: Option<Time>,
    /// How many of its checks could be handed out now.
    pub due: usize,
}

/// How many checks each of these roles gets of a claim of at most `max`.
pub fn shares(waiting: &[Waiting], max: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..waiting.len()).collect();
    order.sort_by_key(|role| waiting[*role].served_at);
    let (mut shares, mut left) = (vec![0; waiting.len()], max);
    loop {
        let mut any = false;
        for role in &order {
            if left > 0 && shares[*role] < waiting[*role].due {
                shares[*role] += 1;
                left -= 1;
                any = true;
            }
        }
        if !any {
            return shares;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::clock;

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
}
