//! The checks that a worker runs or has prefetched.
//!
//! Invariant (promise P4 in docs/promises.md): two workers never claim the same check at the same time, because the
//! caller holds one lock for the lists of all workers.

#[derive(Clone, Copy, Debug)]
pub struct Ids<const N: usize> {
    ids: [i64; N],
    len: usize,
}

impl<const N: usize> Ids<N> {
    pub const NONE: Self = Self { ids: [0; N], len: 0 };

    pub fn clear(&mut self) {
        self.len = 0;
    }

    pub fn add(&mut self, more: &[i64]) {
        let len = self.len.saturating_add(more.len()).min(N);
        self.ids[self.len..len].copy_from_slice(&more[..len - self.len]);
        self.len = len;
        self.ids[..len].sort_unstable();
    }

    pub fn as_slice(&self) -> &[i64] {
        &self.ids[..self.len.min(N)]
    }

    pub fn has(&self, id: i64) -> bool {
        self.as_slice().binary_search(&id).is_ok()
    }

    pub fn claim(&mut self, wanted: &[i64], has_another: impl Fn(i64) -> bool) -> Vec<i64> {
        self.clear();
        let granted: Vec<i64> = wanted.iter().copied().filter(|id| !has_another(*id)).take(N).collect();
        self.add(&granted);
        granted
    }

    /// Returns the `wanted` checks that are on no other worker's list. Adds these checks to this worker's list until
    /// the list is full.
    pub fn prefetch(&mut self, wanted: &[i64], has_another: impl Fn(i64) -> bool) -> Vec<i64> {
        let free: Vec<i64> = wanted.iter().copied().filter(|id| !has_another(*id)).collect();
        self.add(&free);
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_sorted_and_bounded() {
        let mut ids = Ids::<4>::NONE;
        ids.add(&[5, 1]);
        ids.add(&[3, 2, 9]);
        assert_eq!(ids.as_slice(), [1, 2, 3, 5]);
        assert!(ids.has(3) && !ids.has(9));
        ids.clear();
        assert!(!ids.has(3) && ids.as_slice().is_empty());
    }

    #[test]
    fn a_claim_replaces_the_one_before_and_leaves_what_others_have() {
        let mut ids = Ids::<4>::NONE;
        assert_eq!(ids.claim(&[1, 2, 3], |id| id == 2), [1, 3]);
        assert_eq!(ids.claim(&[4], |_| false), [4]);
        assert!(!ids.has(1));
        assert_eq!(ids.claim(&[1, 2, 3, 4, 5, 6], |_| false), [1, 2, 3, 4]);
    }

    #[test]
    fn what_is_prefetched_adds_up() {
        let mut ids = Ids::<3>::NONE;
        assert_eq!(ids.prefetch(&[1, 2], |_| false), [1, 2]);
        assert_eq!(ids.prefetch(&[3, 4, 5], |id| id == 4), [3, 5]);
        assert_eq!(ids.as_slice(), [1, 2, 3]);
    }
}
