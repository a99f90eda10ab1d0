//! Counts what the loops of parser and search do, so that a test can say how much work an input takes at most.
//!
//! Invariant: each turn of a loop whose length depends on the input counts once.
//!
//! Does not: exist outside of unit tests; [`step`] is empty there.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// One turn of a loop.
#[inline(always)]
pub(super) fn step() {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

/// What `work` gives, and how many steps it took.
#[cfg(test)]
pub(super) fn counted<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = STEPS.with(std::cell::Cell::get);
    let result = work();
    (result, STEPS.with(std::cell::Cell::get) - before)
}
