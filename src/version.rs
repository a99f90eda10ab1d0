//! The versions of awty: of its package, and of its SQL objects in this database.
//!
//! A patch release changes the package's version only. SQL of an older version is served as long as [`SERVES`] names it, so that an
//! update of the package and a restart stop no check.

use crate::pg::owner::as_owner;
use crate::pg::text::Text;
use crate::store::statement::statement;
use awty_core::versions::{self, Unserved};

/// The versions of the SQL objects that this library works with; the last is its own.
const SERVES: &[&str] = &["0.1"];

/// The version of the package that this library came with.
pub const LIBRARY: &str = env!("CARGO_PKG_VERSION");

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
