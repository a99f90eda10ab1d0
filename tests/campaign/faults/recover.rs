use super::TO_RECOVER;
use super::look::look_around;
use crate::left::Left;
use crate::load::{DATABASES, ERIN, Shared, explain};
use awty_testkit::poll;
use std::time::{Duration, Instant};

/// awty finds some leftover rows only by its audit, which runs once a minute.
const TO_TIDY: Duration = Duration::from_secs(70);
const SLOW: Duration = Duration::from_secs(8);

pub fn recover(shared: &Shared) -> Result<(), String> {
    for database in DATABASES {
        let mut since: Option<crate::checker::Time> = None;
        let mut slow = Some(Instant::now() + SLOW);
        poll(&format!("what is due in database {database}"), TO_RECOVER, || {
            let mut client = shared.connect(database, "postgres").map_err(explain)?;
            if since.is_none() {
                let row = client.query_one("SELECT clock_timestamp()", &[]).map_err(explain)?;
                since = Some(row.get(0));
            }
            // A fault that sets the clock back moves the end of leases and pauses far into the future. Ignores the
            // affected checks.
            let sql = "SELECT count(*), min(left(f::text, 300)) FROM awty.future_job AS f WHERE NOT held AND next_check_at <= $1
                           AND NOT EXISTS (SELECT FROM awty_internal.lease AS l WHERE l.id = f.id AND l.expires_at > $1 + interval '30 s')
                           AND NOT EXISTS (SELECT FROM awty.job AS j WHERE j.job = f.job AND j.paused_until > $1 + interval '30 s')";
            let row = client.query_one(sql, &[&since]).map_err(explain)?;
            match row.get(0) {
                0_i64 => Ok(()),
                overdue => {
                    let seen = format!("{overdue} overdue, one of them {:?}", row.get::<_, Option<String>>(1));
                    if slow.take_if(|slow| *slow < Instant::now()).is_some() {
                        println!("slow: {seen}; {}", look_around(&mut client));
                    }
                    Err(seen)
                }
            }
        })?;
    }
    Ok(())
}

pub fn tidy(shared: &Shared) -> [Option<Left>; DATABASES.len()] {
    let end = Instant::now() + TO_TIDY;
    // Alters a job, because awty then inspects the database.
    for database in DATABASES {
        let owner = shared.connect(database, ERIN);
        let _ = owner.and_then(|mut owner| owner.batch_execute("SELECT awty.alter('erin_watch', max_checks => 5)"));
    }
    let settled = |database| {
        let mut last = None;
        let _ = poll("awty's own tables to be tidy", end.saturating_duration_since(Instant::now()), || {
            let mut client = shared.connect(database, "postgres").map_err(explain)?;
            let left = Left::read(&mut client).map_err(explain)?;
            last = Some(left.clone());
            if left.too_much().is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        });
        last
    };
    DATABASES.map(settled)
}
