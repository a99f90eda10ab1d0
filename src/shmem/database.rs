use super::role::NEVER;
use crate::pg::clock::Timestamp;
use awty_core::versions::Unserved;
use awty_core::{DeadRows, Mono};
use pgrx::pg_sys;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The database has not been inspected since the server started.
    Unknown,
    Ready,
    Held,
    Unserved(Unserved),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DatabaseProblem {
    None,
    NoWorkerSlot,
    NoEntry,
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
                "no background worker slot was free; max_worker_processes should be at least max_parallel_workers + \
                 awty.max_workers + 3"
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
    /// Checks that were due before this time count as missed.
    pub able_since: Timestamp,
    pub last_slot_run: Timestamp,
    pub inspection_wanted: bool,
    /// Time at which the first hold or pause ends, or [`NEVER`].
    pub ends_at: Timestamp,
    pub trouble: DatabaseProblem,
    pub trouble_at: Timestamp,
    /// Version number of the crash counts of checks. The number increases after a worker has died during a run, so that
    /// other workers read the counts again.
    pub suspected: u64,
    pub dead_rows: DeadRows,
    /// The next search for leftover rows of `awty_internal.check_stat` starts after this id.
    pub swept: i64,
    /// The next search for recurring schedules without a pending check starts after the schedule with this id.
    pub repaired: i64,
    /// The next repair of rules starts after the rule with this number.
    pub rules_repaired: i64,
    pub looked_after: Option<Mono>,
    pub drop_failed: Option<Mono>,
    pub jobs_left: bool,
    pub jobs_of: pg_sys::Oid,
}

impl Database {
    pub(super) const FREE: Database = Database {
        oid: pg_sys::InvalidOid,
        state: State::Unknown,
        able_since: 0,
        last_slot_run: 0,
        inspection_wanted: false,
        ends_at: NEVER,
        trouble: DatabaseProblem::None,
        trouble_at: 0,
        suspected: 0,
        dead_rows: DeadRows::NONE,
        swept: i64::MIN,
        repaired: i64::MIN,
        rules_repaired: i64::MIN,
        looked_after: None,
        drop_failed: None,
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
