use super::scalar;
use super::text::{self, Text, utf8};
use pgrx::pg_sys;

#[derive(Clone, Debug)]
pub struct KeyColumn {
    pub number: i32,
    pub name: String,
    pub kind: pg_sys::Oid,
    equals: pg_sys::Oid,
}

impl KeyColumn {
    /// Returns the column's type, or the base type of a domain, because a cast to a domain runs its CHECK.
    pub fn cast_to(&self) -> pg_sys::Oid {
        // SAFETY: a transaction is open.
        unsafe { pg_sys::getBaseType(self.kind) }
    }

    pub fn equals(&self) -> String {
        operator(self.equals)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    Plain,
    Partitioned,
    Partition,
    Other(u8),
}

#[derive(Clone, Debug)]
pub struct Described {
    pub oid: pg_sys::Oid,
    pub namespace: pg_sys::Oid,
    pub schema: String,
    pub name: String,
    pub owner: pg_sys::Oid,
    pub kind: Kind,
    pub is_temporary: bool,
    pub is_system: bool,
}

impl Described {
    pub fn qualified(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.name))
    }
}

pub fn describe(oid: pg_sys::Oid) -> Option<Described> {
    // SAFETY: `tuple` is read before its release.
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
            namespace: row.relnamespace,
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

pub fn owner(oid: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: `tuple` is read before its release.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::RELOID as i32, pg_sys::Datum::from(oid));
        if tuple.is_null() {
            return None;
        }
        let owner = (*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_class>()).relowner;
        pg_sys::ReleaseSysCache(tuple);
        Some(owner)
    }
}

pub fn may_select(table: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: a transaction is open.
    unsafe {
        pg_sys::pg_class_aclcheck(table, role, pg_sys::ACL_SELECT as pg_sys::AclMode) == pg_sys::AclResult::ACLCHECK_OK
    }
}

pub fn may_create_in(schema: &str, role: pg_sys::Oid) -> bool {
    let name = text::server(schema);
    // SAFETY: a transaction is open, and the C strings are valid.
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

pub fn hides_rows(table: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: a transaction is open, and this call raises no ERROR.
    unsafe { pg_sys::check_enable_rls(table, role, true) == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32 }
}

/// Returns `None` if the table has no primary key with a B-tree index.
pub fn primary_key(oid: pg_sys::Oid) -> Option<Vec<KeyColumn>> {
    const MODE: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    // SAFETY: a transaction is open, and the caller has locked the table.
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

/// Also finds a deferrable primary key, whose index PostgreSQL does not report as primary.
unsafe fn primary_index(table: pg_sys::Relation) -> Option<pg_sys::Oid> {
    // SAFETY: `table` is open, and each tuple is read before its release.
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

unsafe fn columns(table: pg_sys::Relation, index: pg_sys::Relation) -> Vec<KeyColumn> {
    // SAFETY: `index` is open, and each key column has an operator family and a type.
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
    // SAFETY: `tuple` is read before its release.
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

pub fn key_text(columns: &[KeyColumn], values: &[pg_sys::Datum]) -> Text {
    let mut texts: Vec<Text> =
        columns.iter().zip(values).map(|(column, value)| scalar::text(*value, column.kind)).collect();
    if texts.len() == 1 { texts.remove(0) } else { scalar::json_array(&texts) }
}

/// Casts a key as a statement does. An error of a cast unwinds as in [`carried`].
///
/// [`carried`]: super::reraise::carried
pub fn cast_key(columns: &[KeyColumn], key: &Text) {
    for (place, column) in columns.iter().enumerate() {
        scalar::cast(key, (columns.len() > 1).then_some(place), column.cast_to());
    }
}

pub fn quoted(name: &str) -> String {
    let name = text::server(name);
    // SAFETY: the call returns `name` or an allocated copy, and both are C strings.
    unsafe { utf8(pg_sys::quote_identifier(name.as_ptr())) }
}

/// Returns the name with its schema, because `character` without a schema means `character(1)`.
pub fn kind_name(kind: pg_sys::Oid) -> String {
    let flags = pg_sys::FORMAT_TYPE_FORCE_QUALIFY | pg_sys::FORMAT_TYPE_TYPEMOD_GIVEN;
    // SAFETY: a transaction is open, and the name is copied.
    unsafe { utf8(pg_sys::format_type_extended(kind, -1, flags as u16)) }
}

pub(super) fn name_of_schema(oid: pg_sys::Oid) -> String {
    // SAFETY: a transaction is open, and the name is copied.
    unsafe {
        let name = pg_sys::get_namespace_name(oid);
        if name.is_null() { String::new() } else { utf8(name) }
    }
}
