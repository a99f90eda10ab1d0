use super::arg;
use super::typed::statement;
use crate::pg::text::Text;
use pgrx::pg_sys;

pub struct CatalogFunction {
    pub oid: pg_sys::Oid,
    pub kind: u8,
    pub returns_set: bool,
    pub result: pg_sys::Oid,
    pub may_execute: bool,
    pub may_use_schema: bool,
    pub owner: pg_sys::Oid,
    pub owned_by_superuser: bool,
}

statement!(
    select_function,
    [TEXTOID, TEXTOID, OIDOID, OIDOID],
    c"SELECT p.oid, p.prokind, p.proretset, p.prorettype,
             pg_catalog.has_function_privilege($4, p.oid, 'EXECUTE'), o.rolsuper,
             pg_catalog.has_schema_privilege($4, n.oid, 'USAGE'), p.proowner
      FROM pg_catalog.pg_namespace AS n
      JOIN pg_catalog.pg_proc AS p ON p.pronamespace = n.oid
      JOIN pg_catalog.pg_roles AS o ON o.oid = p.proowner
      WHERE n.nspname = $1::pg_catalog.name AND p.proname = $2::pg_catalog.name
        AND CASE WHEN $3 = 0::pg_catalog.oid THEN p.pronargs = 0 ELSE p.pronargs = 1 AND p.proargtypes[0] = $3 END"
);

statement!(
    select_privileged,
    [OIDOID],
    c"SELECT EXISTS (
          SELECT FROM pg_catalog.pg_roles AS p
          WHERE (p.rolsuper OR p.rolbypassrls OR p.rolcreaterole OR p.rolreplication
                 OR p.rolname LIKE 'pg\\_%' AND p.rolname <> 'pg_database_owner')
            AND pg_catalog.pg_has_role($1, p.oid, 'MEMBER'))"
);

statement! {
    pub fn schema_names(oids: Vec<pg_sys::Oid>) -> Vec<Text> = query,
    c"SELECT n.nspname::pg_catalog.text
      FROM pg_catalog.unnest($1) WITH ORDINALITY AS s (oid, place) JOIN pg_catalog.pg_namespace AS n ON n.oid = s.oid
      WHERE n.nspname NOT LIKE 'pg\\_temp\\_%' ORDER BY s.place"
}

/// If `argument` is `InvalidOid`, finds a function without arguments.
pub fn find(schema: &Text, name: &Text, argument: pg_sys::Oid, role: pg_sys::Oid) -> Option<CatalogFunction> {
    select_function().query(
        &[Some(schema.datum()), Some(name.datum()), Some(pg_sys::Datum::from(argument)), arg(role)],
        |rows| {
            Some(CatalogFunction {
                oid: rows.first(1)?,
                kind: rows.first::<i8>(2)?.cast_unsigned(),
                returns_set: rows.first(3)?,
                result: rows.first(4)?,
                may_execute: rows.first(5)?,
                owned_by_superuser: rows.first(6)?,
                may_use_schema: rows.first(7)?,
                owner: rows.first(8)?,
            })
        },
    )
}

/// A role that does not exist counts as privileged.
pub fn is_privileged(role: pg_sys::Oid) -> bool {
    select_privileged().query(&[arg(role)], |rows| rows.first(1)).unwrap_or(true)
}
