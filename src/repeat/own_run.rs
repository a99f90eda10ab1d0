//! If a run changes its own check, this change is the answer of the run.

use std::cell::RefCell;

thread_local! {
    static OWN: RefCell<Vec<i64>> = const { RefCell::new(Vec::new()) };
}

pub fn during<R>(checks: Vec<i64>, call: impl FnOnce() -> R) -> R {
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

pub fn is_own(check: i64) -> bool {
    OWN.with_borrow(|own| own.contains(&check))
}
