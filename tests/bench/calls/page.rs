//! `page` measures how long the first page of each view takes to load with very many rows. `page-twin` measures the
//! lateness of calls while people reload the page each second.

use crate::calls::place::{Place, pass};
use crate::calls::speed::lists::{ask, fill};
use crate::calls::{Options, lateness};
use crate::progress::say;
use crate::results::{Outcome, Wanted, readable};
use crate::stats::{Pairs, median, percentile};
use awty_testkit::{PATIENCE, poll};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const VIEWS: [&str; 17] = [
    "/",
    "/why",
    "/alerts",
    "/rules",
    "/jobs",
    "/schedules",
    "/schedules?state=paused",
    "/schedules?state=held",
    "/schedules?text=nowhere",
    "/slots",
    "/history",
    "/history?show=all",
    "/targets",
    "/tokens",
    "/entity?q=user",
    "/entity?name=user&key=7",
    "/entity?name=https%3A%2F%2Fh7.example.com&key=%2F7",
];
const REQUESTS: usize = 20;
const MEDIAN_MS: Wanted = Wanted::AtMost(200.0);
const WORST_MS: Wanted = Wanted::AtMost(1_000.0);
const ATTEMPTS: i32 = 100;

const TARGETS: usize = 100;
const PEOPLE: usize = 10;
/// Seconds of warm-up, during which the gateway calls each schedule once.
const WARM: f64 = 12.0;
const TWIN: Wanted = Wanted::AtMost(1.5);

fn open(place: &mut Place) -> (String, Vec<String>) {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let token = "SELECT awty_http.create_token('app', 'admin', '1 day')::text";
    let mut app = place.app();
    let cookie = |_| format!("Cookie: awty={}", app.query_one(token, &[]).unwrap().get::<_, String>(0));
    let cookies = (0..PEOPLE).map(cookie).collect::<Vec<_>>();
    place.start_gateway_at(&address, &[]);
    poll("the page", PATIENCE, || ask(&address, &cookies[0], "/why").map(drop)).unwrap();
    (address, cookies)
}

fn reload(address: &str, cookie: &str, first: usize, end: &AtomicBool) -> Result<Vec<f64>, String> {
    let mut times = Vec::new();
    for view in VIEWS.iter().cycle().skip(first) {
        if end.load(Ordering::Relaxed) {
            break;
        }
        let began = Instant::now();
        times.push(ask(address, cookie, view)?);
        pass((1.0 - began.elapsed().as_secs_f64()).max(0.0));
    }
    Ok(times)
}

fn run(options: &Options, with_people: bool) -> Result<([f64; 3], usize, Vec<f64>), String> {
    let mut place = Place::open();
    place.cluster.execute("postgres", &["ALTER ROLE gateway NOINHERIT"]);
    let targets: Vec<String> = (0..TARGETS).map(|_| place.receiver.listen(false)).collect();
    place.schedule(&targets, "/", options.schedules, "10 s");
    place.cluster.execute("postgres", &["ANALYZE", "CHECKPOINT"]);
    let (address, cookies) = open(&mut place);
    let people = if with_people { &cookies[..] } else { &[] };
    let end = AtomicBool::new(false);
    let (arrivals, pages) = std::thread::scope(|scope| {
        let mut readers = Vec::new();
        for (first, cookie) in people.iter().enumerate() {
            readers.push(scope.spawn({
                let (address, end) = (&address, &end);
                move || reload(address, cookie, first, end)
            }));
        }
        pass(WARM);
        let from = place.receiver.count();
        pass(f64::from(options.minutes) * 60.0);
        let arrivals = place.receiver.since(from);
        end.store(true, Ordering::Relaxed);
        let pages: Result<Vec<_>, String> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
        (arrivals, pages)
    });
    place.end_gateway();
    Ok((lateness(&arrivals), arrivals.len(), pages?.concat()))
}

pub fn page(options: &Options) -> Result<Outcome, String> {
    let mut outcome = Outcome::new("page");
    // Limits the WAL to about 1 GB, because the usual 8 GB would need more disk space than the benchmark's tables.
    let mut place = Place::open_with(&[
        ("wal_level", "minimal"),
        ("max_wal_senders", "0"),
        ("fsync", "off"),
        ("max_wal_size", "1GB"),
    ]);
    let mut postgres = place.cluster.superuser("postgres");
    postgres.batch_execute("ALTER ROLE gateway NOINHERIT; GRANT CREATE ON SCHEMA public TO app").unwrap();
    let schedules = i32::try_from(options.schedules).unwrap();
    fill(&mut postgres, 1, schedules, ATTEMPTS);
    let mut app = place.app();
    let rule = "CREATE TABLE orders (id bigint PRIMARY KEY, status text NOT NULL DEFAULT 'NEW', due timestamptz NOT NULL);
        SELECT awty.watch('orders', until => $$status <> 'NEW'$$, due => 'due', existing => 'all'); SELECT awty.register('mail')";
    app.batch_execute(rule).unwrap();
    let rows =
        "INSERT INTO orders SELECT n, 'NEW', now() + n * interval '5 s' FROM generate_series(-100, $1::int) AS n";
    app.execute(rows, &[&schedules]).unwrap();
    let checks = "SELECT count(*) FROM (SELECT awty.schedule_many('user', array_agg(n::text), 'mail', after => interval '1 day' * (1 + n / 1000 % 30))
        FROM generate_series(1, $1::int) AS n GROUP BY n / 1000) AS s";
    app.execute(checks, &[&(schedules * 8)]).unwrap();
    postgres.batch_execute("VACUUM ANALYZE").unwrap();
    let size = "SELECT (SELECT count(*) FROM awty.future_job), (SELECT count(*) FROM awty.attempt),
        (SELECT sum(pg_total_relation_size(i.relid))::int8 FROM pg_partition_tree('awty_internal.attempt') AS i)";
    let size = postgres.query_one(size, &[]).unwrap();
    let [checks, attempts, bytes] = [0, 1, 2].map(|place| size.get::<_, i64>(place));
    say(&format!("{checks} checks, {attempts} attempts of {} bytes each", bytes / attempts));
    let (address, cookies) = open(&mut place);
    let id = "SELECT awty_http_internal.id(number, 'https://h7.example.com/7') FROM awty_http.tenant";
    let schedule = format!("/schedules/{}", postgres.query_one(id, &[]).unwrap().get::<_, String>(0));
    let views = VIEWS.iter().map(|view| (*view, *view)).chain([("/schedules/{id}", schedule.as_str())]);
    for (view, path) in views {
        let times: Result<Vec<f64>, String> =
            (0..REQUESTS).map(|number| ask(&address, &cookies[number % PEOPLE], path)).collect();
        let times: Vec<f64> = times?.into_iter().map(|seconds| seconds * 1e3).collect();
        outcome.value([&format!("{view}, at the median"), ""], median(&times), "ms", MEDIAN_MS, String::new());
        outcome.value([&format!("{view}, at worst"), ""], percentile(&times, 100.0), "ms", WORST_MS, String::new());
    }
    place.end_gateway();
    outcome.what = Some(format!(
        "Page: the first page of each view, {REQUESTS} times, with {} schedules, {} checks and {} attempts.",
        readable(f64::from(schedules)),
        readable(checks as f64),
        readable(attempts as f64)
    ));
    Ok(outcome)
}

pub fn twin(options: &Options) -> Result<Outcome, String> {
    let mut outcome = Outcome::new("page-twin");
    let mut pairs = Pairs { ours: Vec::new(), theirs: Vec::new() };
    for round in 1..=options.rounds {
        let ((with, calls, pages), (without, ..)) = (run(options, true)?, run(options, false)?);
        pairs.ours.push(with[1]);
        pairs.theirs.push(without[1]);
        outcome.note(format!(
            "round {round}: p99 lateness {:.1} ms with people, {:.1} ms without, {calls} calls; {} pages, p50 {:.0} ms, at worst {:.0} ms",
            with[1] * 1e3,
            without[1] * 1e3,
            pages.len(),
            percentile(&pages, 50.0) * 1e3,
            percentile(&pages, 100.0) * 1e3
        ));
        say(&outcome.notes[outcome.notes.len() - 1]);
    }
    outcome.what = Some(format!(
        "Twin runs: {} schedules every 10 s over {TARGETS} targets that answer at once, measured for {} minutes after a warm-up; in every \
         other run, {PEOPLE} people load a view of the page each second.",
        options.schedules, options.minutes
    ));
    outcome.ratio(["p99 lateness with people", "the twin"], &pairs, TWIN, String::new());
    Ok(outcome)
}
