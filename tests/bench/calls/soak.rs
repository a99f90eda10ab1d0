use crate::calls::place::{Place, pass};
use crate::calls::receiver::Arrival;
use crate::calls::{Options, lateness};
use crate::results::{Chart, Outcome, Wanted};
use awty_testkit::postgres::Client;
use chrono::Utc;
use std::collections::BTreeMap;
use std::time::Instant;

const TARGETS: usize = 100;
const SAMPLES: u32 = 360;
const SHORTEST: u32 = 5;
const MINUTE: i64 = 60_000_000;

struct Sample {
    minutes: f64,
    calls: usize,
    p50: f64,
    p99: f64,
    most: f64,
    memory: f64,
    database: f64,
    wal: f64,
    overdue: f64,
}

const SIZES: &str = "SELECT pg_database_size(current_database())::float8 / 1048576,
    pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 / 1048576, (SELECT overdue FROM awty.job_status WHERE job = 'http.app')::float8";

fn sample(place: &Place, client: &mut Client, minutes: f64, arrivals: &[Arrival]) -> Sample {
    let [p50, p99, most] = lateness(arrivals);
    let sizes = client.query_one(SIZES, &[]).unwrap();
    Sample {
        minutes,
        calls: arrivals.len(),
        p50,
        p99,
        most,
        memory: place.memory() as f64 / 1024.0,
        database: sizes.get(0),
        wal: sizes.get(1),
        overdue: sizes.get(2),
    }
}

/// Ignores calls that were due before `from`, because the gateway was still catching up with overdue calls.
fn findings(arrivals: &[Arrival], schedules: u32, from: i64) -> Vec<String> {
    let mut slots: BTreeMap<u32, BTreeMap<i64, (u64, u32)>> = BTreeMap::new();
    let mut found = Vec::new();
    for arrival in arrivals.iter().filter(|arrival| arrival.slot >= from) {
        let known = slots.entry(arrival.schedule).or_default().entry(arrival.slot).or_insert((arrival.key, 0));
        known.1 += 1;
        if known.0 != arrival.key {
            found.push(format!("schedule {} has two keys for one slot", arrival.schedule));
        }
    }
    if slots.len() != schedules as usize {
        found.push(format!("{} of {schedules} schedules were called", slots.len()));
    }
    for (schedule, slots) in &slots {
        let times: Vec<i64> = slots.keys().copied().collect();
        let gaps = times.windows(2).filter(|pair| pair[1] - pair[0] != MINUTE).count();
        let twice = slots.values().filter(|(_, times)| *times > 1).count();
        if gaps + twice > 0 {
            found.push(format!("schedule {schedule}: {gaps} gaps, {twice} slots called twice"));
        }
    }
    found
}

pub fn soak(options: &Options) -> Result<Outcome, String> {
    let mut place = Place::open();
    let origins: Vec<String> = (0..TARGETS).map(|_| place.receiver.listen(false)).collect();
    println!("{} schedules are made", options.schedules);
    place.schedule(&origins, "/", options.schedules, "1 min");
    let mut client = place.cluster.superuser("postgres");
    let before: f64 = client.query_one(SIZES, &[]).unwrap().get(1);
    place.start_gateway();
    let step = f64::from((options.minutes * 60 / SAMPLES).max(SHORTEST));
    loop {
        let overdue: f64 = client.query_one(SIZES, &[]).unwrap().get(2);
        if overdue < f64::from(options.schedules) / 60.0 {
            break;
        }
        println!("{overdue} overdue at first");
        pass(step);
    }
    let (began, from) = (Instant::now(), Utc::now().timestamp_micros());
    let (mut seen, mut samples) = (place.receiver.since(0).len(), Vec::new());
    while began.elapsed().as_secs_f64() / 60.0 < f64::from(options.minutes) {
        pass(step);
        let arrivals = place.receiver.since(seen);
        seen += arrivals.len();
        let minutes = began.elapsed().as_secs_f64() / 60.0;
        let sample = sample(&place, &mut client, minutes, &arrivals);
        let Sample { calls, p50, p99, most, memory, overdue, .. } = &sample;
        println!(
            "{minutes:>5.1} min: {calls} calls, lateness {p50:.3} {p99:.3} {most:.3} s, {memory:.1} MiB, {overdue} overdue"
        );
        samples.push(sample);
    }
    place.end_gateway();
    let arrivals = place.receiver.since(0);
    let found = findings(&arrivals, options.schedules, from);
    let mut outcome = outcome(options, &samples, &arrivals, before, found.len());
    outcome.failure =
        (!found.is_empty()).then(|| format!("{} findings: {}", found.len(), found[..found.len().min(10)].join("; ")));
    Ok(outcome)
}

fn outcome(options: &Options, samples: &[Sample], arrivals: &[Arrival], wal_before: f64, found: usize) -> Outcome {
    let line = |of: fn(&Sample) -> f64| samples.iter().map(|one| (one.minutes, of(one))).collect::<Vec<_>>();
    let worst = |of: fn(&Sample) -> f64| samples.iter().map(of).fold(f64::NAN, f64::max) * 1e3;
    let wal = samples.last().map_or(f64::NAN, |last| last.wal) - wal_before;
    let mut outcome = Outcome::new("soak");
    outcome.what = Some(format!(
        "{} schedules, each once a minute with the jitter that they have by default, over {TARGETS} targets on the same machine, \
         called by one gateway for {} minutes. The receiver stamps arrivals; lateness is arrival minus slot.",
        options.schedules, options.minutes
    ));
    let mut add =
        |what: [&str; 2], value: f64, unit: &str, wanted| outcome.value(what, value, unit, wanted, String::new());
    let early = arrivals.iter().filter(|one| one.lateness < 0.0).count();
    add(["calls that arrived", ""], arrivals.len() as f64, "", Wanted::Nothing);
    let gaps = "schedules with a gap, or with a slot that was called twice, since all were called";
    add([gaps, ""], found as f64, "", Wanted::AtMost(0.0));
    add(["p50 of lateness in the worst sample", "the slot"], worst(|one| one.p50), "ms", Wanted::Nothing);
    add(["p99 of lateness in the worst sample", "the slot"], worst(|one| one.p99), "ms", Wanted::Nothing);
    add(["latest call", "the slot"], worst(|one| one.most), "ms", Wanted::Nothing);
    add(["calls before their slot", ""], early as f64, "", Wanted::AtMost(0.0));
    let mut span = |what: &str, wanted, of: fn(&Sample) -> f64| {
        let (first, last) = (samples.first().map_or(f64::NAN, of), samples.last().map_or(f64::NAN, of));
        let detail = format!("{first:.1} MiB at first, {last:.1} MiB at last");
        outcome.value([what, "at first"], last - first, "MiB more", wanted, detail);
    };
    span("memory of the gateway (RSS)", Wanted::Nothing, |one| one.memory);
    // Half of what an hour of 100,000 schedules needed before their calls stored fewer bytes.
    let half = 1_884.0 * f64::from(options.schedules) / 100_000.0 * f64::from(options.minutes) / 60.0;
    span("size of the database", Wanted::AtMost(half), |one| one.database);
    let each = wal * 1_048_576.0 / arrivals.len() as f64;
    outcome.value(["write-ahead log of a call", ""], each, "bytes", Wanted::AtMost(1_500.0), String::new());
    let lines = vec![("p50", line(|one| one.p50)), ("p99", line(|one| one.p99)), ("latest", line(|one| one.most))];
    outcome.charts = vec![
        Chart::over_time("soak-lateness", "Lateness of calls", "seconds", lines),
        Chart::over_time(
            "soak-memory",
            "Memory of the gateway",
            "MiB (RSS)",
            vec![("gateway", line(|one| one.memory))],
        ),
        Chart::over_time(
            "soak-sizes",
            "What grows",
            "MiB",
            vec![
                ("database", line(|one| one.database)),
                ("WAL written", samples.iter().map(|one| (one.minutes, one.wal - wal_before)).collect()),
            ],
        ),
    ];
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(schedule: u32, minute: i64, key: u64) -> Arrival {
        Arrival { schedule, at: 0, slot: minute * MINUTE + 7, key, lateness: 0.1 }
    }

    #[test]
    fn the_ledger_tells_gaps_doubles_and_keys() {
        let good = vec![arrival(1, 1, 11), arrival(2, 1, 21), arrival(1, 2, 12), arrival(2, 2, 22)];
        assert_eq!(findings(&good, 2, 0), Vec::<String>::new());
        let with = |more: Arrival| findings(&[good.clone(), vec![more]].concat(), 2, 0).join(";");
        assert!(with(arrival(1, 4, 13)).contains("1 gaps"));
        let late = [good.clone(), vec![arrival(1, -3, 9)]].concat();
        assert_eq!(findings(&late, 2, MINUTE), Vec::<String>::new());
        assert!(findings(&late, 2, -4 * MINUTE).join(";").contains("1 gaps"));
        assert!(with(arrival(1, 2, 12)).contains("1 slots called twice"));
        assert!(with(arrival(1, 2, 99)).contains("two keys"));
        assert!(findings(&good, 3, 0).join(";").contains("2 of 3"));
    }
}
