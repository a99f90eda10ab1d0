//! Whether this server was restored from a backup, so that its databases are held until `awty.adopt()`.
//!
//! A restore is a start with `recovery.signal` or `backup_label`, and without `standby.signal`, which takes precedence in PostgreSQL,
//! too. A crash, a standby and its promotion are none. The time of the last restore is kept in a file, so that restarts change nothing;
//! each database notes in `awty_internal.origin` the restore that it was adopted after.
//!
//! Invariant: a later restore has a later time, whatever the clock says.
//! Does not: see a copy of the disks that was made without a backup: PostgreSQL takes that for a crash.

use crate::pg::clock::{self, Timestamp};
use crate::settings;
use pgrx::pg_sys;
use std::ffi::CStr;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};

// Relative to the data directory, where each process of the server works.
const FILE: &CStr = c"pg_stat/awty_restored";
const NEW: &CStr = c"pg_stat/awty_restored.new";

/// Why the checks of a database are held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hold {
    /// Its rows come from another database.
    Foreign,
    /// The server was restored from a backup.
    Restored,
}

/// The last restore; 0 for none. The postmaster sets it, and its children inherit it.
static RESTORED_AT: AtomicI64 = AtomicI64::new(0);

/// When this server was last restored from a backup. `None`: never, or `awty.auto_adopt` was on.
pub fn restored_at() -> Option<Timestamp> {
    Some(RESTORED_AT.load(Ordering::Relaxed)).filter(|at| *at != 0)
}

/// Looks how the server starts. The postmaster calls this before recovery, which removes the files.
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

/// Writes the file so that it survives a crash of the machine.
fn keep(at: Timestamp) -> std::io::Result<()> {
    let mut file = std::fs::File::create(path(NEW))?;
    writeln!(file, "{at}")?;
    drop(file);
    // SAFETY: constant names. PostgreSQL flushes the file and its directory, and reports what fails at that level.
    match unsafe { pg_sys::durable_rename(NEW.as_ptr(), FILE.as_ptr(), pg_sys::LOG as i32) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

fn path(name: &CStr) -> &Path {
    Path::new(name.to_str().unwrap_or_default())
}
