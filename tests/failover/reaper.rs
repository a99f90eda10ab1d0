use awty_testkit::Signal;
use rustix::process::{Pid, WaitOptions, kill_process, waitpid};
use std::sync::Once;
use std::time::Duration;

/// Reaps orphaned processes. PostgreSQL regards an unreaped process as running, and a container may have no init
/// process.
pub fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        #[cfg(target_os = "linux")]
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
        std::thread::spawn(|| {
            loop {
                collect();
                pass(Duration::from_millis(100));
            }
        });
    });
}

pub fn pass(time: Duration) {
    let until = std::time::Instant::now() + time;
    while let Some(left) = until.checked_duration_since(std::time::Instant::now()).filter(|left| !left.is_zero()) {
        std::thread::park_timeout(left);
    }
}

fn collect() {
    let Ok(entries) = std::fs::read_dir("/proc") else { return };
    for entry in entries.flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some(pid) = dead_server(&stat, std::process::id()) else { continue };
        let _ = Pid::from_raw(pid).map(|pid| waitpid(Some(pid), WaitOptions::NOHANG));
    }
}

fn dead_server(stat: &str, parent: u32) -> Option<i32> {
    let (head, tail) = stat.rsplit_once(')')?;
    let (pid, name) = head.split_once(" (")?;
    let mut fields = tail.split_whitespace();
    let is_dead = name == "postgres" && fields.next()? == "Z" && fields.next()?.parse() == Ok(parent);
    is_dead.then(|| pid.parse().ok())?
}

pub fn kill(pid: i32, signal: Signal) {
    let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, signal));
}

#[cfg(test)]
mod tests {
    use super::dead_server;

    #[test]
    fn only_dead_servers_of_this_parent_are_collected() {
        assert_eq!(dead_server("42 (postgres) Z 7 1 1", 7), Some(42));
        assert_eq!(dead_server("42 (postgres) S 7 1 1", 7), None);
        assert_eq!(dead_server("42 (postgres) Z 8 1 1", 7), None);
        assert_eq!(dead_server("42 (runuser) Z 7 1 1", 7), None);
    }
}
