use super::text::{self, utf8};
use pgrx::pg_sys;

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
