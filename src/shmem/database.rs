use crate::pg::clock::Timestamp;
use awty_core::versions::Unserved;
use awty_core::{DeadRows, Mono};
use pgrx::pg_sys;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Not inspected since the server started. Next: any other state.
    Unknown,
    /// Its checks run. Next: `Held`, `Unserved`, or forgotten.
    Ready,
    /// Its rows come from another database. Next: `Ready`, through `awty.adopt()`.
    Held,
    /// The library does not serve its SQL version. Next: `Ready`, through ALTER EXTENSION or a restart.
    Unserved(Unserved),
}

/// The last problem of a database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DatabaseProblem {
    None,
    NoWorkerSlot,
    /// All entries for workers are taken.
    NoEntry,
    /// This process continues a run that was cancelled and terminated.
    StuckRun(i32),
    Reading,
    RoleCannotConnect,
    Unserved(Unserved),
    Maintenance,
}

impl DatabaseProblem {
    pub fn text(self) -> Option<String> {
        let text = match self {
            DatabaseProblem::None => return None,
            DatabaseProblem::NoWorkerSlot => {
                "no background worker slot was free; consider increasing max_worker_processes"
            }
            DatabaseProblem::NoEntry => "all places for workers are taken; see the server log",
            DatabaseProblem::StuckRun(pid) => {
                return Some(format!("process {pid} continues a run that was cancelled and terminated"));
            }
            DatabaseProblem::Reading => "awty could not read its own tables; see the server log",
            DatabaseProblem::RoleCannotConnect => "a job's role has no LOGIN or no CONNECT; see the server log",
            DatabaseProblem::Unserved(Unserved::Older) => {
                "the extension's SQL is of an older version than the library; ALTER EXTENSION awty UPDATE;"
            }
            DatabaseProblem::Unserved(Unserved::Newer) => {
                "the extension's SQL is of a newer version than the library in memory; restart the server"
            }
            DatabaseProblem::Maintenance => "looking after this database failed; see the server log",
        };
        Some(text.into())
    }
}

#[derive(Clone, Copy)]
pub struct Database {
    pub oid: pg_sys::Oid,
    pub state: State,
    /// Time since when the database's checks can run. Earlier slots were missed.
    pub able_since: Timestamp,
    /// The last slot that was run since the server started; 0 for none.
    pub last_slot_run: Timestamp,
    pub inspection_wanted: bool,
    pub trouble: DatabaseProblem,
    /// Time when the trouble began. The value means nothing while there is no trouble.
    pub trouble_at: Timestamp,
    /// Grows whenever a crash or an exit is counted against checks here. Workers then read the list of suspects again.
    pub suspected: u64,
    pub dead_rows: DeadRows,
    /// The search for leftover rows in awty_internal.check_stat continues after this check.
    pub swept: i64,
    /// Id of the last repetition that was repaired. The next repair continues after it.
    pub repaired: i64,
    /// Time of the last maintenance of the tables. `None` before the first one since the server started.
    pub looked_after: Option<Mono>,
    /// Whether the counters of one of the database's jobs have left shared memory since the counters were last stored.
    pub jobs_left: bool,
    /// The counters were read back from this table; invalid before that.
    pub jobs_of: pg_sys::Oid,
}

impl Database {
    pub(super) const FREE: Database = Database {
        oid: pg_sys::InvalidOid,
        state: State::Unknown,
        able_since: 0,
        last_slot_run: 0,
        inspection_wanted: false,
        trouble: DatabaseProblem::None,
        trouble_at: 0,
        suspected: 0,
        dead_rows: DeadRows::NONE,
        swept: i64::MIN,
        repaired: i64::MIN,
        looked_after: None,
        jobs_left: false,
        jobs_of: pg_sys::InvalidOid,
    };

    pub(super) fn new(oid: pg_sys::Oid) -> Self {
        Self { oid, ..Self::FREE }
    }

    pub fn set_trouble(&mut self, trouble: DatabaseProblem, now: Timestamp) {
        if self.trouble != trouble {
            (self.trouble, self.trouble_at) = (trouble, now);
        }
    }
}
