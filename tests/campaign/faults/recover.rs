//! After a fault: the server is there again, and all is done that was due.

use super::TO_RECOVER;
use super::look::look_around;
use crate::load::{DATABASES, Shared};
use awty_testkit::poll;
use std::time::{Duration, Instant};

/// After that, what is going on is worth a line.
const SLOW: Duration = Duration::from_secs(8);

/// Waits until the server is there, and has done all that was due then. An error says what was not.
pub fn recover(shared: &Shared) -> Result<(), String> {
    for database in DATABASES {
        let mut since: Option<crate::checker::Time> = None;
        let mut slow = Some(Instant::now() + SLOW);
        poll(&format!("what is due in database {database}"), TO_RECOVER, || {
            let mut client = shared.connect(database, "postgres").map_err(|error| error.to_string())?;
            if since.is_none() {
                let row = client.query_one("SELECT clock_timestamp()", &[]).map_err(|error| error.to_string())?;
                since = Some(row.get(0));
            }
            let sql = "SELECT count(*), min(f::text) FROM awty.future_job AS f WHERE NOT held AND next_check_at <= $1";
            let row = client.query_one(sql, &[&since]).map_err(|error| error.to_string())?;
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
