use super::{MAX_CRASHES, TO_RECOVER};
use crate::load::{DATABASES, ROLES, Shared};
use crate::random::Random;
use awty_testkit::postgres::Client;
use awty_testkit::{Cluster, poll};
use std::time::Duration;

pub fn pause_and_resume(shared: &Shared, random: &mut Random) -> bool {
    let (database, role) = (*random.pick(&DATABASES), *random.pick(&ROLES));
    let Ok(mut client) = shared.connect(database, role) else { return false };
    let jobs = ["watch", "set", "again", "out", "once"].map(|job| format!("{role}_{job}"));
    let pause = |client: &mut Client, verb| {
        jobs.iter().try_for_each(|job| client.batch_execute(&format!("SELECT awty.{verb}('{job}')")))
    };
    if pause(&mut client, "pause").is_err() {
        return false;
    }
    std::thread::park_timeout(Duration::from_millis(500 + random.below(2000)));
    pause(&mut client, "resume").is_ok()
}

/// Schedules a check that crashes the server in each run. After awty has put the check on hold, repairs the job and
/// releases the check, which must then run.
pub fn crashing_job(cluster: &Cluster, shared: &Shared, random: &mut Random) -> bool {
    let (database, role) = (*random.pick(&DATABASES), *random.pick(&ROLES));
    let key = random.below(u64::MAX).to_string();
    let sql = "SELECT camp.schedule('crash', $2, $1, 0,
                   '{\"act\": \"crash\", \"nap\": 0, \"again\": 0}', 'replace')";
    let Ok(mut client) = shared.connect(database, role) else { return false };
    let Ok(row) = client.query_one(sql, &[&format!("{role}_watch"), &key]) else { return false };
    let id: i64 = row.get(0);
    let position = cluster.log_position();
    let held = poll("the crashing check to be held", TO_RECOVER, || {
        let mut client = shared.connect(database, "postgres").map_err(|error| error.to_string())?;
        let row = client.query_opt("SELECT held FROM awty.future_job WHERE id = $1", &[&id]);
        match row.map_err(|error| error.to_string())?.map(|row| row.get::<_, bool>(0)) {
            Some(false) => Err("not yet".into()),
            other => Ok(other),
        }
    });
    let crashes = cluster.log_since(position).matches("was terminated by signal 9").count();
    if crashes > MAX_CRASHES {
        shared.saw("P7", format!("check {id} took the server down {crashes} times before it was held"));
    }
    if held == Ok(Some(true)) {
        release(shared, database, role, id);
    } else {
        shared.saw("P7", format!("check {id}, which crashes the server each time, should be held: {held:?}"));
        let _ = poll("a moment to cancel it", TO_RECOVER, || {
            let mut client = shared.connect(database, "postgres").map_err(|error| error.to_string())?;
            client.execute("SELECT awty.cancel('crash', $1)", &[&key]).map_err(|error| error.to_string())
        });
    }
    true
}

const RELEASE: &str = "SELECT awty.release(entity_name, entity_key, job) FROM awty.future_job WHERE id = $1";

fn release(shared: &Shared, database: &str, role: &str, id: i64) {
    let mended = format!("INSERT INTO camp.mended VALUES ({id}) ON CONFLICT DO NOTHING");
    let outcome = poll("the released check to be done", TO_RECOVER, || {
        let mut client = shared.connect(database, role).map_err(|error| error.to_string())?;
        let sql = "SELECT held, NULL FROM awty.future_job WHERE id = $1
                   UNION ALL SELECT NULL, outcome FROM awty.future_job_history WHERE id = $1";
        let row = client.query_opt(sql, &[&id]).map_err(|error| error.to_string())?;
        match row.map(|row| (row.get::<_, Option<bool>>(0), row.get::<_, Option<String>>(1))) {
            Some((Some(true), _)) => {
                let free = client.batch_execute(&mended).and_then(|()| client.query(RELEASE, &[&id]));
                Err(format!("held: {free:?}"))
            }
            Some((_, Some(outcome))) => Ok(outcome),
            other => Err(format!("{other:?}")),
        }
    });
    if outcome.as_deref() != Ok("done") {
        shared.saw("P3", format!("check {id} was held and released, and should be done: {outcome:?}"));
    }
}
