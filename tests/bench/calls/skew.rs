//! Measures the same schedules with and without two bad targets. The first target never answers. The second target is
//! blocked, and has a large backlog.

use crate::calls::place::{Place, pass};
use crate::calls::{Options, lateness};
use crate::progress::say;
use crate::results::{Outcome, Wanted};
use crate::stats::Pairs;

const TARGETS: usize = 100;
const BLOCKED: i32 = 100_000;
/// Seconds of warm-up, during which the gateway calls each schedule once.
const WARM: f64 = 12.0;
const WANTED: Wanted = Wanted::AtMost(1.5);

fn run(options: &Options, with_bad_ones: bool) -> (f64, f64, usize) {
    let mut place = Place::open();
    let well: Vec<String> = (1..TARGETS).map(|_| place.receiver.listen(false)).collect();
    place.schedule(&well, "/", options.schedules, "10 s");
    if with_bad_ones {
        let hanging = place.receiver.listen(true);
        let share = options.schedules / (TARGETS as u32 - 1) + 1;
        place.schedule(&[hanging], "/hang/", share, "10 s");
        let sql = "SELECT awty.alter_target('http.app', 'http://blocked.example', blocked_until => 'infinity')";
        place.cluster.execute("postgres", &[sql]);
        let fill = "SELECT count(*) FROM (SELECT awty.schedule_many('http://blocked.example', array_agg('/' || n), 'http.app', after => '0')
            FROM generate_series(1, $1) AS n GROUP BY n / 1000) AS s";
        place.app().execute(fill, &[&BLOCKED]).unwrap();
    }
    place.cluster.execute("postgres", &["ANALYZE", "CHECKPOINT"]);
    place.start_gateway();
    pass(WARM);
    let from = place.receiver.since(0).len();
    pass(f64::from(options.minutes) * 60.0);
    let arrivals = place.receiver.since(from);
    place.end_gateway();
    let [p50, p99, _] = lateness(&arrivals);
    (p50, p99, arrivals.len())
}

pub fn skew(options: &Options) -> Result<Outcome, String> {
    let mut outcome = Outcome::new("skew");
    let mut pairs = Pairs { ours: Vec::new(), theirs: Vec::new() };
    for round in 1..=options.rounds {
        let (bad, good) = (run(options, true), run(options, false));
        pairs.ours.push(bad.1);
        pairs.theirs.push(good.1);
        let row = |(p50, p99, calls): (f64, f64, usize)| {
            format!("p50 {:.1} ms, p99 {:.1} ms, {calls} calls", p50 * 1e3, p99 * 1e3)
        };
        outcome.note(format!("round {round}: with the bad ones {}; without {}", row(bad), row(good)));
        say(&outcome.notes[outcome.notes.len() - 1]);
    }
    outcome.what = Some(format!(
        "{} schedules every 10 s over {} targets that answer at once, measured for {} minutes after a warm-up; beside them, in every other \
         run, as many schedules of one more target that never answers (timeout 30 s), and a blocked target with {BLOCKED} due checks. \
         The receiver stamps arrivals; lateness is arrival minus slot.",
        options.schedules,
        TARGETS - 1,
        options.minutes
    ));
    outcome.ratio(["p99 lateness of the others", "the twin"], &pairs, WANTED, String::new());
    Ok(outcome)
}
