//! The version of awty's package, and the versions of the SQL objects that this library serves.
//!
//! A patch release changes only the package's version. [`SERVES`] also names older SQL versions, so that checks still
//! run if the package was updated but the SQL objects were not.

/// Versions of the SQL objects that this library serves. The last one is the library's own.
pub const SERVES: &[&str] = if cfg!(feature = "next-version") { &["0.1", "0.2"] } else { &["0.1"] };

pub const LIBRARY: &str = env!("CARGO_PKG_VERSION");
