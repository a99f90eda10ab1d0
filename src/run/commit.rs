//! Commits a transaction of a background process without waking the WAL writer each time.
//!
//! Before PostgreSQL 17 nearly each asynchronous commit wakes it (`XLogSetAsyncXactLSN()`, which has learned since to leave it
//! alone until there is a megabyte): a signal for each check, and a busy process more, for a page of log that is flushed soon
//! in any case, at the end of the worker's turn.
//!
//! Invariant: what is committed is on disk as soon as PostgreSQL promises it, within three times `wal_writer_delay`: a commit
//! after 20 ms does wake the WAL writer, which then goes its rounds for ten seconds before it hibernates. Nothing that is
//! shared is changed: the commit sees a copy of PostgreSQL's list of processes, in which the WAL writer is not there to be woken.
//! Does not: flush anything (see `session::flushed`), or exist from PostgreSQL 17 on.

use pgrx::pg_sys;

#[cfg(any(feature = "pg17", feature = "pg18"))]
pub use pg_sys::CommitTransactionCommand as commit;

#[cfg(not(any(feature = "pg17", feature = "pg18")))]
pub use quiet::commit;

#[cfg(not(any(feature = "pg17", feature = "pg18")))]
mod quiet {
    use super::pg_sys;
    use crate::clock;
    use awty_core::Mono;
    use std::cell::Cell;
    use std::time::Duration;

    /// The WAL writer is woken again after so long.
    const PAUSE: Duration = Duration::from_millis(20);

    thread_local! {
        static WOKEN: Cell<Option<Mono>> = const { Cell::new(None) };
        /// The copy, which outlives whatever ends the process in the middle of a commit.
        static COPY: Cell<*mut pg_sys::PROC_HDR> = const { Cell::new(std::ptr::null_mut()) };
    }

    /// Commits.
    ///
    /// # Safety
    /// As `CommitTransactionCommand()`.
    pub unsafe fn commit() {
        let now = clock::mono();
        let is_fresh = |woken: Mono| now.since(woken) < PAUSE.as_micros() as i64;
        let masked = WOKEN.get().is_some_and(is_fresh).then(Mask::put_on);
        if masked.is_none() {
            WOKEN.set(Some(now));
        }
        // SAFETY: as the caller says. An ERROR unwinds through here and drops the mask.
        unsafe { pg_sys::CommitTransactionCommand() };
    }

    /// While it lives, this process sees the copy.
    struct Mask(*mut pg_sys::PROC_HDR);

    impl Mask {
        fn put_on() -> Self {
            // SAFETY: the header is made before any process is started, and stays. What a commit reads of it are pointers
            // that never change; two lists of processes that want to be committed together begin empty in the copy, so that
            // this one leads itself.
            unsafe {
                let shared = pg_sys::ProcGlobal;
                if COPY.get().is_null() {
                    COPY.set(Box::leak(Box::new(shared.read_volatile())));
                }
                let copy = &mut *COPY.get();
                copy.walwriterLatch = std::ptr::null_mut();
                copy.procArrayGroupFirst.value = pg_sys::INVALID_PGPROCNO;
                copy.clogGroupFirst.value = pg_sys::INVALID_PGPROCNO;
                (&raw mut pg_sys::ProcGlobal).write(copy);
                Self(shared)
            }
        }
    }

    impl Drop for Mask {
        fn drop(&mut self) {
            // SAFETY: what was there before.
            unsafe { (&raw mut pg_sys::ProcGlobal).write(self.0) };
        }
    }
}
