//! The checks whose function is being called in this process: what it does to them is their run's answer.
//!
//! Invariant: outside of a call there are none.

use std::cell::RefCell;

thread_local! {
    static OWN: RefCell<Vec<i64>> = const { RefCell::new(Vec::new()) };
}

/// Calls the function of these checks.
pub fn during<R>(checks: Vec<i64>, call: impl FnOnce() -> R) -> R {
    /// Also where a panic unwinds.
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

/// Is the function of this check being called, so that the run changes its own check?
pub fn is_own(check: i64) -> bool {
    OWN.with_borrow(|own| own.contains(&check))
}
