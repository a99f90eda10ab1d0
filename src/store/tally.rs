//! Statements on `awty.tally`: what a pending check has used so far, and how often it was there when the server crashed.

use super::arg;
use super::statement::statement;
use crate::owner::bracket;
use pgrx::pg_sys;

// Whoever touches a check's tally has its row locked. It is not waited for: a client that has it may want the tally next.
statement!(
    count_crash,
    [INT8ARRAYOID],
    c"INSERT INTO awty.tally AS t (check_id, crashes)
      SELECT f.id, 1
      FROM (SELECT g.id FROM awty.future_job AS g WHERE g.id = ANY ($1) ORDER BY g.id FOR UPDATE SKIP LOCKED) AS f
      ON CONFLICT (check_id) DO UPDATE SET crashes = t.crashes + 1"
);

statement!(
    count_pending,
    [INT8ARRAYOID],
    c"SELECT pg_catalog.count(*) FROM awty.future_job AS f WHERE f.id = ANY ($1)"
);

statement!(
    hold_worst,
    [INT8OID, INT4OID],
    c"UPDATE awty.future_job AS f SET held = true
      FROM awty.tally AS t
      WHERE t.check_id = f.id AND f.id = $1 AND t.crashes >= $2 AND NOT f.held"
);

statement!(
    select_suspects,
    [OIDOID],
    c"SELECT t.check_id, t.crashes
      FROM awty.tally AS t JOIN awty.future_job AS f ON f.id = t.check_id JOIN awty.job AS j ON j.name = f.job
      WHERE t.crashes > 0 AND j.role = $1 AND NOT f.held
      ORDER BY t.crashes, t.check_id LIMIT 100000"
);

statement!(absolve_one, [INT8OID], c"UPDATE awty.tally SET crashes = 0 WHERE check_id = $1 AND crashes > 0");

/// Counts a crash against each of these checks that is still pending, and locks it. `false` if somebody else has one locked,
/// which is then left out.
pub fn count(ids: &[i64]) -> bool {
    bracket(|| {
        let pending = count_pending(|s| s.query(&[arg(ids.to_vec())], |rows| rows.first::<i64>(1))).unwrap_or(0);
        count_crash(|s| s.execute(&[arg(ids.to_vec())])) >= pending.unsigned_abs()
    })
}

/// Holds a check that has had too many crashes, and whose row is locked here; says whether it is held from now on.
pub fn hold(id: i64, max_crashes: i32) -> bool {
    bracket(|| hold_worst(|s| s.execute(&[arg(id), arg(max_crashes)]))) == 1
}

/// The checks of a role to be run alone, those least suspected first.
pub fn suspects(role: pg_sys::Oid) -> Vec<i64> {
    bracket(|| {
        select_suspects(|s| s.query(&[arg(role)], |rows| (0..rows.len()).filter_map(|row| rows.get(row, 1)).collect()))
    })
}

/// Forgets the crashes of a check: it has run to its end, or it is released.
pub fn absolve(id: i64) {
    bracket(|| absolve_one(|s| s.execute(&[arg(id)])));
}
