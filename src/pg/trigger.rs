use super::text::Text;
use super::unbound;
use pgrx::pg_sys;
use std::ffi::CStr;
use std::num::NonZeroUsize;

#[derive(Clone, Copy)]
pub struct Firing(*mut pg_sys::TriggerData);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Version {
    Old,
    New,
}

impl Firing {
    pub fn of(fcinfo: pg_sys::FunctionCallInfo) -> Option<Self> {
        // SAFETY: if a trigger made the call, the context is a TriggerData.
        unsafe { pgrx::trigger_support::called_as_trigger(fcinfo).then(|| Self((*fcinfo).context.cast())) }
    }

    pub fn data(self) -> *mut pg_sys::TriggerData {
        self.0
    }

    fn relation(self) -> pg_sys::Relation {
        // SAFETY: the constructor `of` accepts only a pointer to a TriggerData.
        unsafe { (*self.0).tg_relation }
    }

    /// Returns the trigger's table. For a partitioned table, this is the row's partition.
    pub fn table(self) -> pg_sys::Oid {
        // SAFETY: the trigger's relation is open while the trigger runs.
        unsafe { (*self.relation()).rd_id }
    }

    pub fn is_on(self, table: pg_sys::Oid) -> bool {
        let here = self.table();
        // SAFETY: the trigger's relation is open, and so is a transaction.
        here == table
            || unsafe {
                let is_partition = (*(*self.relation()).rd_rel).relispartition;
                is_partition && pg_sys::list_member_oid(unbound::get_partition_ancestors(here), table)
            }
    }

    pub fn argument(self) -> Option<Text> {
        // SAFETY: the trigger has `tgnargs` arguments, and each is a C string.
        unsafe {
            let trigger = &*(*self.0).tg_trigger;
            (trigger.tgnargs > 0).then(|| Text::from(CStr::from_ptr(*trigger.tgargs)))
        }
    }

    pub fn arguments(self) -> usize {
        // SAFETY: `Self` holds a TriggerData.
        unsafe { usize::try_from((*(*self.0).tg_trigger).tgnargs).unwrap_or(0) }
    }

    pub fn is_insert(self) -> bool {
        // SAFETY: `Self` holds a TriggerData.
        unsafe { (*self.0).tg_event & pg_sys::TRIGGER_EVENT_OPMASK == pg_sys::TRIGGER_EVENT_INSERT }
    }

    pub fn is_for_row(self) -> bool {
        // SAFETY: `Self` holds a TriggerData.
        unsafe { (*self.0).tg_event & pg_sys::TRIGGER_EVENT_ROW != 0 }
    }

    pub fn has_new_rows(self) -> bool {
        // SAFETY: `Self` holds a TriggerData.
        unsafe { !(*self.0).tg_newtable.is_null() }
    }

    pub fn new_rows(self) -> i64 {
        // SAFETY: `tg_newtable` is a tuplestore or null.
        unsafe {
            let rows = (*self.0).tg_newtable;
            if rows.is_null() { 0 } else { pg_sys::tuplestore_tuple_count(rows) }
        }
    }

    pub fn values(self, version: Version, numbers: &[i16]) -> Option<Vec<pg_sys::Datum>> {
        // SAFETY: the tuples of a row trigger have the columns of its relation.
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
