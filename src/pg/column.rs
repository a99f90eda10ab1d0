//! Columns of a user's table, by number and by name.
//!
//! Invariant: every call reads PostgreSQL's own caches, so the answer is current.
//! Does not: read rows.

use super::catalog;
use super::table::{kind_name, quoted};
use super::text::{self, Text, utf8};
use pgrx::pg_sys;

/// A column that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Number of the column in its table, from 1. It stays the same when the column is renamed.
    pub number: i16,
    /// Name of the column, without quotes.
    pub name: String,
    /// Type of the column.
    pub kind: pg_sys::Oid,
    collation: pg_sys::Oid,
}

impl Column {
    /// Returns the column with this number, or `None` if the table has no such column any more.
    pub fn by_number(table: pg_sys::Oid, number: i16) -> Option<Self> {
        let (mut kind, mut modifier, mut collation) = (pg_sys::InvalidOid, 0, pg_sys::InvalidOid);
        // SAFETY: catalog lookups in a transaction; the name is copied. A missing column has no name, and a dropped one has no type.
        unsafe {
            let name = pg_sys::get_attname(table, number, true);
            if name.is_null() {
                return None;
            }
            pg_sys::get_atttypetypmodcoll(table, number, &mut kind, &mut modifier, &mut collation);
            (kind != pg_sys::InvalidOid).then(|| Self { number, name: utf8(name), kind, collation })
        }
    }

    /// Returns the column of this name, or `None` if the table has no such column.
    pub fn by_name(table: pg_sys::Oid, name: &Text) -> Option<Self> {
        // SAFETY: a catalog lookup in a transaction, with a valid C string.
        let number = unsafe { pg_sys::get_attnum(table, catalog::c_name(name.as_bytes()).as_ptr()) };
        if number > 0 { Self::by_number(table, number) } else { None }
    }

    /// Returns the name as a value.
    pub fn text(&self) -> Text {
        Text::from(text::server(&self.name).as_c_str())
    }

    /// Returns the name as SQL writes it.
    pub fn quoted(&self) -> String {
        quoted(&self.name)
    }

    /// Returns the type as SQL writes it.
    pub fn kind_name(&self) -> String {
        kind_name(self.kind)
    }

    /// Returns the name of the column's collation if it differs from the collation of the column's type. The name is qualified under
    /// awty's own search path.
    pub fn own_collation(&self) -> Option<String> {
        // SAFETY: catalog lookups in a transaction; the name is copied.
        unsafe {
            let differs = self.collation != pg_sys::InvalidOid && self.collation != pg_sys::get_typcollation(self.kind);
            differs.then(|| utf8(pg_sys::generate_collation_name(self.collation)))
        }
    }
}
