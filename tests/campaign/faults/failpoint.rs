//! Makes a process of awty fail at a step in its code (`src/failpoint/steps.rs`). The next process that reaches the
//! step gets an ERROR, SIGTERM or SIGKILL.
//!
//! `scripts/campaign` builds a library with failpoints and sets AWTY_FAILPOINTS.

#[path = "../../../src/failpoint/steps.rs"]
mod steps;

use super::look::catch;
use super::processes::{self, IN_RUN};
use crate::load::{DATABASES, ROLES, Shared};
use crate::random::Random;
use awty_testkit::poll;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;
use steps::{STEPS, Step};

const TO_COME_BY: Duration = Duration::from_secs(8);
const ACTIONS: [&str; 3] = ["error", "term", "kill"];
const ERROR: usize = 0;
const ERRORS_AT_ONCE: usize = 8;

/// For each step and action: how often a process failed at the step as planned, and how often no process reached the
/// step in time.
static CROSSED: Mutex<BTreeMap<(usize, usize), [u32; 2]>> = Mutex::new(BTreeMap::new());

pub fn are_built_in() -> bool {
    std::env::var_os("AWTY_FAILPOINTS").is_some()
}

/// Arms several failpoints with an ERROR, or only one failpoint with SIGTERM or SIGKILL, because a signal may stop the
/// whole server.
pub fn strike(shared: &Shared, random: &mut Random) -> bool {
    let first = choose(random, |_| true).expect("some step");
    let mut armed = vec![first];
    while first.1 == ERROR && armed.len() < ERRORS_AT_ONCE {
        armed.extend(choose(random, |place| place.1 == ERROR && !armed.contains(&place)));
    }
    shared.note_struck();
    armed.retain(|(step, action)| arm(shared, &STEPS[*step], ACTIONS[*action]));
    armed.iter().fold(false, |any, (step, action)| {
        let came_about = crossed(shared, &STEPS[*step]);
        CROSSED.lock().unwrap().entry((*step, *action)).or_default()[usize::from(!came_about)] += 1;
        any | came_about
    })
}

fn choose(random: &mut Random, may_be: impl Fn((usize, usize)) -> bool) -> Option<(usize, usize)> {
    let crossed = CROSSED.lock().unwrap();
    let tried = |place| crossed.get(&place).map_or(0, |[times, missed]| times + missed);
    let all = (0..STEPS.len()).flat_map(|step| (0..ACTIONS.len()).map(move |action| (step, action)));
    let possible = all.filter(|&(step, action)| (action != ERROR || STEPS[step].may_raise) && may_be((step, action)));
    let possible: Vec<_> = possible.collect();
    let least = possible.iter().copied().map(tried).min()?;
    let choices: Vec<_> = possible.into_iter().filter(|place| tried(*place) == least).collect();
    Some(*random.pick(&choices))
}

fn file(step: &Step) -> String {
    format!("awty_failpoints/{}", step.name)
}

fn run(shared: &Shared, command: &str) -> Result<(), String> {
    // Runs `cat`, because COPY fails if the program does not read COPY's output.
    let sql = format!("COPY (SELECT) TO PROGRAM $$cat >/dev/null; {command}$$");
    let mut client = shared.connect("postgres", "postgres").map_err(|error| error.to_string())?;
    client.batch_execute(&sql).map_err(|error| error.to_string())
}

fn arm(shared: &Shared, step: &Step, action: &str) -> bool {
    let file = file(step);
    run(shared, &format!("mkdir -p awty_failpoints && printf {action} > {file}.new && mv {file}.new {file}")).is_ok()
}

fn crossed(shared: &Shared, step: &Step) -> bool {
    let file = file(step);
    let taken = poll("somebody to come by", TO_COME_BY, || {
        let mut client = shared.connect("postgres", "postgres").map_err(|error| error.to_string())?;
        let sql = "SELECT (pg_stat_file($1, true)).size IS NULL";
        let mut is_gone =
            || client.query_one(sql, &[&file]).map(|row| row.get::<_, bool>(0)).map_err(|error| error.to_string());
        if is_gone()? {
            return Ok(());
        }
        provoke(shared, step.name);
        if is_gone()? { Ok(()) } else { Err("still there".into()) }
    });
    if taken.is_err() {
        let _ = poll("the file to be taken back", TO_COME_BY, || run(shared, &format!("rm -f {file}")));
    }
    taken.is_ok()
}

fn provoke(shared: &Shared, step: &str) {
    if step.starts_with("maintainer") {
        let owner = shared.connect(DATABASES[0], ROLES[0]);
        let _ = owner.and_then(|mut owner| owner.batch_execute("SELECT awty.alter('alice_set', max_checks => 5)"));
    } else if step.starts_with("abandoned") {
        let some_run = format!("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE {IN_RUN})");
        if catch::<bool>(shared, &some_run) == Some(true) {
            processes::signal(shared, IN_RUN, "pg_terminate_backend");
        }
    } else if ["worker.leaving", "in_flight.cleared", "worker.left", "worker.caught_up", "worker.flushed"]
        .contains(&step)
    {
        let _ = enable(shared, "off");
        std::thread::park_timeout(Duration::from_millis(200));
        let _ = poll("awty to be enabled", TO_COME_BY, || enable(shared, "on"));
        std::thread::park_timeout(Duration::from_millis(200));
    }
}

fn enable(shared: &Shared, value: &str) -> Result<(), String> {
    let mut client = shared.connect("postgres", "postgres").map_err(|error| error.to_string())?;
    let set = format!("ALTER SYSTEM SET awty.enabled = {value}");
    let reloaded = client.batch_execute(&set).and_then(|()| client.batch_execute("SELECT pg_reload_conf()"));
    reloaded.map_err(|error| error.to_string())
}

pub fn summary() -> Vec<String> {
    let crossed = CROSSED.lock().unwrap();
    if crossed.is_empty() {
        return Vec::new();
    }
    let count = |step, action| match crossed.get(&(step, action)) {
        None if action == ERROR && !STEPS[step].may_raise => "-".into(),
        None => "0".into(),
        Some([times, 0]) => times.to_string(),
        Some([times, missed]) => format!("{times} ({missed} missed)"),
    };
    let line = |(step, known): (usize, &Step)| {
        let [error, term, kill] = [0, 1, 2].map(|action| count(step, action));
        format!("| {} | {error} | {term} | {kill} |", known.name)
    };
    let head = ["| step | ERROR | SIGTERM | SIGKILL |", "|---|---|---|---|"].map(String::from);
    head.into_iter().chain(STEPS.iter().enumerate().map(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    fn steps_in(directory: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                steps_in(&entry, found);
                continue;
            }
            let text = fs::read_to_string(&entry).unwrap();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            for line in code {
                let places = line.split("failpoint!(\"").skip(1).chain(line.split("cross(\"").skip(1));
                found.extend(places.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
            }
        }
    }

    #[test]
    fn the_list_of_steps_is_that_of_the_code() {
        let mut found = BTreeSet::new();
        steps_in(&awty_testkit::checkout().join("src"), &mut found);
        assert_eq!(found, STEPS.iter().map(|step| step.name.to_owned()).collect());
    }
}
