//! Keeps a file with the databases that had awty at their last inspection, so that they are inspected first after a
//! start.

use pgrx::pg_sys;
use std::collections::BTreeSet;

const FILE: &str = "pg_stat/awty_databases";

#[derive(Default)]
pub struct DatabaseCache {
    databases: BTreeSet<u32>,
    changed: bool,
}

impl DatabaseCache {
    pub fn read() -> Self {
        let text = std::fs::read_to_string(FILE).unwrap_or_default();
        Self { databases: text.lines().filter_map(|line| line.parse().ok()).collect(), changed: false }
    }

    pub fn contains(&self, database: u32) -> bool {
        self.databases.contains(&database)
    }

    pub fn databases(&self) -> impl Iterator<Item = pg_sys::Oid> {
        self.databases.iter().map(|oid| pg_sys::Oid::from(*oid))
    }

    pub fn note(&mut self, database: pg_sys::Oid, has_awty: bool) {
        let database = database.to_u32();
        self.changed |= if has_awty { self.databases.insert(database) } else { self.databases.remove(&database) };
    }

    pub fn retain(&mut self, is_there: impl Fn(u32) -> bool) {
        let before = self.databases.len();
        self.databases.retain(|database| is_there(*database));
        self.changed |= self.databases.len() != before;
    }

    pub fn write(&mut self) {
        if std::mem::take(&mut self.changed) {
            let text: String = self.databases.iter().map(|database| format!("{database}\n")).collect();
            let new = format!("{FILE}.new");
            // Ignores errors, because a missing file only makes the next start slower.
            let _ = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, FILE));
        }
    }
}
