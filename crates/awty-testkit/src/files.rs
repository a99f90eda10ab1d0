//! Invariant: this module removes a directory only if its name has the test prefix, the servers' account owns it, and
//! the process that made it has ended.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::{account, poll};

const PREFIX: &str = "awty-test-";

/// Returns the directory that has all clusters: `$AWTY_CLUSTERS`, or `/tmp`. `$TMPDIR` is not used, because a Unix
/// socket's path must be short, and the servers' account may be unable to access `$TMPDIR`.
pub fn home() -> PathBuf {
    std::env::var_os("AWTY_CLUSTERS").map_or_else(|| "/tmp".into(), PathBuf::from)
}

/// The server trusts every connection to its socket in the directory, so only the server's account may enter the
/// directory.
#[track_caller]
pub(crate) fn new_directory() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = home().join(format!("{PREFIX}{}-{number}", std::process::id()));
    make_private(&path);
    path
}

#[track_caller]
pub(crate) fn make_private(path: &Path) {
    account::run(account::command("mkdir").args(["-m", "700"]).arg(path));
}

/// Returns `None` if the process whose id is in `postmaster.pid` does not run in this directory, because an old
/// `postmaster.pid` may name an unrelated process.
pub(crate) fn postmaster(data: &Path) -> Option<Pid> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let pid: i32 = text.lines().next()?.trim().parse().ok()?;
    let command_line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let on_this_directory = String::from_utf8_lossy(&command_line).contains(data.to_str()?);
    on_this_directory.then_some(Pid::from_raw(pid)).flatten()
}

pub(crate) fn processes(data: &Path) -> Vec<Pid> {
    working(|cwd| cwd == data)
}

pub(crate) fn processes_below(directory: &Path) -> Vec<Pid> {
    working(|cwd| cwd.starts_with(directory))
}

fn working(here: impl Fn(&Path) -> bool) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let working_here = |entry: &fs::DirEntry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| here(&cwd));
    let pid = |entry: fs::DirEntry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?);
    entries.flatten().filter(working_here).filter_map(pid).collect()
}

pub(crate) fn remove(directory: &Path) {
    let data = directory.join("data");
    if let Some(pid) = postmaster(&data) {
        let _ = kill_process(pid, Signal::QUIT);
    }
    if await_end(&data, Duration::from_secs(30)).is_err() {
        for pid in processes(&data) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = await_end(&data, Duration::from_secs(30));
    }
    end_all(directory);
    if let Err(error) = fs::remove_dir_all(directory) {
        eprintln!("awty-testkit: cannot remove {}: {error}", directory.display());
    }
}

/// Ends servers by SIGQUIT, so that they can free their shared memory.
fn end_all(directory: &Path) {
    let is_server = |pid: &Pid| {
        let name = fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero())).unwrap_or_default();
        name.trim() == "postgres"
    };
    let (servers, others): (Vec<Pid>, Vec<Pid>) = processes_below(directory).into_iter().partition(is_server);
    let signals = [(others, Signal::KILL), (servers, Signal::QUIT)];
    for (pid, signal) in signals.into_iter().flat_map(|(pids, signal)| pids.into_iter().map(move |pid| (pid, signal))) {
        let _ = kill_process(pid, signal);
    }
    let gone = || match processes_below(directory) {
        rest if rest.is_empty() => Ok(()),
        rest => Err(format!("{rest:?}")),
    };
    if poll("the processes to be gone", Duration::from_secs(15), gone).is_err() {
        for pid in processes_below(directory) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = poll("the processes to be gone", Duration::from_secs(15), gone);
    }
}

pub(crate) fn await_end(data: &Path, within: Duration) -> Result<(), String> {
    poll("the server's processes to be gone", within, || match processes(data) {
        rest if rest.is_empty() => Ok(()),
        rest => Err(format!("processes {rest:?}")),
    })
}

pub fn sweep() {
    let Ok(entries) = fs::read_dir(home()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        let Some(owner) = rest.split('-').next().and_then(|pid| pid.parse::<u32>().ok()) else { continue };
        let ours = entry.metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == account::uid());
        // A zombie, whose command line is empty, counts as ended.
        let runs = fs::read(format!("/proc/{owner}/cmdline")).is_ok_and(|line| !line.is_empty());
        if ours && !runs {
            remove(&entry.path());
        }
    }
}
