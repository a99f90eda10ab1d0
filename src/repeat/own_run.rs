//! Remembers the checks of the current run. If the function changes one of its checks, for example with
//! `awty.schedule()`, awty takes the change as the run's result.

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
