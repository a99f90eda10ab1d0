use super::compare::{add, milliseconds};
use super::field::Field;
use super::run::Calls;
use super::ways;
use crate::calls::Options;
use crate::results::{Outcome, Wanted};

const A_SECOND: u32 = 1_000;
const WANTED: Wanted = Wanted::AtMost(0.5);

fn loads(options: &Options) -> [Calls; 2] {
    let all = options.schedules;
    [Calls { count: all, a_second: Some(A_SECOND) }, Calls { count: all / 2, a_second: Some(all / 2) }]
}

pub fn figures(
    options: &Options,
    field: &mut Field,
    loops: Option<[u32; 2]>,
    outcome: &mut Outcome,
) -> Result<(), String> {
    let names = ["p99 lateness, 1,000 calls due in each second", "p99 lateness, all calls due in one second"];
    let mut all_early = [0; 2];
    for (calls, name) in loads(options).iter().zip(names) {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 1..=options.rounds {
            let (late, early) = ways::gateway(field, calls)?.lateness(calls.each_second());
            ours.push(late);
            all_early[0] += early;
            if let Some(loops) = loops {
                let (late, early) = ways::pg_boss(field, calls, loops)?.lateness(calls.each_second());
                theirs.push(late);
                all_early[1] += early;
            }
            println!("{round} of {}: {name}: {:?}, pg-boss {:?} s", options.rounds, ours.last(), theirs.last());
        }
        let more = format!("; {} calls a round", calls.count);
        add(outcome, [name, "pg-boss"], [&ours, &theirs], WANTED, milliseconds, &more);
    }
    let [ours, theirs] = all_early;
    let beside = loops.map(|_| format!("{theirs} of pg-boss")).unwrap_or_default();
    let name = ["calls of these that arrived before they were due", ""];
    outcome.value(name, ours as f64, "", Wanted::AtMost(0.0), beside);
    Ok(())
}
