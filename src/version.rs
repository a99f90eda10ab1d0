//! SQL versions of awty that this library supports. [`SERVES`] also names older versions, so that checks run between
//! the updates of the package and of the SQL.

pub const SERVES: &[&str] = if cfg!(feature = "next-version") { &["0.1", "0.2"] } else { &["0.1"] };

pub const LIBRARY: &str = env!("CARGO_PKG_VERSION");
