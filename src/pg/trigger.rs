//! What PostgreSQL hands to a trigger's function.
//!
//! Invariant: what is read here lives as long as the call.
//! Does not: know what a trigger is for.

use super::text::utf8;
use super::unbound;
use pgrx::pg_sys;
use std::num::NonZeroUsize;

/// One firing of a trigger.
#[derive(Clone, Copy)]
pub struct Firing(*mut pg_sys::TriggerData);

/// A row of a row trigger.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// As it was, or as it is where there is only one.
    Old,
    /// As it is after an UPDATE.
    New,
}

impl Firing {
    /// `None` where no trigger calls.
    pub fn of(fcinfo: pg_sys::FunctionCallInfo) -> Option<Self> {
        // SAFETY: PostgreSQL's own call information, whose context is a TriggerData if a trigger calls.
        unsafe { pgrx::trigger_support::called_as_trigger(fcinfo).then(|| Self((*fcinfo).context.cast())) }
    }

    /// For SPI.
    pub fn data(self) -> *mut pg_sys::TriggerData {
        self.0
    }

    fn relation(self) -> pg_sys::Relation {
        // SAFETY: `Self` is made of a TriggerData only.
        unsafe { (*self.0).tg_relation }
    }

    /// The table on which it fires: a partition, where the row is in one.
    pub fn table(self) -> pg_sys::Oid {
        // SAFETY: the relation is open.
        unsafe { (*self.relation()).rd_id }
    }

    /// Does it fire on that table, or on a partition of it?
    pub fn is_on(self, table: pg_sys::Oid) -> bool {
        let here = self.table();
        // SAFETY: a catalog lookup in a transaction; the list is PostgreSQL's.
        here == table
            || unsafe {
                let is_partition = (*(*self.relation()).rd_rel).relispartition;
                is_partition && pg_sys::list_member_oid(unbound::get_partition_ancestors(here), table)
            }
    }

    /// Its first argument.
    pub fn argument(self) -> Option<String> {
        // SAFETY: a trigger has as many arguments as it says, which are C strings.
        unsafe {
            let trigger = &*(*self.0).tg_trigger;
            (trigger.tgnargs > 0).then(|| utf8(*trigger.tgargs))
        }
    }

    /// Does it fire for each row?
    pub fn is_for_row(self) -> bool {
        // SAFETY: as above.
        unsafe { (*self.0).tg_event & pg_sys::TRIGGER_EVENT_ROW != 0 }
    }

    /// Has it a table of new rows?
    pub fn has_new_rows(self) -> bool {
        // SAFETY: as above.
        unsafe { !(*self.0).tg_newtable.is_null() }
    }

    /// How many.
    pub fn new_rows(self) -> i64 {
        // SAFETY: PostgreSQL's table of them, or null.
        unsafe {
            let rows = (*self.0).tg_newtable;
            if rows.is_null() { 0 } else { pg_sys::tuplestore_tuple_count(rows) }
        }
    }

    /// The values of columns, by their numbers in the table on which it fires, of a row; none where one is NULL.
    pub fn values(self, version: Version, numbers: &[i32]) -> Option<Vec<pg_sys::Datum>> {
        // SAFETY: a row trigger has the rows that its event says, of the relation's own columns.
        unsafe {
            let is_update = (*self.0).tg_event & pg_sys::TRIGGER_EVENT_OPMASK == pg_sys::TRIGGER_EVENT_UPDATE;
            let tuple = match version {
                Version::New if is_update => (*self.0).tg_newtuple,
                _ => (*self.0).tg_trigtuple,
            };
            let columns = (*self.relation()).rd_att;
            numbers
                .iter()
                .map(|number| {
                    pgrx::heap_getattr_raw(tuple, NonZeroUsize::new(usize::try_from(*number).ok()?)?, columns)
                })
                .collect()
        }
    }
}
