//! The versions of awty: of its package, and of the SQL objects that it works with.
//!
//! A patch release changes the package's version only. SQL of an older version is served as long as [`SERVES`] names it, so that an
//! update of the package and a restart stop no check.
//!
//! Invariant: these are constants of the library.
//! Does not: look at what is installed in a database (see `store::extension`).

/// The versions of the SQL objects that this library works with; the last is its own.
pub const SERVES: &[&str] = if cfg!(feature = "next-version") { &["0.1", "0.2"] } else { &["0.1"] };

/// The version of the package that this library came with.
pub const LIBRARY: &str = env!("CARGO_PKG_VERSION");
