use super::dynamic_sql::query;
use crate::pg::citus;
use crate::store::statement::Rows;
use pgrx::{IntoDatum, pg_sys};

pub fn is_distributed(table: pg_sys::Oid) -> bool {
    const SQL: &str = "SELECT FROM pg_catalog.pg_dist_partition AS p WHERE p.logicalrelid OPERATOR(pg_catalog.=) $1::pg_catalog.regclass";
    citus::is_created() && query(SQL, &[pg_sys::OIDOID], &[table.into_datum()], |rows: &Rows| rows.len() > 0)
}
