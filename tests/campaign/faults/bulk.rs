//! A bulk of checks comes and goes, so that the files of awty's tables grow to hundreds of blocks, and a worker has taken on checks
//! whose rows lie all over such a file.
//!
//! Invariant: what is in a table after a bulk has gone is what was there before it, but for the followers that were run.
//! Does not: do anything to the files; see `rewrite`.

use crate::load::{ERIN, Shared};
use crate::random::Random;
use awty_testkit::poll;
use awty_testkit::postgres::{Client, Error};
use std::time::Duration;

const FILLERS: i64 = 10_000;
/// Checks of one slot that lie between the fillers, and how long the first one's run is, in seconds.
const FOLLOWERS: i32 = 10;
const NAP: f64 = 1.2;
/// For that run to begin: a slot may last three seconds.
const TO_BEGIN: Duration = Duration::from_secs(6);

/// As large as all buffers.
const OTHER: &str = "CREATE TABLE IF NOT EXISTS camp.other AS
    SELECT n, repeat('x', 500) AS filler FROM generate_series(1, 30000) AS n";

/// One of awty's tables that a bulk makes large.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    FutureJob,
    /// A partition of it.
    History,
    CheckStat,
    /// Always small: a row for each worker.
    InFlight,
}

pub struct Bulk {
    kind: Kind,
    /// In the followers' keys, so that none replaces another.
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
        bulk.go()?; // of a bulk whose fault was cut off
        Ok(bulk)
    }

    /// It comes and goes, but for its followers, of which a worker now runs the first.
    pub fn come_and_go(&mut self) -> Result<(), Error> {
        self.fill(FOLLOWERS)?;
        self.go()?;
        let napping = "SELECT FROM pg_stat_activity WHERE backend_type = 'awty worker' AND wait_event = 'PgSleep'
                       AND datname = current_database() AND usename = $1";
        // If it does not, the fault meets whatever else is at work.
        let _ = poll("a follower's run", TO_BEGIN, || match self.admin.query_opt(napping, &[&ERIN]) {
            Ok(Some(_)) | Err(_) => Ok(()),
            Ok(None) => Err("none".into()),
        });
        Ok(())
    }

    /// It comes again, and the file grows over what has been beyond its end.
    pub fn come_again(&mut self) -> Result<(), Error> {
        self.fill(0)
    }

    /// The buffers hold another table.
    pub fn read_other(&mut self) -> Result<(), Error> {
        self.admin.batch_execute("SELECT count(*) FROM camp.other")
    }

    fn fill(&mut self, followers: i32) -> Result<(), Error> {
        let job = if self.kind == Kind::History { "erin_keep" } else { "erin_fill" };
        // Both together: the followers are not to be run before the fillers have gone.
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

    /// All fillers go, and what they have left in the history.
    pub fn go(&mut self) -> Result<(), Error> {
        self.keeper.batch_execute("SELECT camp.empty()")?;
        self.admin.batch_execute("DELETE FROM awty.future_job_history WHERE entity_name = 'filler'")
    }
}
