use super::typed::{row, statement};
use crate::pg::text::Text;
use pgrx::pg_sys;

pub struct CatalogFunction {
    pub oid: pg_sys::Oid,
    pub kind: u8,
    pub returns_set: bool,
    pub result: pg_sys::Oid,
    pub may_execute: bool,
    pub owned_by_superuser: bool,
    pub may_use_schema: bool,
    pub owner: pg_sys::Oid,
}

row!(CatalogFunction { oid, kind, returns_set, result, may_execute, owned_by_superuser, may_use_schema, owner });

statement! {
    pub fn find(schema: &Text, name: &Text, argument: pg_sys::Oid, role: pg_sys::Oid) -> Option<CatalogFunction> = query,
    c"SELECT p.oid, p.prokind, p.proretset, p.prorettype,
             pg_catalog.has_function_privilege($4, p.oid, 'EXECUTE'), o.rolsuper,
             pg_catalog.has_schema_privilege($4, n.oid, 'USAGE'), p.proowner
      FROM pg_catalog.pg_namespace AS n
      JOIN pg_catalog.pg_proc AS p ON p.pronamespace = n.oid
      JOIN pg_catalog.pg_roles AS o ON o.oid = p.proowner
      WHERE n.nspname = $1::pg_catalog.name AND p.proname = $2::pg_catalog.name
        AND CASE WHEN $3 IS NULL THEN p.pronargs = 0 ELSE p.pronargs = 1 AND p.proargtypes[0] = $3 END"
}

// Ignores membership in pg_database_owner, because this membership gives a role no further rights.
statement! {
    fn select_privileged(role: pg_sys::Oid) -> Option<bool> = query,
    c"SELECT EXISTS (
          SELECT FROM pg_catalog.pg_roles AS p
          WHERE (p.rolsuper OR p.rolbypassrls OR p.rolcreaterole OR p.rolreplication
                 OR p.rolname LIKE 'pg\\_%' AND p.rolname <> 'pg_database_owner')
            AND pg_catalog.pg_has_role($1, p.oid, 'MEMBER'))"
}

statement! {
    pub fn schema_names(oids: Vec<pg_sys::Oid>) -> Vec<Text> = query,
    c"SELECT n.nspname::pg_catalog.text
      FROM pg_catalog.unnest($1) WITH ORDINALITY AS s (oid, place) JOIN pg_catalog.pg_namespace AS n ON n.oid = s.oid
      WHERE n.nspname NOT LIKE 'pg\\_temp\\_%' ORDER BY s.place"
}

pub fn is_privileged(role: pg_sys::Oid) -> bool {
    select_privileged(role).unwrap_or(true)
}
