//! Finds rows in awty's own tables whose check, worker or database no longer exists.

use awty_testkit::postgres::{Client, Error};

pub const CHECK_STAT: &str = "awty_internal.check_stat";
pub const IN_FLIGHT: &str = "awty_internal.in_flight";
pub const ORIGIN: &str = "awty_internal.origin";
pub const LEASE: &str = "awty_internal.lease";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    pub stats: Vec<i64>,
    pub in_flight: i64,
    pub workers: i64,
    pub origins: i64,
    pub leases: i64,
}

impl Left {
    pub fn read(client: &mut Client) -> Result<Self, Error> {
        let sql = format!(
            "SELECT ARRAY(SELECT check_id FROM {CHECK_STAT} WHERE check_id NOT IN (SELECT id FROM awty.future_job) ORDER BY 1),
                    (SELECT count(*) FROM {IN_FLIGHT}),
                    (SELECT count(*) FROM pg_stat_activity
                     WHERE backend_type = 'awty worker' AND datname = current_database()),
                    (SELECT count(*) FROM {ORIGIN}),
                    (SELECT count(*) FROM {LEASE} WHERE deadline <= clock_timestamp())"
        );
        let row = client.query_one(&sql, &[])?;
        Ok(Self {
            stats: row.get(0),
            in_flight: row.get(1),
            workers: row.get(2),
            origins: row.get(3),
            leases: row.get(4),
        })
    }

    pub fn too_much(&self) -> Vec<String> {
        let mut what = Vec::new();
        if let [first, ..] = self.stats.as_slice() {
            what.push(format!(
                "{CHECK_STAT} has {} rows of checks that are gone, the first of {first}",
                self.stats.len()
            ));
        }
        if self.in_flight > self.workers {
            what.push(format!("{IN_FLIGHT} has {} rows, and there are {} workers", self.in_flight, self.workers));
        }
        if self.origins > 1 {
            what.push(format!("{ORIGIN} has {} rows", self.origins));
        }
        if self.leases > 0 {
            what.push(format!("{LEASE} has {} rows of leases that are over", self.leases));
        }
        what
    }
}
