//! Which databases had awty when they were last inspected, kept in a file: after a start these are inspected before the others,
//! of which there may be many.
//!
//! Invariant: a hint. A file that is missing, old or broken costs time only. It is written where something has changed.
//! Does not: say whether awty may run there; an inspection does.

use pgrx::pg_sys;
use std::collections::BTreeSet;

/// Relative to the data directory, where each process of the server works.
const FILE: &str = "pg_stat/awty_databases";

#[derive(Default)]
pub struct DatabaseCache {
    databases: BTreeSet<u32>,
    /// What the file says is different.
    changed: bool,
}

impl DatabaseCache {
    /// What the file says.
    pub fn read() -> Self {
        let text = std::fs::read_to_string(FILE).unwrap_or_default();
        Self { databases: text.lines().filter_map(|line| line.parse().ok()).collect(), changed: false }
    }

    pub fn contains(&self, database: u32) -> bool {
        self.databases.contains(&database)
    }

    /// All of them.
    pub fn databases(&self) -> impl Iterator<Item = pg_sys::Oid> {
        self.databases.iter().map(|oid| pg_sys::Oid::from(*oid))
    }

    /// Takes note of what an inspection has found.
    pub fn note(&mut self, database: pg_sys::Oid, has_awty: bool) {
        let database = database.to_u32();
        self.changed |= if has_awty { self.databases.insert(database) } else { self.databases.remove(&database) };
    }

    /// Forgets the databases that are gone.
    pub fn retain(&mut self, is_there: impl Fn(u32) -> bool) {
        let before = self.databases.len();
        self.databases.retain(|database| is_there(*database));
        self.changed |= self.databases.len() != before;
    }

    /// Writes the file, if it has to say something else now: as a whole or not at all.
    pub fn write(&mut self) {
        if std::mem::take(&mut self.changed) {
            let text: String = self.databases.iter().map(|database| format!("{database}\n")).collect();
            let new = format!("{FILE}.new");
            // Without it, the next start takes longer: no harm.
            let _ = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, FILE));
        }
    }
}
