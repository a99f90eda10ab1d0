//! The version of awty's SQL objects in this database, from `pg_extension`.
//!
//! Invariant: the version is read each time, because ALTER EXTENSION may change it at any moment.
//! Does not: know the versions that the library serves (see `version`).

use super::typed::statement;
use crate::pg::text::Text;
use crate::version::SERVES;
use awty_core::versions::{self, Unserved};

statement!(select_version, [], c"SELECT e.extversion FROM pg_catalog.pg_extension AS e WHERE e.extname = 'awty'");

/// The installed version; empty if the extension is not installed.
pub fn installed() -> String {
    let version = select_version().query(&[], |rows| rows.first::<Text>(1));
    version.map(|version| version.to_string()).unwrap_or_default()
}

/// Why this library does not work with the installed version; `None` if it does.
pub fn unserved() -> Option<Unserved> {
    versions::unserved(&installed(), SERVES)
}
