//! The line of a role in shared memory.

use crate::pg::clock::Timestamp;
use awty_core::{Mono, backoff};
use pgrx::pg_sys;

/// No slot is known of.
pub const NEVER: Timestamp = i64::MAX;

/// One role of one database, and when there may be work for it.
#[derive(Clone, Copy)]
pub struct RoleEntry {
    pub database: pg_sys::Oid,
    pub role: pg_sys::Oid,
    /// The earliest slot at which there may be work that no worker is on; [`NEVER`] if none is known of.
    pub due: Timestamp,
    /// The slot from which there is more than the workers at it are running now; [`NEVER`] if there is not.
    pub backlog: Timestamp,
    /// When a worker looks again from an earlier slot on, and which: a prepared transaction has announced something there that was not
    /// committed yet; [`NEVER`] if there is none.
    pub look_again: (Timestamp, Timestamp),
    /// Nothing is started for it before this moment.
    pub parked_until: Option<Mono>,
    /// How many workers in a row have achieved nothing: could not connect, read or write, or were terminated in a run.
    pub failures: u32,
    /// When it last got a worker, counted in starts.
    pub last_served: u64,
    /// What the log was last told of its jobs' invalid rows, as a hash; 0: nothing.
    pub complaint: u64,
}

impl RoleEntry {
    pub(super) const FREE: RoleEntry = RoleEntry {
        database: pg_sys::InvalidOid,
        role: pg_sys::InvalidOid,
        due: NEVER,
        backlog: NEVER,
        look_again: (NEVER, NEVER),
        parked_until: None,
        failures: 0,
        last_served: 0,
        complaint: 0,
    };

    pub(super) fn new(database: pg_sys::Oid, role: pg_sys::Oid) -> Self {
        Self { database, role, ..Self::FREE }
    }

    /// When there may be something for a worker to do.
    pub fn wanted_at(&self) -> Timestamp {
        self.due.min(self.backlog).min(self.look_again.0)
    }

    /// Takes over what a worker may do by now: from which slot on; `None` if there is nothing.
    pub fn claim_due(&mut self, now: Timestamp) -> Option<Timestamp> {
        if self.wanted_at() > now {
            return None;
        }
        let mut from = self.due.min(self.backlog);
        if self.look_again.0 <= now {
            from = from.min(self.look_again.1);
            self.look_again = (NEVER, NEVER);
        }
        (self.due, self.backlog) = (NEVER, NEVER);
        Some(from)
    }

    /// Is this the line of that role?
    pub fn is(&self, database: pg_sys::Oid, role: pg_sys::Oid) -> bool {
        self.database == database && self.role == role
    }

    /// Notes that a worker has achieved nothing, so that the next one comes after a while, longer each time.
    pub fn note_failure(&mut self, mono: Mono) {
        self.parked_until = Some(mono.plus(backoff::ROLE.after(self.failures)));
        self.failures = self.failures.saturating_add(1);
    }

    pub(super) fn is_free(&self) -> bool {
        self.role == pg_sys::InvalidOid
    }
}
