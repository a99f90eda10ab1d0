//! Which databases there are, and when each is visited next.
//!
//! Invariant: every database that accepts connections and is no template is visited once after it appears, whether awty is
//! there or not; those with awty are visited again once a minute and on request. They come before those of which nothing
//! is known, which never wait for that longer than [`AFTER_KNOWN`].
//! Does not: connect to any of them.

use super::known::Known;
use super::staff::Staff;
use crate::board::{self, State};
use crate::{clock, process};
use awty_core::Mono;
use pgrx::pg_sys;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// Between two audits of a database, and between two looks at the list of databases.
pub const AUDIT: Duration = Duration::from_secs(60);
/// Where the extension has to be updated, and nothing tells when it has been; or where the first visit failed.
const SOON: Duration = Duration::from_secs(5);
/// After somebody wanted a database for himself.
const WANTED: Duration = Duration::from_secs(1);
/// So much later than one with awty comes a database of which nothing is known: a visit takes some 10 ms of a processor, and
/// there may be hundreds.
const AFTER_KNOWN: Duration = Duration::from_secs(10);

pub struct Databases {
    /// When each is visited next; `None` if awty was not there.
    visits: HashMap<pg_sys::Oid, Option<Mono>>,
    /// When the list was last read.
    listed: Option<Mono>,
    /// Those with awty.
    known: Known,
}

impl Databases {
    /// Every database is due for a visit.
    pub fn new() -> Self {
        Self { visits: HashMap::new(), listed: None, known: Known::read() }
    }

    /// Every database is due for a visit.
    pub fn visit_all(&mut self) {
        self.listed = None;
        self.visits.clear();
    }

    /// Starts the visits that are due, as far as there is somebody free, and says when the next one is.
    pub fn visit(&mut self, staff: &mut Staff, mono: Mono) -> Duration {
        if self.listed.is_none_or(|listed| mono.since(listed) >= AUDIT.as_micros() as i64) {
            self.list(mono);
        }
        for database in staff.returned() {
            let state = board::read(|board| board.database(database).map(|line| line.state));
            if state == Some(State::Unknown) {
                // Nobody came back to tell. Is it there still?
                self.listed = None;
            } else {
                self.known.note(database, state.is_some());
            }
            let next = state.map(|state| match state {
                State::Unknown | State::OtherVersion => mono.plus(SOON),
                State::Ready | State::Held => mono.plus(AUDIT),
            });
            let asked_again = self.visits.get(&database).is_some_and(|at| at.is_some_and(|at| at <= mono));
            if !asked_again {
                self.visits.insert(database, next);
            }
        }
        self.known.write();
        for database in board::take_wanted_visits(mono) {
            self.visits.insert(database, Some(mono));
        }
        let mut next = AUDIT;
        let on_board: HashSet<_> = board::read(|board| board.databases.iter().map(|line| line.oid).collect());
        let mut due = Vec::new();
        for (database, at) in self.visits.iter().filter_map(|(database, at)| Some((*database, (*at)?))) {
            if at > mono {
                next = next.min(Duration::from_micros(at.since(mono).unsigned_abs()));
            } else {
                let is_known = self.known.contains(database) || on_board.contains(&database);
                let turn = if is_known { at } else { at.plus(AFTER_KNOWN) };
                due.push((turn, database));
            }
        }
        due.sort_by_key(|(turn, database)| (*turn, database.to_u32()));
        for (_, database) in due {
            if staff.is_visiting(database) {
                continue;
            }
            if process::is_database_wanted(database) {
                self.visits.insert(database, Some(mono.plus(WANTED)));
            } else if !staff.start_dispatcher(database, mono) {
                // Wakes up when one of them returns; or tries again soon, if the server had no room for it.
                next = next.min(WANTED);
                break;
            } else {
                self.visits.insert(database, Some(mono.plus(AUDIT)));
                // Until the visit tells more. One where awty is not is forgotten.
                board::write(|board| board.database_or_new(database).map(|_| ()));
            }
        }
        next
    }

    /// Reads the list of databases: new ones are due for a visit, those that are gone are forgotten.
    fn list(&mut self, mono: Mono) {
        let present = open_databases();
        for database in &present {
            self.visits.entry(*database).or_insert(Some(mono));
        }
        self.visits.retain(|database, _| present.contains(database));
        self.known.retain(|database| present.contains(&database));
        board::write(|board| {
            let gone: Vec<_> = board
                .databases
                .iter()
                .map(|line| line.oid)
                .filter(|oid| *oid != pg_sys::InvalidOid && !present.contains(oid))
                .collect();
            for database in gone {
                board.forget_database(database);
            }
        });
        self.listed = Some(clock::mono());
    }
}

/// The databases that accept connections and are no templates.
fn open_databases() -> Vec<pg_sys::Oid> {
    let mut open = Vec::new();
    // SAFETY: a scan of a shared catalog in a transaction, closed before its relation.
    unsafe {
        let relation = pg_sys::table_open(pg_sys::DatabaseRelationId, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
        let scan = pg_sys::table_beginscan_catalog(relation, 0, std::ptr::null_mut());
        loop {
            let tuple = pg_sys::heap_getnext(scan, pg_sys::ScanDirection::ForwardScanDirection);
            if tuple.is_null() {
                break;
            }
            let database = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_database>();
            // A limit of -2 marks one whose DROP DATABASE was interrupted.
            if database.datallowconn && !database.datistemplate && database.datconnlimit != -2 {
                open.push(database.oid);
            }
        }
        end_scan(scan);
        pg_sys::table_close(relation, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
    }
    open
}

/// What table_endscan() does, which is defined in a header only.
///
/// # Safety
/// The scan must be open.
unsafe fn end_scan(scan: pg_sys::TableScanDesc) {
    // SAFETY: as the caller says; the access method of a catalog has all of its functions.
    unsafe {
        if let Some(end) = (*(*(*scan).rs_rd).rd_tableam).scan_end {
            pg_sys::ffi::pg_guard_ffi_boundary(|| end(scan));
        }
    }
}
