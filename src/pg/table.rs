//! A user's table, as far as its rows are found by their primary key.
//!
//! Invariant: what is said of a table is of this moment, from PostgreSQL's own caches.
//! Does not: read rows, or keep a lock on the table.

use super::scalar;
use super::text::{self, Text, utf8};
use pgrx::pg_sys;

/// A column of a primary key, written as SQL wants it.
#[derive(Clone, Debug)]
pub struct KeyColumn {
    /// Its number, from 1, in the table that was asked for.
    pub number: i32,
    /// In quotes where it needs them.
    pub name: String,
    pub kind: pg_sys::Oid,
    /// The operator by which the index compares.
    equals: pg_sys::Oid,
}

impl KeyColumn {
    /// Returns the type as SQL writes it.
    pub fn kind_name(&self) -> String {
        kind_name(self.kind)
    }

    /// `OPERATOR(schema.=)`, by which the index compares.
    pub fn equals(&self) -> String {
        operator(self.equals)
    }
}

/// Of what kind a table is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Plain,
    Partitioned,
    /// One that a partitioned table is made of.
    Partition,
    /// A view, an index and so on, with PostgreSQL's letter for it.
    Other(u8),
}

/// A table.
#[derive(Clone, Debug)]
pub struct Described {
    pub oid: pg_sys::Oid,
    pub schema: String,
    pub name: String,
    pub owner: pg_sys::Oid,
    pub kind: Kind,
    pub is_temporary: bool,
    pub is_system: bool,
}

impl Described {
    /// `schema.name`, in quotes where they are needed.
    pub fn qualified(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.name))
    }
}

/// What is known of a table; `None` if it is gone.
pub fn describe(oid: pg_sys::Oid) -> Option<Described> {
    // SAFETY: a catalog lookup in a transaction; the tuple is released after its fields are copied.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::RELOID as i32, pg_sys::Datum::from(oid));
        if tuple.is_null() {
            return None;
        }
        let row = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_class>();
        let kind = match row.relkind as u8 {
            pg_sys::RELKIND_PARTITIONED_TABLE => Kind::Partitioned,
            pg_sys::RELKIND_RELATION if row.relispartition => Kind::Partition,
            pg_sys::RELKIND_RELATION => Kind::Plain,
            other => Kind::Other(other),
        };
        let described = Described {
            oid,
            schema: name_of_schema(row.relnamespace),
            name: utf8(row.relname.data.as_ptr()),
            owner: row.relowner,
            kind,
            is_temporary: row.relpersistence as u8 == pg_sys::RELPERSISTENCE_TEMP,
            is_system: pg_sys::IsCatalogRelationOid(oid) || oid.to_u32() < pg_sys::FirstNormalObjectId,
        };
        pg_sys::ReleaseSysCache(tuple);
        Some(described)
    }
}

/// May a role read all columns of a table?
pub fn may_select(table: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: a catalog lookup in a transaction.
    unsafe {
        pg_sys::pg_class_aclcheck(table, role, pg_sys::ACL_SELECT as pg_sys::AclMode) == pg_sys::AclResult::ACLCHECK_OK
    }
}

/// May a role create objects in a schema?
pub fn may_create_in(schema: &str, role: pg_sys::Oid) -> bool {
    let name = text::server(schema);
    // SAFETY: catalog lookups in a transaction, with a valid C string.
    unsafe {
        let schema = pg_sys::get_namespace_oid(name.as_ptr(), true);
        #[cfg(feature = "pg15")]
        let result = pg_sys::pg_namespace_aclcheck(schema, role, pg_sys::ACL_CREATE as pg_sys::AclMode);
        #[cfg(not(feature = "pg15"))]
        let result =
            pg_sys::object_aclcheck(pg_sys::NamespaceRelationId, schema, role, pg_sys::ACL_CREATE as pg_sys::AclMode);
        result == pg_sys::AclResult::ACLCHECK_OK
    }
}

/// Would policies hide rows of a table from a role?
pub fn hides_rows(table: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: a catalog lookup in a transaction, which raises nothing.
    unsafe { pg_sys::check_enable_rls(table, role, true) == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32 }
}

/// The columns of a table's primary key, in its order; `None` if it has none that is a B-tree.
pub fn primary_key(oid: pg_sys::Oid) -> Option<Vec<KeyColumn>> {
    const MODE: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    // SAFETY: catalog lookups in a transaction; the caller holds a lock on the table, and what is opened is closed.
    unsafe {
        let table = pg_sys::try_relation_open(oid, MODE);
        if table.is_null() {
            return None;
        }
        let key = primary_index(table);
        let columns = key.map(|key| {
            let index = pg_sys::index_open(key, MODE);
            let is_btree = (*(*index).rd_rel).relam == pg_sys::BTREE_AM_OID;
            let columns = is_btree.then(|| columns(table, index));
            pg_sys::index_close(index, MODE);
            columns
        });
        pg_sys::relation_close(table, MODE);
        columns.flatten()
    }
}

/// A deferrable one, too, which PostgreSQL does not call the table's primary index.
///
/// # Safety
/// An open table.
unsafe fn primary_index(table: pg_sys::Relation) -> Option<pg_sys::Oid> {
    // SAFETY: PostgreSQL's list of the table's indexes, in whose tuples the fixed part is always there; each is released.
    unsafe {
        let list = pg_sys::RelationGetIndexList(table);
        if list.is_null() {
            return None;
        }
        (0..(*list).length as usize).map(|place| (*(*list).elements.add(place)).oid_value).find(|index| {
            let tuple =
                pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::INDEXRELID as i32, pg_sys::Datum::from(*index));
            if tuple.is_null() {
                return false;
            }
            let form = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_index>();
            let is_primary = form.indisprimary && form.indisvalid;
            pg_sys::ReleaseSysCache(tuple);
            is_primary
        })
    }
}

/// # Safety
/// An open table and its open index.
unsafe fn columns(table: pg_sys::Relation, index: pg_sys::Relation) -> Vec<KeyColumn> {
    // SAFETY: an index has as many key columns as it says, with their operator families and types; the names are copied.
    unsafe {
        let form = &*(*index).rd_index;
        let numbers = form.indkey.values.as_slice(form.indnatts as usize);
        let attributes = (*(*table).rd_att).natts;
        (0..form.indnkeyatts as usize)
            .filter(|place| (1..=attributes).contains(&i32::from(numbers[*place])))
            .map(|place| {
                let number = i32::from(numbers[place]);
                let mut kind = pg_sys::InvalidOid;
                let (mut modifier, mut collation) = (0, pg_sys::InvalidOid);
                pg_sys::get_atttypetypmodcoll((*table).rd_id, number as i16, &mut kind, &mut modifier, &mut collation);
                let (family, input) = (*(*index).rd_opfamily.add(place), *(*index).rd_opcintype.add(place));
                let equals = pg_sys::get_opfamily_member(family, input, input, pg_sys::BTEqualStrategyNumber as i16);
                let name = pg_sys::get_attname((*table).rd_id, number as i16, false);
                KeyColumn { number, name: quoted(&utf8(name)), kind, equals }
            })
            .collect()
    }
}

fn operator(oid: pg_sys::Oid) -> String {
    // SAFETY: a catalog lookup in a transaction; the tuple is released after its fields are copied.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::OPEROID as i32, pg_sys::Datum::from(oid));
        if tuple.is_null() {
            return "OPERATOR(pg_catalog.=)".into();
        }
        let row = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_operator>();
        let name = utf8(row.oprname.data.as_ptr());
        let written = format!("OPERATOR({}.{name})", quoted(&name_of_schema(row.oprnamespace)));
        pg_sys::ReleaseSysCache(tuple);
        written
    }
}

/// The key of a row by the values of its key columns: one is its own text, several are what `awty.key()` makes of them.
pub fn key_text(columns: &[KeyColumn], values: &[pg_sys::Datum]) -> Text {
    let mut texts: Vec<Text> =
        columns.iter().zip(values).map(|(column, value)| scalar::text(*value, column.kind)).collect();
    if texts.len() == 1 { texts.remove(0) } else { scalar::json_array(&texts) }
}

/// A name as SQL would write it: in quotes only where it needs them.
pub fn quoted(name: &str) -> String {
    let name = text::server(name);
    // SAFETY: PostgreSQL returns the name itself or an allocated copy; both live until the string has been made.
    unsafe { utf8(pg_sys::quote_identifier(name.as_ptr())) }
}

/// Returns a type with its schema, of any length: `character` alone would have the length 1.
pub fn kind_name(kind: pg_sys::Oid) -> String {
    let flags = pg_sys::FORMAT_TYPE_FORCE_QUALIFY | pg_sys::FORMAT_TYPE_TYPEMOD_GIVEN;
    // SAFETY: a catalog lookup in a transaction; the name is copied.
    unsafe { utf8(pg_sys::format_type_extended(kind, -1, flags as u16)) }
}

/// The name of a schema; empty if it is gone.
pub(super) fn name_of_schema(oid: pg_sys::Oid) -> String {
    // SAFETY: a catalog lookup in a transaction; the name is copied.
    unsafe {
        let name = pg_sys::get_namespace_name(oid);
        if name.is_null() { String::new() } else { utf8(name) }
    }
}
