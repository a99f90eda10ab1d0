//! Measures the CPU time of awty's launcher, and of the server's processes that have ended. Only processes of awty end,
//! because autovacuum is off and this program stays connected.

use crate::options::Options;
use crate::pending::fill;
use crate::progress::say;
use crate::results::{Outcome, Wanted, readable};
use crate::shop::{Shop, one, wal_position};
use awty_testkit::postgres::Client;
use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

const TICKS_PER_SECOND: f64 = 100.0;
const LASTING: Duration = Duration::from_secs(3);

pub fn idle(options: &Options) -> Outcome {
    let mut outcome = Outcome::new("idle");
    let shop =
        Shop::open(&[("awty.slot", "1min"), ("autovacuum", "off"), ("wal_level", "minimal"), ("max_wal_senders", "0")]);
    let n = options.size(1_000_000, 1_000_000);
    fill(&shop, "postgres", n);
    // Schedules a few checks by `awty.schedule()`, because the launcher does not notice the rows that `fill` writes.
    let hint = "SELECT awty.schedule('orders', n::text, 'one', after => '1 day') FROM generate_series(1, 100) AS n";
    shop.cluster.execute("postgres", &[hint, "CHECKPOINT"]);
    let mut client = shop.client("postgres");
    let launcher: i32 =
        one(&mut client, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'awty launcher'", &[]).get(0);
    let postmaster = shop.cluster.postmaster_pid();
    await_quiet(&mut client);

    let seconds = options.size(60, 300);
    say(&format!("idle for {seconds} s"));
    let used = || times(launcher)[0] + times(postmaster)[1];
    let (wal, cpu, began) = (wal_position(&mut client), used(), Instant::now());
    let mut seen: HashMap<i32, [Instant; 2]> = HashMap::new();
    while began.elapsed() < Duration::from_secs(seconds.into()) {
        for pid in connected(&mut client) {
            let now = Instant::now();
            seen.entry(pid).or_insert([now, now])[1] = now;
        }
        client.batch_execute("SELECT pg_sleep(0.2)").unwrap();
    }
    let percent = (used() - cpu) / began.elapsed().as_secs_f64() * 100.0;
    let wal = wal_position(&mut client) - wal;
    let lasting = seen.values().filter(|[first, last]| *last - *first > LASTING).count();

    let over = format!("nothing due for {seconds} s, {} checks due tomorrow", readable(f64::from(n)));
    let detail = format!("in steps of {} %", readable(100.0 / TICKS_PER_SECOND / f64::from(seconds)));
    outcome.value(["CPU of all of awty's processes", &over], percent, "% of a core", Wanted::AtMost(0.05), detail);
    let detail = format!("{} shorter ones were seen", seen.len() - lasting);
    outcome.value(["lasting connections", &over], lasting as f64, "", Wanted::AtMost(0.0), detail);
    outcome.value(["WAL written", &over], wal, "bytes", Wanted::AtMost(0.0), String::new());
    outcome
}

fn await_quiet(client: &mut Client) {
    for _ in 0..30 {
        let before = wal_position(client);
        client.batch_execute("SELECT pg_sleep(2)").unwrap();
        if wal_position(client) == before && connected(client).is_empty() {
            return;
        }
    }
    say("the server has not become quiet within a minute");
}

fn connected(client: &mut Client) -> Vec<i32> {
    let sql = "SELECT pid FROM pg_stat_activity WHERE starts_with(backend_type, 'awty') AND datid IS NOT NULL";
    client.query(sql, &[]).unwrap().iter().map(|row| row.get(0)).collect()
}

fn times(pid: i32) -> [f64; 2] {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // Counts the fields after the process name, because the name may contain any characters. `utime` is field 14.
    let fields: Vec<f64> = stat[stat.rfind(')').unwrap() + 1..]
        .split_whitespace()
        .skip(11)
        .take(4)
        .map(|ticks| ticks.parse::<f64>().unwrap() / TICKS_PER_SECOND)
        .collect();
    [fields[0] + fields[1], fields[2] + fields[3]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_works_is_seen_to_work() {
        let me = std::process::id() as i32;
        let before = times(me)[0];
        let began = Instant::now();
        while times(me)[0] < before + 0.05 {
            assert!(began.elapsed() < Duration::from_secs(60), "the time of this process stands still");
        }
    }
}
