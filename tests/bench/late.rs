use crate::options::Options;
use crate::progress::say;
use crate::results::{Outcome, Wanted, readable};
use crate::shop::{Shop, one, sleep_until};
use crate::stats::percentile;
use chrono::{DateTime, Utc};

const CHECKS: u32 = 1000;
/// Seconds between two due times: long enough for an idle worker to exit, so that a new worker must start each time.
const COLD: u32 = 4;

pub fn late(options: &Options) -> Outcome {
    let mut outcome = Outcome::new("late");
    let shop = Shop::open(&[]);
    let warm = options.size(25, 200);
    let cold = options.size(8, 200);
    for (name, slots, apart, first) in [("warm", warm, 1, 10.0), ("cold", cold, COLD, 40.0)] {
        say(&format!("{name}: {slots} slots of {CHECKS} checks, every {apart} s"));
        let lateness = measure(&shop, slots, apart);
        let slots = lateness.len();
        for (which, wanted) in [(0, Wanted::AtMost(first)), (1, Wanted::Nothing)] {
            let all: Vec<f64> = lateness.iter().map(|pair| pair[which]).collect();
            let [half, most] = [50.0, 99.0].map(|percent| percentile(&all, percent));
            let run = ["first run".to_owned(), format!("last run of {CHECKS}")][which].clone();
            let what = format!("{run} of a slot, {name}, p99");
            let detail = format!("p50 {} ms; {slots} slots", readable(half));
            outcome.value([&what, "the slot's boundary"], most, "ms", wanted, detail);
        }
    }
    outcome
        .note("a server is warm when a worker is connected from the slot before, cold when none has been for seconds.");
    outcome
}

fn measure(shop: &Shop, slots: u32, apart: u32) -> Vec<[f64; 2]> {
    shop.tidy("postgres");
    let mut client = shop.client("postgres");
    let sql = "SELECT max(awty.schedule('slot ' || s, n::text, 'one', at => begin + s * $2::int * interval '1 s')),
                      begin + $1::int * $2 * interval '1 s'
               FROM (SELECT awty.next_slot(clock_timestamp() + ($1 * $3::int / 8000 + 1) * interval '1 s') AS begin) AS b,
                    generate_series(0, $1) AS s, generate_series(1, $3) AS n GROUP BY begin";
    let row = one(&mut client, sql, &[&(slots as i32), &(apart as i32), &(CHECKS as i32)]);
    let (last, end): (i64, DateTime<Utc>) = (row.get(0), row.get(1));
    client.batch_execute("ANALYZE awty.future_job").unwrap();
    sleep_until(&mut client, end);
    shop.await_done(&mut client, &[last]);
    // Omits the first due time, because a worker may be running at this time.
    let sql =
        "SELECT extract(epoch FROM min(lateness))::float8 * 1000, extract(epoch FROM max(lateness))::float8 * 1000
               FROM awty.future_job_history
               WHERE next_check_at > (SELECT min(next_check_at) FROM awty.future_job_history)
               GROUP BY next_check_at HAVING count(*) = $1::int";
    let rows = client.query(sql, &[&(CHECKS as i32)]).unwrap();
    assert_eq!(rows.len(), slots as usize, "slots with all of their checks");
    rows.iter().map(|row| [row.get(0), row.get(1)]).collect()
}
