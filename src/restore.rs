//! Detects that the server was restored from a backup.
//!
//! A start is a restore if `recovery.signal` or `backup_label` exists and `standby.signal` does not exist.
//!
//! Invariant: a later restore has a later time, even if the clock was set back. A copy of the disks without a backup is
//! not detected, because PostgreSQL starts it as after a crash.

use crate::pg::clock::{self, Timestamp};
use crate::settings;
use pgrx::pg_sys;
use std::ffi::CStr;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};

const FILE: &CStr = c"pg_stat/awty_restored";
const NEW: &CStr = c"pg_stat/awty_restored.new";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hold {
    Foreign,
    Restored,
}

static RESTORED_AT: AtomicI64 = AtomicI64::new(0);

/// Returns the time of the last restore. Ignores restores that awty detected while `awty.auto_adopt` was on.
pub fn restored_at() -> Option<Timestamp> {
    Some(RESTORED_AT.load(Ordering::Relaxed)).filter(|at| *at != 0)
}

/// Detects a restore from a backup. The postmaster calls the function before recovery, because recovery deletes the
/// signal files.
pub fn note_start() {
    let before = std::fs::read_to_string(path(FILE)).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    RESTORED_AT.store(before, Ordering::Relaxed);
    if !is_restore() || settings::auto_adopt() {
        return;
    }
    let at = clock::to_timestamp(clock::now()).max(before.saturating_add(1));
    RESTORED_AT.store(at, Ordering::Relaxed);
    let kept = keep(at);
    pgrx::log!(
        "awty: this server is restored from a backup, and runs no checks in a database before SELECT awty.adopt(); there"
    );
    if let Err(error) = kept {
        pgrx::warning!(
            "awty could not write pg_stat/awty_restored, so the checks are held until the next restart only: {error}"
        );
    }
}

fn is_restore() -> bool {
    let is_there = |file: &CStr| path(file).exists();
    !is_there(pg_sys::STANDBY_SIGNAL_FILE)
        && (is_there(pg_sys::RECOVERY_SIGNAL_FILE) || is_there(pg_sys::BACKUP_LABEL_FILE))
}

fn keep(at: Timestamp) -> std::io::Result<()> {
    let mut file = std::fs::File::create(path(NEW))?;
    writeln!(file, "{at}")?;
    drop(file);
    // SAFETY: both names are constant C strings. With the level LOG, a failure raises no error.
    match unsafe { pg_sys::durable_rename(NEW.as_ptr(), FILE.as_ptr(), pg_sys::LOG as i32) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

fn path(name: &CStr) -> &Path {
    Path::new(name.to_str().unwrap_or_default())
}
