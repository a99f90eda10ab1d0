use super::statement::Rows;
use super::typed::{number, statement};
use pgrx::pg_sys;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Suspicion {
    Crash,
    Exit,
}

// Lock order: the check's row, then its row in check_stat. SKIP LOCKED avoids a deadlock with a client that has locked
// the first row and waits for the second.
statement! {
    fn count_suspicion(ids: &[i64], crashes: i32, exits: i32) -> u64 = query,
    c"INSERT INTO awty_internal.check_stat AS t (check_id, crashes, exits)
      SELECT f.id, $2, $3
      FROM (SELECT g.id FROM awty.future_job AS g WHERE g.id = ANY ($1) ORDER BY g.id FOR UPDATE SKIP LOCKED) AS f
      ON CONFLICT (check_id) DO UPDATE SET
          crashes = least(t.crashes::pg_catalog.int8 + $2, 1000000), exits = least(t.exits::pg_catalog.int8 + $3, 1000000)"
}

statement! {
    fn count_pending(ids: &[i64]) -> i64 = query(number),
    c"SELECT pg_catalog.count(*) FROM awty.future_job AS f WHERE f.id = ANY ($1)"
}

// Avoids the condition `NOT f.held`, because the planner could then read a whole partial index (`WHERE NOT held`).
statement! {
    pub fn hold(id: i64, max_crashes: i32) -> bool = query,
    c"UPDATE awty.future_job AS f SET held = true
      FROM awty_internal.check_stat AS t
      WHERE t.check_id = f.id AND f.id = $1 AND t.crashes::pg_catalog.int8 + t.exits >= $2
        AND f.held IS DISTINCT FROM true"
}

// OFFSET 0 makes the plan start from the few suspected checks, not from all pending checks of the role.
statement! {
    fn select_suspects(role: pg_sys::Oid) -> Vec<(i64, bool)> = query,
    c"SELECT s.check_id, s.crashes > 0
      FROM (
          SELECT t.check_id, t.crashes, t.exits FROM awty_internal.check_stat AS t WHERE t.crashes > 0 OR t.exits > 0 OFFSET 0
      ) AS s
      CROSS JOIN LATERAL (SELECT p.job, p.held FROM awty.future_job AS p WHERE p.id = s.check_id OFFSET 0) AS f
      JOIN awty.job AS j ON j.job = f.job
      WHERE j.role = $1 AND NOT f.held
      ORDER BY s.crashes::pg_catalog.int8 + s.exits, s.check_id LIMIT 100000"
}

statement! {
    pub fn without_suspects(ids: &[i64]) -> Vec<i64> = query,
    c"SELECT c.id FROM pg_catalog.unnest($1) AS c (id)
      WHERE NOT EXISTS (SELECT FROM awty_internal.check_stat AS t WHERE t.check_id = c.id AND t.crashes > 0)"
}

statement! {
    pub fn absolve(id: i64) = query,
    c"UPDATE awty_internal.check_stat SET crashes = 0, exits = 0 WHERE check_id = $1 AND (crashes > 0 OR exits > 0)"
}

statement! {
    pub fn remove(ids: &[i64]) = query,
    c"DELETE FROM awty_internal.check_stat WHERE check_id = ANY ($1)"
}

// The search ends at the first piece with fewer than `piece` rows. A search until the first empty piece might never end
// while new rows arrive.
statement! {
    fn select_piece(after: i64, piece: i64) -> (Option<i64>, Vec<i64>) = query(read_piece),
    c"SELECT CASE WHEN pg_catalog.count(*) = $2 THEN pg_catalog.max(p.check_id) END, pg_catalog.array_agg(p.check_id) FILTER (
          WHERE NOT EXISTS (SELECT FROM awty.future_job AS f WHERE f.id = p.check_id))
      FROM (SELECT t.check_id FROM awty_internal.check_stat AS t WHERE t.check_id > $1 ORDER BY t.check_id LIMIT $2) AS p"
}

pub fn count(ids: &[i64], suspicion: Suspicion) -> bool {
    let (crashes, exits) = match suspicion {
        Suspicion::Crash => (1, 0),
        Suspicion::Exit => (0, 1),
    };
    let pending = count_pending(ids);
    count_suspicion(ids, crashes, exits) >= pending.unsigned_abs()
}

pub fn suspects(role: pg_sys::Oid) -> Vec<(i64, Suspicion)> {
    let suspicion = |crashed| if crashed { Suspicion::Crash } else { Suspicion::Exit };
    select_suspects(role).into_iter().map(|(id, crashed)| (id, suspicion(crashed))).collect()
}

/// Deletes the rows of ended checks. A worker forgets to delete such rows if its list of suspected checks is outdated.
pub fn remove_orphans(after: i64, piece: i64) -> i64 {
    let (last, orphans) = select_piece(after, piece);
    if !orphans.is_empty() {
        remove(&orphans);
    }
    last.unwrap_or(i64::MIN)
}

fn read_piece(rows: &Rows) -> (Option<i64>, Vec<i64>) {
    (rows.first(1), rows.first_ids(2))
}
