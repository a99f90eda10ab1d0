use super::catalog;
use super::table::quoted;
use super::text::{Text, utf8};
use pgrx::pg_sys;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub number: i16,
    pub name: String,
    pub kind: pg_sys::Oid,
    collation: pg_sys::Oid,
}

impl Column {
    pub fn by_number(table: pg_sys::Oid, number: i16) -> Option<Self> {
        let (mut kind, mut modifier, mut collation) = (pg_sys::InvalidOid, 0, pg_sys::InvalidOid);
        // SAFETY: a missing column gives NULL, and the name is copied.
        unsafe {
            let name = pg_sys::get_attname(table, number, true);
            if name.is_null() {
                return None;
            }
            pg_sys::get_atttypetypmodcoll(table, number, &mut kind, &mut modifier, &mut collation);
            (kind != pg_sys::InvalidOid).then(|| Self { number, name: utf8(name), kind, collation })
        }
    }

    pub fn by_name(table: pg_sys::Oid, name: &Text) -> Option<Self> {
        // SAFETY: a transaction is open, and the C strings are valid.
        let number = unsafe { pg_sys::get_attnum(table, catalog::c_name(name.as_bytes()).as_ptr()) };
        if number > 0 { Self::by_number(table, number) } else { None }
    }

    pub fn text(&self) -> Text {
        Text::of_utf8(&self.name)
    }

    pub fn quoted(&self) -> String {
        quoted(&self.name)
    }

    pub fn own_collation(&self) -> Option<String> {
        // SAFETY: a transaction is open, and the name is copied.
        unsafe {
            let differs = self.collation != pg_sys::InvalidOid && self.collation != pg_sys::get_typcollation(self.kind);
            differs.then(|| utf8(pg_sys::generate_collation_name(self.collation)))
        }
    }
}
