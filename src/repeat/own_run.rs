//! The checks whose function this process is calling. A change to such a check counts as its run's answer.
//!
//! Invariant: empty outside of a call.

use std::cell::RefCell;

thread_local! {
    static OWN: RefCell<Vec<i64>> = const { RefCell::new(Vec::new()) };
}

pub fn during<R>(checks: Vec<i64>, call: impl FnOnce() -> R) -> R {
    /// Also runs when a panic unwinds.
    struct Over;
    impl Drop for Over {
        fn drop(&mut self) {
            OWN.take();
        }
    }
    let _over = Over;
    OWN.set(checks);
    call()
}

/// Whether the function of this check is being called, so that the run changes its own check.
pub fn is_own(check: i64) -> bool {
    OWN.with_borrow(|own| own.contains(&check))
}
