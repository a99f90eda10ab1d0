//! The memory limit of a run (`awty.job_memory`): the kernel refuses the process more, and PostgreSQL turns that into an
//! ordinary ERROR 53200 of the run.
//!
//! Invariant: while Rust code runs that may allocate, there is room: an error lifts the limit far enough for its own report,
//! and awty's own functions lift it while they work, because an allocation that fails in Rust ends the process.
//! Does not: count shared memory or files; see `temp_file_limit` for those.

use std::sync::atomic::{AtomicU64, Ordering};

/// Room for a report and for awty's own bookkeeping, in bytes.
const RESERVE: u64 = 8 * 1024 * 1024;

/// The limit in force; 0 for none.
static LIMIT: AtomicU64 = AtomicU64::new(0);

/// Lets the process allocate that much more from now on.
pub fn limit(bytes: u64) {
    let Some(used) = used() else { return };
    LIMIT.store(used.saturating_add(bytes), Ordering::Relaxed);
    set(LIMIT.load(Ordering::Relaxed));
}

/// Takes the limit away.
pub fn lift() {
    if LIMIT.swap(0, Ordering::Relaxed) != 0 {
        set(libc::RLIM_INFINITY);
    }
}

/// Makes room above the limit for a while, and brings the limit back when the result is dropped.
pub struct Room(bool);

/// See [`Room`].
pub fn room() -> Room {
    let limited = LIMIT.load(Ordering::Relaxed) != 0;
    if limited {
        set(libc::RLIM_INFINITY);
    }
    Room(limited)
}

impl Drop for Room {
    fn drop(&mut self) {
        let limit = LIMIT.load(Ordering::Relaxed);
        if self.0 && limit != 0 {
            set(limit);
        }
    }
}

/// Makes room for the report of an error, once the limit has been reached. A run that goes on after catching it gains no
/// more than that each time.
pub fn reserve_for_error() {
    let limit = LIMIT.load(Ordering::Relaxed);
    if limit != 0
        && let Some(used) = used()
        && used.saturating_add(RESERVE) > limit
    {
        set(used.saturating_add(RESERVE));
    }
}

/// The size of the process's data, as the kernel counts it for the limit.
fn used() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = status.split_ascii_whitespace().nth(5)?.parse().ok()?;
    // SAFETY: asks for a constant of the system.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
    Some(pages * page)
}

fn set(soft: u64) {
    let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: reads and writes a local. Only the soft limit moves, so it can be raised again.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_DATA, &mut limits) == 0 {
            limits.rlim_cur = soft.min(limits.rlim_max);
            libc::setrlimit(libc::RLIMIT_DATA, &limits);
        }
    }
}
