//! Libraries that control a server's wall clock (`clock.c`) and disk (`disk.c`). The libraries read numbers that a test
//! writes to a file, which all server processes map.

use crate::{Cluster, account};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) struct Library {
    name: &'static str,
    variable: &'static str,
    source: &'static str,
}

pub(crate) const CLOCK: Library = Library { name: "clock", variable: "AWTY_CLOCK", source: include_str!("../clock.c") };
pub(crate) const DISK: Library = Library { name: "disk", variable: "AWTY_DISK", source: include_str!("../disk.c") };

const NUMBER: usize = size_of::<i64>();

impl Library {
    fn numbers(&self, cluster: &Cluster) -> PathBuf {
        cluster.socket_directory().join(self.name)
    }

    fn object(&self, cluster: &Cluster) -> PathBuf {
        self.numbers(cluster).with_extension("so")
    }

    pub(crate) fn is_installed(&self, cluster: &Cluster) -> bool {
        self.object(cluster).exists()
    }

    /// The cluster must not have been started yet.
    #[track_caller]
    pub(crate) fn install(&self, cluster: &Cluster, numbers: usize) {
        let source = self.numbers(cluster).with_extension("c");
        must("write", &source, fs::write(&source, self.source));
        let file = self.numbers(cluster);
        must("write", &file, fs::write(&file, vec![0; numbers * NUMBER]));
        // All users may write the file, because the server may run as another user. The directory's permissions keep
        // all other users out.
        must("open up", &file, fs::set_permissions(&file, Permissions::from_mode(0o666)));
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(self.object(cluster)).arg(source).arg("-ldl");
        account::run(&mut compiler);
    }

    #[track_caller]
    pub(crate) fn set(&self, cluster: &Cluster, place: usize, number: i64) {
        let file = self.numbers(cluster);
        // This function must not truncate the file, because the server has mapped the file.
        let open = OpenOptions::new().write(true).open(&file);
        let written = open.and_then(|open| open.write_all_at(&number.to_ne_bytes(), (place * NUMBER) as u64));
        must("write", &file, written);
    }

    #[track_caller]
    pub(crate) fn get(&self, cluster: &Cluster, place: usize) -> i64 {
        let file = self.numbers(cluster);
        let mut number = [0; NUMBER];
        must(
            "read",
            &file,
            File::open(&file).and_then(|open| open.read_exact_at(&mut number, (place * NUMBER) as u64)),
        );
        i64::from_ne_bytes(number)
    }
}

#[track_caller]
pub(crate) fn copy(from: &Cluster, to: &Cluster) {
    for library in [CLOCK, DISK].iter().filter(|library| library.is_installed(from)) {
        for (from, to) in [(library.object(from), library.object(to)), (library.numbers(from), library.numbers(to))] {
            must("copy", &from, fs::copy(&from, to));
        }
    }
}

pub(crate) fn command(cluster: &Cluster, program: impl AsRef<OsStr>) -> Command {
    let installed: Vec<Library> = [CLOCK, DISK].into_iter().filter(|library| library.is_installed(cluster)).collect();
    if installed.is_empty() {
        return account::command(program);
    }
    let objects: Vec<String> = installed.iter().map(|library| library.object(cluster).display().to_string()).collect();
    let mut command = account::command("env");
    command.arg(format!("LD_PRELOAD={}", objects.join(":")));
    command
        .args(installed.iter().map(|library| format!("{}={}", library.variable, library.numbers(cluster).display())));
    command.arg(program);
    command
}

#[track_caller]
fn must<T>(what: &str, file: &Path, done: std::io::Result<T>) -> T {
    done.unwrap_or_else(|error| panic!("cannot {what} {}: {error}", file.display()))
}
