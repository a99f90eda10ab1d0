//! Decides when awty itself vacuums its table of pending checks, because autovacuum runs too rarely.
//!
//! Invariant: two vacuums are at least [`PAUSE`] apart, or [`AFTER_FAILURE`] if the first vacuum failed.

use crate::Mono;
use std::time::Duration;

const LEAST: u64 = 30_000;
/// Number of dead rows per page at which a large table is vacuumed. A page holds about sixty rows.
const PER_PAGE: u64 = 16;
/// Minimum time between two vacuums. A vacuum also waits this long after the first dead row, so that workers can finish
/// a short backlog first.
pub const PAUSE: Duration = Duration::from_secs(2);
pub const AFTER_FAILURE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadRows {
    rows: u64,
    limit: u64,
    not_before: Mono,
}

impl DeadRows {
    pub const NONE: Self = Self { rows: 0, limit: LEAST, not_before: Mono(0) };

    pub fn add(&mut self, rows: u64, mono: Mono) {
        if self.rows == 0 {
            self.not_before = self.not_before.max(mono.plus(PAUSE));
        }
        self.rows = self.rows.saturating_add(rows);
    }

    pub fn are_many(&self, mono: Mono) -> bool {
        self.rows >= self.limit && mono >= self.not_before
    }

    /// Returns whether a vacuum is due. If so, resets the number of dead rows, and the caller must vacuum.
    pub fn take(&mut self, mono: Mono) -> bool {
        let many = self.are_many(mono);
        if many {
            self.rows = 0;
            self.not_before = mono.plus(AFTER_FAILURE);
        }
        many
    }

    pub fn vacuumed(&mut self, pages: u32, mono: Mono) {
        self.limit = LEAST.max(PER_PAGE * u64::from(pages));
        self.not_before = mono.plus(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{START, after};

    #[test]
    fn a_few_are_left_to_autovacuum() {
        let mut dead = DeadRows::NONE;
        dead.add(LEAST - 1, START);
        assert!(!dead.take(after(1_000)));
        dead.add(1, after(1_000));
        assert!(dead.take(after(1_000)));
    }

    #[test]
    fn a_short_backlog_is_not_disturbed() {
        let mut dead = DeadRows::NONE;
        dead.add(1, START);
        dead.add(10 * LEAST, after(1));
        assert!(!dead.are_many(after(1)));
        assert!(dead.are_many(after(2)));
    }

    #[test]
    fn those_that_come_during_a_vacuum_wait_for_the_next() {
        let mut dead = DeadRows::NONE;
        dead.add(LEAST, START);
        assert!(dead.take(after(3)));
        dead.add(LEAST, after(4));
        assert!(!dead.take(after(10)), "the first vacuum is not over");
        dead.vacuumed(1_000, after(10));
        assert!(!dead.take(after(11)));
        assert!(dead.take(after(12)));
    }

    #[test]
    fn after_a_failure_autovacuum_has_its_chance() {
        let mut dead = DeadRows::NONE;
        dead.add(LEAST, START);
        assert!(dead.take(after(3)));
        dead.add(LEAST, after(4));
        assert!(!dead.take(after(62)));
        assert!(dead.take(after(63)));
    }

    #[test]
    fn a_large_table_may_have_more() {
        let mut dead = DeadRows::NONE;
        dead.vacuumed(100_000, START);
        dead.add(1_599_999, START);
        assert!(!dead.take(after(3)));
        dead.add(1, START);
        assert!(dead.take(after(3)));
    }
}
