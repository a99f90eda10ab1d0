use crate::checker::Told;
use crate::load::Customer;
use awty_testkit::postgres::error::SqlState;
use awty_testkit::postgres::{Client, Error, IsolationLevel};
use chrono::Utc;
use std::time::{Duration, Instant};

/// Finds the role's running checks by the advisory lock that `camp.enter()` takes.
const RUNNING: &str = "SELECT f.entity_name, f.entity_key, f.job
    FROM pg_locks AS l JOIN awty.future_job AS f ON f.id = l.objid::bigint
    WHERE l.locktype = 'advisory' AND l.classid = 7 AND l.granted AND starts_with(f.job, $1)
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ORDER BY random() LIMIT 1";

pub const IN_RUN: &str = "cancel or replace a check that is being run";

impl Customer {
    pub fn meddle(&mut self, client: &mut Client) -> Result<(), Error> {
        let Some(row) = client.query_opt(RUNNING, &[&self.role])? else { return Ok(()) };
        let [name, key, job]: [String; 3] = [row.get(0), row.get(1), row.get(2)];
        let since = Instant::now();
        if self.random.per_mille(500) {
            let sql = "SELECT awty.cancel($1, $2, $3), pg_current_xact_id()::text::bigint";
            let row = client.query_one(sql, &[&name, &key, &job])?;
            self.shared.time(IN_RUN, since);
            self.tell(Told::Cancelled { xid: row.get(1), count: row.get(0), at: Utc::now() });
        } else {
            let (due, args) = (self.soon(), serde_json::json!({"act": "ok", "nap": 0, "again": 0}));
            let sql = "SELECT camp.schedule($1, $2, $3, $4, $5, 'replace')";
            let row = client.query_one(sql, &[&name, &key, &job, &due, &args])?;
            self.shared.time(IN_RUN, since);
            self.tell(Told::Placed { check: row.get(0) });
        }
        Ok(())
    }

    pub fn fail_to_commit(&mut self, client: &mut Client) -> Result<(), Error> {
        let (key, due) = (self.recent(), self.soon());
        let (job, args) = (format!("{}_watch", self.role), serde_json::json!({"act": "ok", "nap": 0, "again": 0}));
        let serializable = self.random.per_mille(700);
        let level = if serializable { IsolationLevel::Serializable } else { IsolationLevel::ReadCommitted };
        let mut doomed = || {
            let mut transaction = client.build_transaction().isolation_level(level).start()?;
            if serializable {
                let all = transaction.query_one("SELECT sum(amount)::bigint FROM camp.account", &[])?;
                // This wait does not use the server's clock, because a fault may set the clock.
                std::thread::park_timeout(Duration::from_millis(50));
                let sql = "UPDATE camp.account SET amount = $2::bigint % 1000 WHERE owner = $1";
                transaction.execute(sql, &[&self.role, &all.get::<_, i64>(0)])?;
            } else {
                transaction.execute("INSERT INTO camp.child VALUES (-1)", &[])?;
            }
            transaction.execute("SELECT awty.cancel('orders', $1)", &[&key])?;
            let sql = "SELECT camp.schedule('orders', $1, $2, $3, $4, 'replace')";
            let row = transaction.query_one(sql, &[&key, &job, &due, &args])?;
            transaction.commit()?;
            Ok(row.get(0))
        };
        match doomed() {
            Ok(check) => self.tell(Told::Placed { check }),
            Err(error) if is_refusal(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn is_refusal(error: &Error) -> bool {
    let refusals = [&SqlState::T_R_SERIALIZATION_FAILURE, &SqlState::FOREIGN_KEY_VIOLATION];
    error.code().is_some_and(|code| refusals.contains(&code))
}
