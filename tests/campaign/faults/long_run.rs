//! Crashes the server during a very long run.

use super::processes::{self, IN_RUN};
use crate::load::{DATABASES, ERIN, ROLES, Shared, explain};
use crate::random::Random;
use awty_testkit::postgres::Error;
use awty_testkit::{Cluster, poll};
use std::time::{Duration, Instant};

/// Duration of the long run in seconds. All overdue checks of the other roles must run before the long run ends.
const SECONDS: u64 = 40;
/// Duration of the other roles' runs in seconds. The runs are short, because after a crash awty repeats the interrupted
/// runs one by one, and all must end before the long run ends.
const OF_OTHERS: f64 = 1.0;
const TO_BEGIN: Duration = Duration::from_secs(8);
const TO_END: Duration = Duration::from_secs(20);

const OVERDUE: &str = "SELECT count(*), min(left(f::text, 300)) FROM awty.future_job AS f
    WHERE NOT held AND next_check_at <= $1 AND NOT starts_with(job, $2)";
const HAS_RUN: &str = "SELECT EXISTS (SELECT FROM awty.future_job_history WHERE entity_name = 'long' AND entity_key = $1 AND starts_with(job, $2))";
const NAPPING: &str = "SELECT count(*) FILTER (WHERE usename = $1), count(*) FILTER (WHERE usename <> $1)
    FROM pg_stat_activity WHERE backend_type = 'awty worker' AND wait_event = 'PgSleep' AND datname = current_database()";

pub fn beside_crash(cluster: &Cluster, shared: &Shared, random: &mut Random) -> bool {
    let database = *random.pick(&DATABASES);
    let key = random.below(u64::MAX).to_string();
    let Ok(since) = begin(shared, database, &key) else { return false };
    // Kills a worker of a role other than erin, so that the server crashes. Erin's long run is interrupted, and is not
    // the cause of the crash.
    if !processes::kill(cluster, shared, &format!("{IN_RUN} AND datname = '{database}' AND usename <> '{ERIN}'")) {
        end(shared, database, &key);
        return false;
    }
    let crashed = Instant::now();
    let allowed = Duration::from_secs(2 * SECONDS);
    for other in DATABASES {
        let waited = poll("the others' checks", allowed.saturating_sub(crashed.elapsed()), || {
            let ask = |database| shared.connect(database, "postgres").map_err(explain);
            let has_run: bool = ask(database)?.query_one(HAS_RUN, &[&key, &ERIN]).map_err(explain)?.get(0);
            let row = ask(other)?.query_one(OVERDUE, &[&since, &ERIN]).map_err(explain)?;
            let overdue: i64 = row.get(0);
            let seen = format!("{overdue} overdue, one of them {:?}", row.get::<_, Option<String>>(1));
            match overdue {
                0 => Ok(None),
                _ if has_run => Ok(Some(seen)),
                _ => Err(seen),
            }
        });
        if let Some(what) = waited.unwrap_or_else(Some) {
            shared.saw("P7", format!("waited for {ERIN}'s run of {SECONDS} s, after a crash, in {other}: {what}"));
        }
    }
    shared.time("others caught up beside a long run, after a crash", crashed);
    end(shared, database, &key);
    true
}

fn begin(shared: &Shared, database: &str, key: &str) -> Result<crate::checker::Time, String> {
    let schedule = |role: &str, job: &str, nap: f64| -> Result<(), Error> {
        let args = serde_json::json!({"act": "ok", "nap": nap, "again": 0});
        let sql = "SELECT camp.schedule('long', $1, $2, 0, $3, 'replace')";
        let job = format!("{role}_{job}");
        shared.connect(database, role)?.execute(sql, &[&key, &job, &args]).map(drop)
    };
    schedule(ERIN, "long", SECONDS as f64).map_err(explain)?;
    for role in ROLES {
        schedule(role, "watch", OF_OTHERS).map_err(explain)?;
    }
    let begun = poll("the runs to begin", TO_BEGIN, || {
        let mut client = shared.connect(database, "postgres").map_err(explain)?;
        let row = client.query_one(NAPPING, &[&ERIN]).map_err(explain)?;
        let (long, others): (i64, i64) = (row.get(0), row.get(1));
        if long == 0 || others == 0 {
            return Err(format!("{long} and {others}"));
        }
        client.query_one("SELECT clock_timestamp()", &[]).map(|row| row.get(0)).map_err(explain)
    });
    if begun.is_err() {
        end(shared, database, key);
    }
    begun
}

fn end(shared: &Shared, database: &str, key: &str) {
    let running = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE backend_type = 'awty worker'
                   AND wait_event = 'PgSleep' AND datname = current_database() AND usename = $1";
    let ended = poll("the long run's end", TO_END, || {
        let mut owner = shared.connect(database, ERIN).map_err(explain)?;
        owner.execute("SELECT awty.cancel('long', $1)", &[&key]).map_err(explain)?;
        let mut admin = shared.connect(database, "postgres").map_err(explain)?;
        match admin.query_one(running, &[&ERIN]).map_err(explain)?.get(0) {
            0_i64 => Ok(()),
            runs => Err(format!("{runs} runs of {ERIN}'s")),
        }
    });
    if let Err(what) = ended {
        shared.saw("P8", what);
    }
}
