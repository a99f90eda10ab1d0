//! Versions of awty's SQL objects that this library supports. [`SERVES`] names older versions too, so that checks
//! still run between the updates of the package and of the SQL objects.

/// The last entry is the library's own version.
pub const SERVES: &[&str] = if cfg!(feature = "next-version") { &["0.1", "0.2"] } else { &["0.1"] };

pub const LIBRARY: &str = env!("CARGO_PKG_VERSION");
