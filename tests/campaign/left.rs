//! What is left in awty's own tables when all is quiet: nothing that belongs to no check, to no worker or to no database.
//!
//! Invariant: pure but for `read`, which asks in one statement.
//! Does not: say after how long; see `recover::tidy`.

use awty_testkit::postgres::{Client, Error};

/// What awty keeps for itself, by name.
pub const TALLY: &str = "awty.tally";
pub const INTENT: &str = "awty.intent";
pub const ORIGIN: &str = "awty.origin";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Rows of `awty.tally` whose check is gone.
    pub tallies: Vec<i64>,
    /// Rows of `awty.intent`, and the workers of this database to whom they may belong.
    pub intents: i64,
    pub workers: i64,
    /// Rows of `awty.origin`.
    pub origins: i64,
}

impl Left {
    pub fn read(client: &mut Client) -> Result<Self, Error> {
        let sql = format!(
            "SELECT ARRAY(SELECT check_id FROM {TALLY} WHERE check_id NOT IN (SELECT id FROM awty.future_job) ORDER BY 1),
                    (SELECT count(*) FROM {INTENT}),
                    (SELECT count(*) FROM pg_stat_activity
                     WHERE backend_type = 'awty worker' AND datname = current_database()),
                    (SELECT count(*) FROM {ORIGIN})"
        );
        let row = client.query_one(&sql, &[])?;
        Ok(Self { tallies: row.get(0), intents: row.get(1), workers: row.get(2), origins: row.get(3) })
    }

    /// What should not be there.
    pub fn too_much(&self) -> Vec<String> {
        let mut what = Vec::new();
        if let [first, ..] = self.tallies.as_slice() {
            what.push(format!("{TALLY} has {} rows of checks that are gone, the first of {first}", self.tallies.len()));
        }
        if self.intents > self.workers {
            what.push(format!("{INTENT} has {} rows, and there are {} workers", self.intents, self.workers));
        }
        if self.origins > 1 {
            what.push(format!("{ORIGIN} has {} rows", self.origins));
        }
        what
    }
}
