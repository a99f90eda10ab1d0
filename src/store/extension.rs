//! The version of awty's SQL objects in this database. It is read each time, because ALTER EXTENSION may change it at
//! any moment.

use super::typed::statement;
use crate::pg::text::Text;
use crate::version::SERVES;
use awty_core::versions::{self, Unserved};

statement!(select_version, [], c"SELECT e.extversion FROM pg_catalog.pg_extension AS e WHERE e.extname = 'awty'");

/// Returns the installed version; empty without the extension.
pub fn installed() -> String {
    let version = select_version().query(&[], |rows| rows.first::<Text>(1));
    version.map(|version| version.to_string()).unwrap_or_default()
}

/// Returns `None` if this library works with the installed version.
pub fn unserved() -> Option<Unserved> {
    versions::unserved(&installed(), SERVES)
}
