//! Adds and removes many rows, so that the files of awty's tables grow and shrink. Meanwhile, a worker runs checks that
//! it has already read from the tables.

use crate::load::{ERIN, Shared};
use crate::random::Random;
use awty_testkit::poll;
use awty_testkit::postgres::{Client, Error};
use std::time::Duration;

const FILLERS: i64 = 10_000;
const FOLLOWERS: i32 = 10;
const NAP: f64 = 1.2;
/// Time limit for the start of a due check: twice the longest slot, because awty rounds a check's time up to the next
/// slot.
const TO_BEGIN: Duration = Duration::from_secs(6);

/// A table so large that reading it replaces all other pages in the shared buffers.
const OTHER: &str = "CREATE TABLE IF NOT EXISTS camp.other AS
    SELECT n, repeat('x', 500) AS filler FROM generate_series(1, 30000) AS n";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    FutureJob,
    History,
    CheckStat,
    InFlight,
}

pub struct Bulk {
    kind: Kind,
    tag: String,
    keeper: Client,
    pub admin: Client,
}

impl Bulk {
    pub fn new(shared: &Shared, database: &str, kind: Kind, random: &mut Random) -> Result<Self, Error> {
        let tag = format!("{}-", random.below(u64::MAX));
        let keeper = shared.connect(database, ERIN)?;
        let mut admin = shared.connect(database, "postgres")?;
        admin.batch_execute(OTHER)?;
        let mut bulk = Self { kind, tag, keeper, admin };
        bulk.go()?; // an interrupted fault may have left fillers
        Ok(bulk)
    }

    /// Adds checks of two kinds, fillers and followers (see bulk.sql). Then removes the fillers, and waits for the
    /// first follower's run.
    pub fn come_and_go(&mut self) -> Result<(), Error> {
        self.fill(FOLLOWERS)?;
        self.go()?;
        let napping = "SELECT FROM pg_stat_activity WHERE backend_type = 'awty worker' AND wait_event = 'PgSleep'
                       AND datname = current_database() AND usename = $1";
        let _ = poll("a follower's run", TO_BEGIN, || match self.admin.query_opt(napping, &[&ERIN]) {
            Ok(Some(_)) | Err(_) => Ok(()),
            Ok(None) => Err("none".into()),
        });
        Ok(())
    }

    pub fn come_again(&mut self) -> Result<(), Error> {
        self.fill(0)
    }

    pub fn read_other(&mut self) -> Result<(), Error> {
        self.admin.batch_execute("SELECT count(*) FROM camp.other")
    }

    fn fill(&mut self, followers: i32) -> Result<(), Error> {
        let job = if self.kind == Kind::History { "erin_keep" } else { "erin_fill" };
        // Adds the due checks and removes the filler checks in one transaction, so that no filler is left when the
        // first due check runs.
        let mut transaction = self.keeper.transaction()?;
        transaction.execute("SELECT camp.fill($1, $2, $3, $4, $5)", &[&self.tag, &job, &FILLERS, &followers, &NAP])?;
        if followers > 0 && self.kind != Kind::CheckStat {
            transaction.execute("SELECT camp.empty()", &[])?;
        }
        transaction.commit()?;
        if self.kind == Kind::CheckStat {
            let sql = "INSERT INTO awty_internal.check_stat (check_id) SELECT id FROM awty.future_job WHERE entity_name = 'filler'
                       ON CONFLICT DO NOTHING";
            self.admin.batch_execute(sql)?;
        }
        Ok(())
    }

    pub fn go(&mut self) -> Result<(), Error> {
        self.keeper.batch_execute("SELECT camp.empty()")?;
        self.admin.batch_execute("DELETE FROM awty.future_job_history WHERE entity_name = 'filler'")
    }
}
