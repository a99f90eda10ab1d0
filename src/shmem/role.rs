use crate::pg::clock::Timestamp;
use awty_core::{Mono, backoff};
use pgrx::pg_sys;

pub const NEVER: Timestamp = i64::MAX;

#[derive(Clone, Copy)]
pub struct RoleEntry {
    pub database: pg_sys::Oid,
    pub role: pg_sys::Oid,
    /// Earliest due time of announced checks that no worker has taken, or [`NEVER`].
    pub due: Timestamp,
    /// Earliest due time of the checks that workers have taken but not finished, or [`NEVER`] if there are none.
    pub backlog: Timestamp,
    /// Time of the next search for checks that prepared transactions have written, and the due time from which the
    /// search starts.
    pub look_again: (Timestamp, Timestamp),
    pub parked_until: Option<Mono>,
    /// Number of the role's workers that failed in succession, for example because they could not connect or were
    /// terminated during a run.
    pub failures: u32,
    pub last_served: u64,
    /// Hash of the role's invalid rows in `awty.job`. awty logs such rows only when the hash changes.
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

    pub fn note_failure(&mut self, mono: Mono) {
        self.parked_until = Some(mono.plus(backoff::ROLE.after(self.failures)));
        self.failures = self.failures.saturating_add(1);
    }

    pub(super) fn is_free(&self) -> bool {
        self.role == pg_sys::InvalidOid
    }
}
