//! Reads and changes checks, rules and jobs for the web page.
//!
//! Invariant: each query reads a bounded number of rows, and row security decides which rows the role sees.

/// Returns whether the visitor owns the rows of a role: as a member, or by choosing the role as its tenant.
macro_rules! own {
    ($role:literal) => {
        concat!(
            "(pg_catalog.pg_has_role(",
            $role,
            ", 'MEMBER') OR pg_catalog.pg_get_userbyid(",
            $role,
            ") IS NOT DISTINCT FROM (SELECT awty_http_internal.chosen(awty_http_internal.me())))"
        )
    };
}
pub(super) use own;

/// Shortens a text of a role, because the expressions of one rule may take hundreds of kilobytes, and hundreds of messages
/// some megabytes.
macro_rules! cut {
    ($text:literal) => {
        concat!(
            "CASE WHEN pg_catalog.length(",
            $text,
            ") > 1000 THEN pg_catalog.left(",
            $text,
            ", 1000) || '…' ELSE ",
            $text,
            " END"
        )
    };
}
pub(super) use cut;

/// Selects the columns `own` and `turn` for a list whose rows belong to roles. `ORDER BY own DESC, turn` puts the
/// visitor's own rows first, and then one row of each other role in turn, because a role can give another role the right
/// to read any number of rows unasked.
macro_rules! own_first {
    ($role:literal, $order:literal) => {
        concat!(
            own!($role),
            " AS own, pg_catalog.row_number() OVER (PARTITION BY ",
            $role,
            "::oid ORDER BY ",
            $order,
            ") AS turn "
        )
    };
}

mod checks;
mod home;
mod jobs;
mod stop;

pub use checks::*;
pub use home::*;
pub use jobs::*;
pub use stop::*;

use super::{Request, Trouble};
use serde_json::Value;
use tokio_postgres::types::ToSql;

async fn all(request: &Request, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Value>, Trouble> {
    request.rows(sql, values).await?.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

async fn all_by_index(request: &Request, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Value>, Trouble> {
    request.rows_by_index(sql, values).await?.iter().map(|row| Ok(row.try_get(0)?)).collect()
}
