//! The versions of awty: of its package, and of the SQL objects that it serves.
//!
//! A patch release changes only the package's version. [`SERVES`] also names older SQL versions, so that an update of
//! the package and a restart stop no check.

/// The last SQL version is the library's own.
pub const SERVES: &[&str] = if cfg!(feature = "next-version") { &["0.1", "0.2"] } else { &["0.1"] };

pub const LIBRARY: &str = env!("CARGO_PKG_VERSION");
