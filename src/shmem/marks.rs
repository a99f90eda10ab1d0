//! Two files in `pg_stat/` record how the server ended, because shared memory does not survive a crash. The next start
//! of the server reads the files.
//!
//! The postmaster writes the first file at a clean shutdown. The second file names the worker whose check is in
//! quarantine, because only this check is blamed for a crash.

use pgrx::{pg_guard, pg_sys};

const CLEAN: &str = "pg_stat/awty_clean";
const QUARANTINED: &str = "pg_stat/awty_quarantined";

pub type EntryId = (u32, i32);

pub fn was_clean() -> bool {
    let clean = std::fs::remove_file(CLEAN).is_ok();
    // SAFETY: the callback ignores its argument, and its library is never unloaded.
    unsafe { pg_sys::on_shmem_exit(Some(leave_clean), pg_sys::Datum::from(0)) };
    clean
}

#[pg_guard]
extern "C-unwind" fn leave_clean(code: i32, _argument: pg_sys::Datum) {
    // SAFETY: PostgreSQL sets this flag at the start of a process, and never changes it.
    if code == 0 && !unsafe { pg_sys::IsUnderPostmaster } {
        // Without the file, the next start assumes a crash. Interrupted checks then run alone for a while, because one
        // of them may have caused the crash.
        let _ = std::fs::write(CLEAN, "");
    }
}

pub fn was_quarantined() -> Option<EntryId> {
    let text = std::fs::read_to_string(QUARANTINED).ok()?;
    let _ = std::fs::remove_file(QUARANTINED);
    let (database, entry) = text.trim().split_once(' ')?;
    Some((database.parse().ok()?, entry.parse().ok()?))
}

pub fn set_quarantined(place: Option<EntryId>) {
    let _ = match place {
        Some((database, entry)) => std::fs::write(QUARANTINED, format!("{database} {entry}\n")),
        None => std::fs::remove_file(QUARANTINED),
    };
}
