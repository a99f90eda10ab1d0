//! [`SERVES`] also names older SQL versions, so that checks still run if the package was updated but the SQL objects
//! were not.

/// The last entry is the library's own SQL version.
pub const SERVES: &[&str] = if cfg!(feature = "next-version") { &["0.1", "0.2"] } else { &["0.1"] };

pub const LIBRARY: &str = env!("CARGO_PKG_VERSION");
