use pgrx::pg_sys;
use std::ffi::{CStr, CString};

pub fn extension() -> Option<pg_sys::Oid> {
    // SAFETY: a transaction is open, and the name is a C string.
    let oid = unsafe { pg_sys::get_extension_oid(c"awty".as_ptr(), true) };
    (oid != pg_sys::InvalidOid).then_some(oid)
}

pub fn relation(schema: &CStr, name: &CStr) -> Option<pg_sys::Oid> {
    // SAFETY: a transaction is open, and the C strings are valid.
    let oid = unsafe {
        let schema = pg_sys::get_namespace_oid(schema.as_ptr(), true);
        pg_sys::get_relname_relid(name.as_ptr(), schema)
    };
    (oid != pg_sys::InvalidOid).then_some(oid)
}

pub fn owner() -> pg_sys::Oid {
    let Some(relation) = relation(c"awty", c"future_job") else { return pg_sys::InvalidOid };
    // SAFETY: `tuple` is read before its release.
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

pub fn owner_of_type(kind: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: `tuple` is read before its release.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::TYPEOID as i32, pg_sys::Datum::from(kind));
        if tuple.is_null() {
            return None;
        }
        let owner = (*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_type>()).typowner;
        pg_sys::ReleaseSysCache(tuple);
        Some(owner)
    }
}

pub fn database() -> pg_sys::Oid {
    // SAFETY: no other thread uses this variable.
    unsafe { pg_sys::MyDatabaseId }
}

pub fn database_name() -> String {
    // SAFETY: the lookup returns a C string or NULL.
    unsafe { to_string(pg_sys::get_database_name(database())) }.unwrap_or_default()
}

pub fn current_role() -> pg_sys::Oid {
    // SAFETY: the function only reads a variable.
    unsafe { pg_sys::GetUserId() }
}

/// Returns whether code in this session can become no other role. `SET SESSION AUTHORIZATION DEFAULT` leads back to the
/// role that has logged in.
pub fn is_alone(role: pg_sys::Oid) -> bool {
    // SAFETY: the functions only read variables of the process.
    unsafe {
        [pg_sys::GetUserId(), pg_sys::GetOuterUserId(), pg_sys::GetSessionUserId(), pg_sys::GetAuthenticatedUserId()]
            .iter()
            .all(|user| *user == role)
    }
}

pub fn role_name(role: pg_sys::Oid) -> Option<String> {
    // SAFETY: the lookup returns a C string or NULL.
    unsafe { to_string(pg_sys::GetUserNameFromId(role, true)) }
}

pub fn role_label(role: pg_sys::Oid) -> String {
    role_name(role).unwrap_or_else(|| role.to_u32().to_string())
}

pub fn role(name: &CStr) -> Option<pg_sys::Oid> {
    // SAFETY: a transaction is open, and `name` is a C string.
    let oid = unsafe { pg_sys::get_role_oid(name.as_ptr(), true) };
    (oid != pg_sys::InvalidOid).then_some(oid)
}

pub fn can_become(member: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: a transaction is open.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::is_member_of_role(member, role);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::member_can_set_role(member, role);
    }
}

/// A superuser counts as a member of every role.
pub fn is_member(member: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: a transaction is open.
    unsafe { pg_sys::is_member_of_role(member, role) }
}

/// Returns whether `member` is or was granted `role`, even if `member` is a superuser.
pub fn is_granted(member: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: a transaction is open.
    unsafe { pg_sys::is_member_of_role_nosuper(member, role) }
}

pub fn is_superuser(role: pg_sys::Oid) -> bool {
    // SAFETY: a transaction is open.
    unsafe { pg_sys::superuser_arg(role) }
}

pub fn is_monitor(role: pg_sys::Oid) -> bool {
    // SAFETY: a transaction is open.
    unsafe { pg_sys::has_privs_of_role(role, pg_sys::ROLE_PG_MONITOR.into()) }
}

pub fn database_owner() -> Option<pg_sys::Oid> {
    // SAFETY: `tuple` is read before its release.
    unsafe {
        let here = pg_sys::Datum::from(database());
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::DATABASEOID as i32, here);
        if tuple.is_null() {
            return None;
        }
        let owner = (*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_database>()).datdba;
        pg_sys::ReleaseSysCache(tuple);
        Some(owner)
    }
}

pub fn owns_database(role: pg_sys::Oid) -> bool {
    // SAFETY: a transaction is open.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::pg_database_ownercheck(database(), role);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_ownercheck(pg_sys::DatabaseRelationId, database(), role);
    }
}

/// Predefined roles whose members can get superuser rights.
const PRIVILEGED: [u32; 3] =
    [pg_sys::ROLE_PG_EXECUTE_SERVER_PROGRAM, pg_sys::ROLE_PG_WRITE_SERVER_FILES, pg_sys::ROLE_PG_READ_SERVER_FILES];

/// A HINT must not suggest membership in a privileged role.
pub fn is_privileged(role: pg_sys::Oid) -> bool {
    // SAFETY: `tuple` is read before its release.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::AUTHOID as i32, pg_sys::Datum::from(role));
        if tuple.is_null() {
            return false;
        }
        let row = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_authid>();
        let may = row.rolsuper || row.rolcreaterole || row.rolreplication || row.rolbypassrls;
        pg_sys::ReleaseSysCache(tuple);
        may || role.to_u32() < pg_sys::FirstNormalObjectId
            || PRIVILEGED.iter().any(|&mighty| is_member(role, mighty.into()))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CannotConnect {
    NoDatabase,
    Gone,
    NoLogin,
    NoConnect,
}

pub fn can_connect(database: pg_sys::Oid, role: pg_sys::Oid) -> Result<(), CannotConnect> {
    // SAFETY: each tuple is read before its release.
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

/// Returns whether the role may connect as a member of `pg_database_owner`. PostgreSQL knows the members only in a
/// session of the database, and the launcher has no database.
unsafe fn may_connect_as_owner(database: pg_sys::Oid, owner: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    let (owners, connect) = (pg_sys::Oid::from(pg_sys::ROLE_PG_DATABASE_OWNER), pg_sys::ACL_CONNECT as pg_sys::AclMode);
    // SAFETY: a transaction is open.
    unsafe {
        #[cfg(feature = "pg15")]
        let result = pg_sys::pg_database_aclcheck(database, owners, connect);
        #[cfg(not(feature = "pg15"))]
        let result = pg_sys::object_aclcheck(pg_sys::DatabaseRelationId, database, owners, connect);
        result == pg_sys::AclResult::ACLCHECK_OK && pg_sys::has_privs_of_role(role, owner)
    }
}

pub fn c_name(bytes: &[u8]) -> CString {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    CString::new(&bytes[..end]).unwrap_or_default()
}

unsafe fn to_string(text: *const std::ffi::c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: a `text` that is not null is a valid C string.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
