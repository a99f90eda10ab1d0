use super::look::catch;
use crate::load::{DATABASES, ERIN, Shared};
use crate::random::Random;
use std::time::Duration;

const CHECKS: i32 = 60;
const NAP: f64 = 0.25;
const AT_LEAST: [i32; 3] = [3, 2, 2];
const BETWEEN: Duration = Duration::from_millis(300);

pub fn terminate_one(shared: &Shared, random: &mut Random) -> bool {
    let database = *random.pick(&DATABASES);
    let tag = random.below(u64::MAX).to_string();
    let sql = "SELECT camp.schedule('crowd', $1 || ' ' || n, 'erin_watch', 0, $2, 'replace')
               FROM generate_series(1, $3) AS n";
    let args = serde_json::json!({"act": "ok", "nap": NAP, "again": 0});
    let scheduled = shared.connect(database, ERIN).and_then(|mut owner| owner.execute(sql, &[&tag, &args, &CHECKS]));
    if scheduled.is_err() {
        return false;
    }
    let workers = format!("backend_type = 'awty worker' AND datname = '{database}' AND usename = '{ERIN}'");
    let napping = format!("{workers} AND wait_event = 'PgSleep'");
    let one = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {napping}
             AND (SELECT count(*) FROM pg_stat_activity WHERE {workers}) >= $COUNT ORDER BY random() LIMIT 1"
    );
    let mut came_about = false;
    for least in AT_LEAST {
        shared.note_struck();
        came_about |= catch::<bool>(shared, &one.replace("$COUNT", &least.to_string())) == Some(true);
        std::thread::park_timeout(BETWEEN);
    }
    came_about
}
