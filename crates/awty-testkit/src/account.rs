//! PostgreSQL refuses to run as root. Therefore, if root runs the tests, the clusters run as the user `postgres`.

use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const SERVER_USER: &str = "postgres";

pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = if is_root() {
        let mut runuser = Command::new("runuser");
        runuser.args(["-u", SERVER_USER, "--"]).arg(program);
        runuser
    } else {
        Command::new(program)
    };
    command.current_dir("/tmp").stdin(Stdio::null()).env("LC_MESSAGES", "C").env("RUST_BACKTRACE", "1");
    command
}

/// Runs the program without a parent process such as `runuser`, so that signals reach the program.
pub(crate) fn direct(program: impl AsRef<OsStr>) -> Command {
    let mut command = if is_root() {
        let mut setpriv = Command::new("setpriv");
        setpriv.args(["--reuid", SERVER_USER, "--regid", SERVER_USER, "--init-groups", "--"]).arg(program);
        setpriv
    } else {
        Command::new(program)
    };
    command.stdin(Stdio::null()).env("LC_MESSAGES", "C");
    command
}

#[track_caller]
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        panic!("{command:?} failed ({}):\n{stdout}{stderr}", output.status);
    }
    stdout
}

pub(crate) fn uid() -> u32 {
    static UID: OnceLock<u32> = OnceLock::new();
    *UID.get_or_init(|| {
        if !is_root() {
            return rustix::process::geteuid().as_raw();
        }
        let printed = run(Command::new("id").args(["-u", SERVER_USER]));
        printed.trim().parse().unwrap_or_else(|_| panic!("\"id -u {SERVER_USER}\" printed {printed:?}"))
    })
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
