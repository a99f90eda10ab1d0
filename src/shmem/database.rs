//! The line of a database in shared memory.

use crate::pg::clock::Timestamp;
use awty_core::versions::Unserved;
use awty_core::{DeadRows, Mono};
use pgrx::pg_sys;

/// What is known of a database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Not looked at since the server started. Next: any of the others.
    Unknown,
    /// Its checks run. Next: `Held`, `Unserved`, or forgotten.
    Ready,
    /// Its rows come from another database. Next: `Ready`, by `awty.adopt()`.
    Held,
    /// The library does not work with its SQL objects. Next: `Ready`, by ALTER EXTENSION or a restart.
    Unserved(Unserved),
}

/// What last kept awty from running checks in a database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    None,
    NoWorkerSlot,
    /// All of awty's own places are taken.
    NoPlace,
    /// A process goes on with a run that was cancelled and terminated; its pid.
    StuckRun(i32),
    /// A worker could not read what is due, or a check.
    Reading,
    RoleCannotConnect,
    Unserved(Unserved),
    Maintenance,
}

impl Trouble {
    /// For `awty.status`.
    pub fn text(self) -> Option<String> {
        let text = match self {
            Trouble::None => return None,
            Trouble::NoWorkerSlot => "no background worker slot was free; consider increasing max_worker_processes",
            Trouble::NoPlace => "all places for workers are taken; see the server log",
            Trouble::StuckRun(pid) => {
                return Some(format!("process {pid} goes on with a run that was cancelled and terminated"));
            }
            Trouble::Reading => "awty could not read its own tables; see the server log",
            Trouble::RoleCannotConnect => "a job's role has no LOGIN or no CONNECT; see the server log",
            Trouble::Unserved(Unserved::Older) => {
                "the extension's SQL is of an older version than the library; ALTER EXTENSION awty UPDATE;"
            }
            Trouble::Unserved(Unserved::Newer) => {
                "the extension's SQL is of a newer version than the library in memory; restart the server"
            }
            Trouble::Maintenance => "looking after this database failed; see the server log",
        };
        Some(text.into())
    }
}

/// One database with awty.
#[derive(Clone, Copy)]
pub struct Database {
    pub oid: pg_sys::Oid,
    pub state: State,
    /// Since when its checks can run: slots before that were missed.
    pub able_since: Timestamp,
    /// The latest slot of which a check has run since the server started; 0: none.
    pub last_slot_run: Timestamp,
    /// Somebody asks for an inspection of the maintainer.
    pub inspection_wanted: bool,
    pub trouble: Trouble,
    /// When that began; meaningless without trouble.
    pub trouble_at: Timestamp,
    /// Raised whenever a crash or an exit has been counted against checks here: workers read again which run alone.
    pub blamed: u64,
    /// Of `awty.future_job`, as far as workers have left them there.
    pub dead_rows: DeadRows,
    /// The last check of which awty_internal.check_stat was searched for rows that were left over.
    pub swept: i64,
    /// The last repetition that was looked after.
    pub mended: i64,
    /// When the maintainer last looked after its tables; `None`: not since the server started.
    pub looked_after: Option<Mono>,
    /// Has a row of its jobs' figures left shared memory since they were last stored?
    pub jobs_left: bool,
    /// The table that those figures were read back from; none before that.
    pub jobs_of: pg_sys::Oid,
}

impl Database {
    pub(super) const FREE: Database = Database {
        oid: pg_sys::InvalidOid,
        state: State::Unknown,
        able_since: 0,
        last_slot_run: 0,
        inspection_wanted: false,
        trouble: Trouble::None,
        trouble_at: 0,
        blamed: 0,
        dead_rows: DeadRows::NONE,
        swept: i64::MIN,
        mended: i64::MIN,
        looked_after: None,
        jobs_left: false,
        jobs_of: pg_sys::InvalidOid,
    };

    pub(super) fn new(oid: pg_sys::Oid) -> Self {
        Self { oid, ..Self::FREE }
    }

    /// Notes what keeps awty from running checks here, or [`Trouble::None`].
    pub fn set_trouble(&mut self, trouble: Trouble, now: Timestamp) {
        if self.trouble != trouble {
            (self.trouble, self.trouble_at) = (trouble, now);
        }
    }
}
