//! The line of a role in shared memory.

use crate::pg::clock::Timestamp;
use awty_core::{Mono, backoff};
use pgrx::pg_sys;

/// No slot is known.
pub const NEVER: Timestamp = i64::MAX;

/// A role of a database, and when it may have work.
#[derive(Clone, Copy)]
pub struct RoleEntry {
    pub database: pg_sys::Oid,
    pub role: pg_sys::Oid,
    /// The earliest slot with possible work that no worker has; [`NEVER`] if none is known.
    pub due: Timestamp,
    /// The slot from which there is more work than the role's workers have taken; [`NEVER`] if there is none.
    pub backlog: Timestamp,
    /// When a worker looks again, and from which earlier slot: a prepared transaction has announced work there and has
    /// not committed yet. [`NEVER`] if there is none.
    pub look_again: (Timestamp, Timestamp),
    /// The role gets no worker before this moment.
    pub parked_until: Option<Mono>,
    /// Failed workers in a row: they could not connect, read or write, or were terminated in a run.
    pub failures: u32,
    /// When the role last got a worker, as a value of `SharedState::served`.
    pub last_served: u64,
    /// Hash of the invalid job rows that were last logged; 0 for none.
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

    pub fn wanted_at(&self) -> Timestamp {
        self.due.min(self.backlog).min(self.look_again.0)
    }

    /// Takes the role's work that is due by now. Returns its first slot, or `None` if there is none.
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

    pub fn is(&self, database: pg_sys::Oid, role: pg_sys::Oid) -> bool {
        self.database == database && self.role == role
    }

    /// Parks the role after a failed worker, longer each time.
    pub fn note_failure(&mut self, mono: Mono) {
        self.parked_until = Some(mono.plus(backoff::ROLE.after(self.failures)));
        self.failures = self.failures.saturating_add(1);
    }

    pub(super) fn is_free(&self) -> bool {
        self.role == pg_sys::InvalidOid
    }
}
