//! Sends maintainers to databases, in the order that `awty_core::inspections` decides.

use super::children::{Children, Sent};
use super::database_cache::DatabaseCache;
use crate::pg::clock;
use crate::process;
use crate::shmem::{self, DatabaseProblem, State};
use awty_core::Mono;
use awty_core::inspections::{AUDIT, Finding, Inspections, LATER};
use pgrx::pg_sys;
use std::collections::HashSet;
use std::time::Duration;

pub struct Databases {
    inspections: Inspections<u32>,
    cache: DatabaseCache,
}

impl Databases {
    pub fn new() -> Self {
        Self { inspections: Inspections::default(), cache: DatabaseCache::read() }
    }

    pub fn inspect_all(&mut self) {
        self.inspections.all_due();
    }

    pub fn inspect(&mut self, children: &mut Children, mono: Mono) -> Duration {
        for database in children.returned() {
            let state = shmem::read(|shared| shared.database(database).map(|line| line.state));
            let found = match state {
                None => Finding::Nothing,
                Some(State::Ready | State::Held) => Finding::Awty,
                Some(State::Unknown | State::Unserved(_)) => Finding::Unclear,
            };
            if state != Some(State::Unknown) {
                self.cache.note(database, state.is_some());
            }
            self.inspections.returned(database.to_u32(), found, mono);
        }
        self.cache.write();
        if self.inspections.wants_list(mono) {
            self.list();
        }
        let now = clock::to_timestamp(clock::now());
        let (wanted, ends_at) = shmem::wanted_inspections(now, mono);
        for database in wanted {
            self.inspections.ask(database.to_u32(), mono);
        }
        let in_memory: HashSet<u32> =
            shmem::read(|shared| shared.databases.iter().map(|line| line.oid.to_u32()).collect());
        let is_known = |oid: u32| self.cache.contains(oid) || in_memory.contains(&oid);
        let (due, next) = self.inspections.due(mono, is_known);
        let until_end = u64::try_from(ends_at.saturating_sub(now)).map_or(Duration::ZERO, Duration::from_micros);
        let mut next = next.min(until_end);
        for oid in due {
            let database = pg_sys::Oid::from(oid);
            if children.is_inspecting(database) {
                continue;
            }
            if process::is_database_wanted(database) {
                self.inspections.put_off(oid, mono);
                continue;
            }
            let sent = children.start_maintainer(database, mono);
            if sent != Sent::Started {
                next = next.min(LATER);
                if sent == Sent::NoProcess {
                    self.note_no_process(database);
                }
                break;
            }
            self.inspections.started(oid, mono);
            shmem::write(|shared| shared.database_or_new(database).map(|_| ()));
        }
        next.min(AUDIT)
    }

    fn note_no_process(&self, first: pg_sys::Oid) {
        let now = clock::to_timestamp(clock::now());
        shmem::write(|shared| {
            for database in self.cache.databases().chain([first]) {
                if let Some(line) = shared.database_or_new(database)
                    && (line.state == State::Unknown || database == first)
                {
                    line.set_trouble(DatabaseProblem::NoWorkerSlot, now);
                }
            }
        });
    }

    fn list(&mut self) {
        let present = open_databases();
        let oids: Vec<u32> = present.iter().map(|database| database.to_u32()).collect();
        self.inspections.list(&oids, clock::mono());
        self.cache.retain(|oid| oids.contains(&oid));
        shmem::write(|shared| {
            let gone: Vec<_> = shared
                .databases
                .iter()
                .map(|line| line.oid)
                .filter(|oid| *oid != pg_sys::InvalidOid && !present.contains(oid))
                .collect();
            for database in gone {
                shared.forget_database(database);
            }
        });
    }
}

fn open_databases() -> Vec<pg_sys::Oid> {
    let mut open = Vec::new();
    // SAFETY: a transaction is open, and each tuple is read before the next one.
    unsafe {
        let relation = pg_sys::table_open(pg_sys::DatabaseRelationId, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
        let scan = pg_sys::systable_beginscan(
            relation,
            pg_sys::InvalidOid,
            false,
            std::ptr::null_mut(),
            0,
            std::ptr::null_mut(),
        );
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            let database = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_database>();
            // A connection limit of -2 marks a database whose DROP DATABASE was interrupted.
            if database.datallowconn && !database.datistemplate && database.datconnlimit != -2 {
                open.push(database.oid);
            }
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(relation, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
    }
    open
}
