//! The staged PostgreSQL: a copy of the installed one with the built awty in it.
//!
//! Does not: build the extension; `scripts/stage` says so if that was not done.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The stage's directory, from the environment's `AWTY_STAGE` or made by `scripts/stage`; asked for once per process.
pub fn directory() -> &'static Path {
    static STAGE: OnceLock<PathBuf> = OnceLock::new();
    STAGE.get_or_init(|| match std::env::var_os("AWTY_STAGE") {
        Some(given) => PathBuf::from(given),
        None => make(),
    })
}

/// The checkout. Cargo says where it is when it runs something; what it said when it compiled may be outdated, because a
/// checkout can be copied or moved with all that was built in it.
pub fn checkout() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let package = package.filter(|package| package.ends_with("crates/awty-testkit"));
    package.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into()).join("../..")
}

fn make() -> PathBuf {
    let script = checkout().join("scripts/stage");
    let output = Command::new(&script)
        .stderr(Stdio::inherit())
        .output()
        .unwrap_or_else(|error| panic!("cannot run {}: {error}", script.display()));
    assert!(output.status.success(), "{} failed ({}); its error is above", script.display(), output.status);
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}
