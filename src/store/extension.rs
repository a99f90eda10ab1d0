//! What `pg_extension` says of awty: the version of its SQL objects in this database.
//!
//! Invariant: it is read each time, because ALTER EXTENSION may change it at any moment.
//! Does not: know the versions that the library serves (see `version`).

use super::statement::statement;
use crate::pg::owner::as_owner;
use crate::pg::text::Text;
use crate::version::SERVES;
use awty_core::versions::{self, Unserved};

statement!(select_version, [], c"SELECT e.extversion FROM pg_catalog.pg_extension AS e WHERE e.extname = 'awty'");

/// The version of awty's SQL objects in this database; empty without them.
pub fn installed() -> String {
    let version = as_owner(|| select_version(|s| s.query(&[], |rows| rows.first::<Text>(1))));
    version.map(|version| version.to_string()).unwrap_or_default()
}

/// Why this library does not work with them; `None` if it does.
pub fn unserved() -> Option<Unserved> {
    versions::unserved(&installed(), SERVES)
}
