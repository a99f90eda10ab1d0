//! Questions to PostgreSQL's catalogs that need no SQL: who is who, and where awty's own objects are.
//!
//! Invariant: every answer is looked up when it is asked for; the caches behind it are PostgreSQL's, which keeps them right.
//! Does not: run SQL or check rights of awty's own (see `api::rights`).

use pgrx::pg_sys;
use std::ffi::{CStr, CString};

/// The extension's OID, or `None` when it is not (or no longer) installed in this database.
pub fn extension() -> Option<pg_sys::Oid> {
    // SAFETY: a catalog lookup in a transaction.
    let oid = unsafe { pg_sys::get_extension_oid(c"awty".as_ptr(), true) };
    (oid != pg_sys::InvalidOid).then_some(oid)
}

/// The OID of a relation by its schema and name, or `None` when it is not there.
pub fn relation(schema: &CStr, name: &CStr) -> Option<pg_sys::Oid> {
    // SAFETY: catalog lookups in a transaction, with valid C strings.
    let oid = unsafe {
        let schema = pg_sys::get_namespace_oid(schema.as_ptr(), true);
        pg_sys::get_relname_relid(name.as_ptr(), schema)
    };
    (oid != pg_sys::InvalidOid).then_some(oid)
}

/// Who owns awty's tables: the role that created the extension, unless they were given away.
pub fn owner() -> pg_sys::Oid {
    let Some(relation) = relation(c"awty", c"future_job") else { return pg_sys::InvalidOid };
    // SAFETY: a catalog lookup; the tuple is released after its one field is read.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::RELOID as i32, pg_sys::Datum::from(relation));
        if tuple.is_null() {
            return pg_sys::InvalidOid;
        }
        let owner = (*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_class>()).relowner;
        pg_sys::ReleaseSysCache(tuple);
        owner
    }
}

/// This connection's database.
pub fn database() -> pg_sys::Oid {
    // SAFETY: set once, when the process connects.
    unsafe { pg_sys::MyDatabaseId }
}

/// The name of this connection's database.
pub fn database_name() -> String {
    // SAFETY: a catalog lookup in a transaction; the string is copied.
    unsafe { to_string(pg_sys::get_database_name(database())) }.unwrap_or_default()
}

/// Whose rights the code that runs now has.
pub fn current_role() -> pg_sys::Oid {
    // SAFETY: a getter.
    unsafe { pg_sys::GetUserId() }
}

/// Is this role all that the session is: the role that it connected as, and whose rights the code that runs now has?
pub fn is_alone(role: pg_sys::Oid) -> bool {
    // SAFETY: getters.
    unsafe { pg_sys::GetUserId() == role && pg_sys::GetOuterUserId() == role && pg_sys::GetSessionUserId() == role }
}

/// The name of a role, or `None` when it is gone.
pub fn role_name(role: pg_sys::Oid) -> Option<String> {
    // SAFETY: a catalog lookup in a transaction; the string is copied.
    unsafe { to_string(pg_sys::GetUserNameFromId(role, true)) }
}

/// The name of a role, or its number when it is gone.
pub fn role_label(role: pg_sys::Oid) -> String {
    role_name(role).unwrap_or_else(|| role.to_u32().to_string())
}

/// The role of that name.
pub fn role(name: &CStr) -> Option<pg_sys::Oid> {
    // SAFETY: a catalog lookup in a transaction.
    let oid = unsafe { pg_sys::get_role_oid(name.as_ptr(), true) };
    (oid != pg_sys::InvalidOid).then_some(oid)
}

/// What [`can_become`] is called in `pg_has_role()`.
pub const BECOME: &str = if cfg!(feature = "pg15") { "MEMBER" } else { "SET" };

/// May this role become that one, by SET ROLE?
pub fn can_become(member: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: catalog lookups in a transaction.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::is_member_of_role(member, role);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::member_can_set_role(member, role);
    }
}

/// Is this role that one, or a member of it? Superusers are members of all.
pub fn is_member(member: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: catalog lookups in a transaction.
    unsafe { pg_sys::is_member_of_role(member, role) }
}

/// Is this a monitoring role?
pub fn is_monitor(role: pg_sys::Oid) -> bool {
    // SAFETY: catalog lookups in a transaction.
    unsafe { pg_sys::has_privs_of_role(role, pg_sys::ROLE_PG_MONITOR.into()) }
}

/// Has this role all that it takes to be treated as the owner of the database?
pub fn owns_database(role: pg_sys::Oid) -> bool {
    // SAFETY: catalog lookups in a transaction.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::pg_database_ownercheck(database(), role);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_ownercheck(pg_sys::DatabaseRelationId, database(), role);
    }
}

/// Roles that may do this can do anything, in the end.
const MIGHTY: [u32; 3] =
    [pg_sys::ROLE_PG_EXECUTE_SERVER_PROGRAM, pg_sys::ROLE_PG_WRITE_SERVER_FILES, pg_sys::ROLE_PG_READ_SERVER_FILES];

/// Is it a role of the server's administration, which nobody should be made a member of by a hint?
pub fn is_privileged(role: pg_sys::Oid) -> bool {
    // SAFETY: a catalog lookup in a transaction; the tuple is released after its fields are read.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::AUTHOID as i32, pg_sys::Datum::from(role));
        if tuple.is_null() {
            return false;
        }
        let row = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_authid>();
        let may = row.rolsuper || row.rolcreaterole || row.rolreplication || row.rolbypassrls;
        pg_sys::ReleaseSysCache(tuple);
        may || role.to_u32() < pg_sys::FirstNormalObjectId
            || MIGHTY.iter().any(|&mighty| is_member(role, mighty.into()))
    }
}

/// Why a role cannot have a worker in a database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CannotConnect {
    /// The database is gone, or accepts no connections.
    NoDatabase,
    /// The role is gone.
    Gone,
    NoLogin,
    NoConnect,
}

/// Could a worker connect to that database as that role?
pub fn can_connect(database: pg_sys::Oid, role: pg_sys::Oid) -> Result<(), CannotConnect> {
    // SAFETY: catalog lookups in a transaction; each tuple is released after its one field is read.
    unsafe {
        let tuple =
            pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::DATABASEOID as i32, pg_sys::Datum::from(database));
        if tuple.is_null() {
            return Err(CannotConnect::NoDatabase);
        }
        let row = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_database>();
        let (open, owner) = (row.datallowconn, row.datdba);
        pg_sys::ReleaseSysCache(tuple);
        if !open {
            return Err(CannotConnect::NoDatabase);
        }
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::AUTHOID as i32, pg_sys::Datum::from(role));
        if tuple.is_null() {
            return Err(CannotConnect::Gone);
        }
        let login = (*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_authid>()).rolcanlogin;
        pg_sys::ReleaseSysCache(tuple);
        // From PostgreSQL 17 on a worker may connect as a role that cannot log in.
        if !login && cfg!(any(feature = "pg15", feature = "pg16")) {
            return Err(CannotConnect::NoLogin);
        }
        let connect = pg_sys::ACL_CONNECT as pg_sys::AclMode;
        #[cfg(feature = "pg15")]
        let result = pg_sys::pg_database_aclcheck(database, role, connect);
        #[cfg(not(feature = "pg15"))]
        let result = pg_sys::object_aclcheck(pg_sys::DatabaseRelationId, database, role, connect);
        if result != pg_sys::AclResult::ACLCHECK_OK && !may_connect_as_owner(database, owner, role) {
            return Err(CannotConnect::NoConnect);
        }
    }
    Ok(())
}

/// Has this role CONNECT as the database's owner? PostgreSQL knows who is in `pg_database_owner` only within that database, and the
/// launcher is in none.
///
/// # Safety
/// Called in a transaction.
unsafe fn may_connect_as_owner(database: pg_sys::Oid, owner: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    let (owners, connect) = (pg_sys::Oid::from(pg_sys::ROLE_PG_DATABASE_OWNER), pg_sys::ACL_CONNECT as pg_sys::AclMode);
    // SAFETY: catalog lookups.
    unsafe {
        #[cfg(feature = "pg15")]
        let result = pg_sys::pg_database_aclcheck(database, owners, connect);
        #[cfg(not(feature = "pg15"))]
        let result = pg_sys::object_aclcheck(pg_sys::DatabaseRelationId, database, owners, connect);
        result == pg_sys::AclResult::ACLCHECK_OK && pg_sys::has_privs_of_role(role, owner)
    }
}

/// A name as C wants it; cut at a NUL, which no name has.
pub fn c_name(bytes: &[u8]) -> CString {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    CString::new(&bytes[..end]).unwrap_or_default()
}

/// # Safety
/// Null or a valid C string.
unsafe fn to_string(text: *const std::ffi::c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, and so a valid C string, says the caller.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
