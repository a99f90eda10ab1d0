//! Marks on disk that tell the next start of the server how this one ended.
//!
//! PostgreSQL tells no extension whether it was shut down in good order, and forgets shared memory in a crash. So there are two files
//! in `pg_stat/`, where pg_stat_statements has its own:
//! - one that the postmaster leaves when it ends well: without it, the checks that were about to run are suspects;
//! - one that names the suspect in quarantine: a crash is blamed on that one, and not on suspects that are still running beside it.
//!
//! Invariant: both are hints. A file that is missing or broken costs time, or a count too many, and never a check.
//! Does not: flush anything. The files are about crashes of PostgreSQL, which the kernel's memory survives.

use pgrx::{pg_guard, pg_sys};

// Relative to the data directory, where each process of the server works.
const CLEAN: &str = "pg_stat/awty_clean";
const QUARANTINED: &str = "pg_stat/awty_quarantined";

/// A worker by the OID of its database and the number of its entry.
pub type Place = (u32, i32);

/// Was the server last shut down in good order? Called in the postmaster, when shared memory is made.
pub fn was_clean() -> bool {
    let clean = std::fs::remove_file(CLEAN).is_ok();
    // SAFETY: the callback takes no argument and lives as long as the library, which is never unloaded.
    unsafe { pg_sys::on_shmem_exit(Some(leave_clean), pg_sys::Datum::from(0)) };
    clean
}

#[pg_guard]
extern "C-unwind" fn leave_clean(code: i32, _argument: pg_sys::Datum) {
    // SAFETY: a flag that each process sets when it starts.
    if code == 0 && !unsafe { pg_sys::IsUnderPostmaster } {
        // Without the mark, checks run alone that need not: no harm.
        let _ = std::fs::write(CLEAN, "");
    }
}

/// Who was in quarantine when the server went down? Called in the postmaster, when shared memory is made.
pub fn was_quarantined() -> Option<Place> {
    let text = std::fs::read_to_string(QUARANTINED).ok()?;
    let _ = std::fs::remove_file(QUARANTINED);
    let (database, entry) = text.trim().split_once(' ')?;
    Some((database.parse().ok()?, entry.parse().ok()?))
}

/// A worker enters the quarantine, or the one there leaves it.
pub fn set_quarantined(place: Option<Place>) {
    let _ = match place {
        Some((database, entry)) => std::fs::write(QUARANTINED, format!("{database} {entry}\n")),
        None => std::fs::remove_file(QUARANTINED),
    };
}
