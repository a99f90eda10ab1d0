//! SQL versions of awty that this library supports. [`SERVES`] also names older versions, so that checks still run
//! after an update of the package and before ALTER EXTENSION UPDATE.

pub const SERVES: &[&str] = if cfg!(feature = "next-version") { &["0.1", "0.2"] } else { &["0.1"] };

pub const LIBRARY: &str = env!("CARGO_PKG_VERSION");
