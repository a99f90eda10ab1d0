//! The version is not cached, because ALTER EXTENSION may change it at any moment.

use super::typed::statement;
use crate::pg::text::Text;
use crate::version::SERVES;
use awty_core::versions::{self, Unserved};

statement!(select_version, [], c"SELECT e.extversion FROM pg_catalog.pg_extension AS e WHERE e.extname = 'awty'");

pub fn installed() -> String {
    let version = select_version().query(&[], |rows| rows.first::<Text>(1));
    version.map(|version| version.to_string()).unwrap_or_default()
}

pub fn unserved() -> Option<Unserved> {
    versions::unserved(&installed(), SERVES)
}
