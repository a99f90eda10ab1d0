use crate::calls::Options;
use crate::calls::place::{Place, pass};
use crate::results::{Outcome, Wanted};
use awty_testkit::{PATIENCE, poll};

const HANGING: u32 = 10_000;
const ORIGINS: u32 = 10;
const KIB_EACH: Wanted = Wanted::AtMost(30.0);
const STATEMENTS_A_SLOT: Wanted = Wanted::AtMost(2.0);
const SETTLE: f64 = 5.0;

pub fn figures(options: &Options, outcome: &mut Outcome) -> Result<(), String> {
    let (before, after) = memory()?;
    let each = after.saturating_sub(before) as f64 / f64::from(HANGING);
    let detail = format!("{HANGING} at once; the gateway has {before} KiB without them, {after} KiB with them");
    outcome.value(["memory of a call that hangs", ""], each, "KiB", KIB_EACH, detail);
    let (statements, written, slots) = idle(options)?;
    let detail = format!(
        "average over {slots} slots of a second, with the look at the jobs every 30 s; {written} bytes of write-ahead log"
    );
    let name = ["statements of a slot in which nothing is due", ""];
    outcome.value(name, statements as f64 / slots, "", STATEMENTS_A_SLOT, detail);
    Ok(())
}

fn memory() -> Result<(u64, u64), String> {
    let mut place = Place::open();
    let origins: Vec<String> = (0..ORIGINS).map(|_| place.receiver.listen(true)).collect();
    for origin in &origins {
        let each = HANGING / ORIGINS;
        let sql = format!("SELECT awty.alter_target('http.app', '{origin}', concurrency => {each})");
        place.cluster.execute("postgres", &[&sql]);
    }
    place.start_gateway_with(&["--max-in-flight", &HANGING.to_string(), "--timeout", "10 min"]);
    pass(SETTLE);
    let before = place.memory();
    let sql = "SELECT count(awty_http.send(($1::text[])[n % cardinality($1) + 1] || '/' || n, jsonb_build_object('order', n)))
        FROM generate_series(1, $2::int) AS n";
    place.app().execute(sql, &[&origins, &(HANGING as i32)]).unwrap();
    poll("all calls to hang", 4 * PATIENCE, || match place.receiver.hanging() {
        all if all >= HANGING as usize => Ok(()),
        some => Err(format!("{some} of {HANGING}")),
    })?;
    pass(SETTLE);
    Ok((before, place.memory()))
}

fn idle(options: &Options) -> Result<(i64, i64, f64), String> {
    let mut place = Place::open_with(&[("shared_preload_libraries", "awty,pg_stat_statements")]);
    let origin = place.receiver.listen(false);
    place.cluster.execute("postgres", &["CREATE EXTENSION pg_stat_statements"]);
    place.app().execute("SELECT awty_http.send($1, after => '1 day')", &[&format!("{origin}/1")]).unwrap();
    place.start_gateway();
    pass(SETTLE);
    let slots = f64::from(options.minutes) * 60.0;
    place.cluster.execute("postgres", &["SELECT pg_stat_statements_reset()"]);
    pass(slots);
    let sql = "SELECT coalesce(sum(calls), 0)::bigint, coalesce(sum(wal_bytes), 0)::bigint FROM pg_stat_statements
        WHERE userid = 'gateway'::regrole";
    let row = place.cluster.superuser("postgres").query_one(sql, &[]).map_err(|error| error.to_string())?;
    place.end_gateway();
    Ok((row.get(0), row.get(1), slots))
}
