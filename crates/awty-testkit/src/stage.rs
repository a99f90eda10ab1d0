use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// If `AWTY_STAGE` is not set, each test process runs `scripts/stage` once, which copies PostgreSQL.
pub fn directory() -> &'static Path {
    static STAGE: OnceLock<PathBuf> = OnceLock::new();
    STAGE.get_or_init(|| match std::env::var_os("AWTY_STAGE") {
        Some(given) => PathBuf::from(given),
        None => make(),
    })
}

/// Reads `CARGO_MANIFEST_DIR` at run time and not at compile time, because a checkout can be moved after its build.
pub fn checkout() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let package = package.filter(|package| package.ends_with("crates/awty-testkit"));
    package.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into()).join("../..")
}

pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| checkout().join("target"), PathBuf::from)
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
