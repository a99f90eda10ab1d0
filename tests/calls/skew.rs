//! Twin runs: the same schedules with and without a hanging target and a blocked target with a large backlog.

use crate::page::Page;
use crate::place::{Place, pass};
use crate::{Options, percentile};

/// Number of targets. One of them hangs.
const TARGETS: usize = 100;
/// Due checks of the blocked target.
const BLOCKED: i32 = 100_000;
/// Time before measuring, in which each schedule is called once.
const WARM: f64 = 12.0;
/// Allowed lateness of the other targets, relative to the twin's.
const WANTED: f64 = 1.5;

/// Returns p50 and p99 of the lateness of calls to sound targets, and the number of calls.
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
    let mut lateness: Vec<f64> = arrivals.iter().map(|arrival| arrival.lateness).collect();
    lateness.sort_by(f64::total_cmp);
    (percentile(&lateness, 50.0), percentile(&lateness, 99.0), lateness.len())
}

pub fn skew(options: &Options) -> Result<(), String> {
    let (mut ratios, mut rows) = (Vec::new(), Vec::new());
    for round in 1..=options.rounds {
        let (bad, good) = (run(options, true), run(options, false));
        let ratio = bad.1 / good.1;
        println!("{round} of {}: with {bad:?}, without {good:?}, {ratio:.2} ×", options.rounds);
        let row = |(p50, p99, calls): (f64, f64, usize)| {
            format!("p50 {:.1} ms, p99 {:.1} ms, {calls} calls", p50 * 1e3, p99 * 1e3)
        };
        rows.push(("with the bad ones", row(bad)));
        rows.push(("without", row(good)));
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    let [least, most] = [ratios[0], ratios[ratios.len() - 1]];
    let median = percentile(&ratios, 50.0);
    let verdict = if median <= WANTED { "kept" } else { "missed" };
    let mut figures =
        vec![("p99 lateness of the others, by the twin's", format!("{median:.2} × ({least:.2} to {most:.2})"))];
    figures.push(("goal", format!("at most {WANTED} ×: {verdict}")));
    figures.extend(rows);
    let page = Page {
        name: "gateway-skew",
        title: "Endpoints that hang delay no others",
        what: format!(
            "{} schedules every 10 s over {} targets that answer at once, measured for {} minutes after a warm-up; beside them, in every other \
             run, as many schedules of one more target that never answers (timeout 30 s), and a blocked target with {BLOCKED} due checks. \
             The receiver stamps arrivals; lateness is arrival minus slot.",
            options.schedules,
            TARGETS - 1,
            options.minutes
        ),
        figures,
        charts: Vec::new(),
    };
    page.write(options)
}
