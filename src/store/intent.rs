//! Statements on `awty.intent`: which checks a worker is about to run.

use super::statement::statement;
use super::{arg, statement::Arg};
use crate::owner::bracket;
use pgrx::IntoDatum;
use std::collections::BTreeMap;

statement!(
    upsert,
    [INT4OID, INT8ARRAYOID],
    c"INSERT INTO awty.intent AS i (worker, check_ids) VALUES ($1, $2)
      ON CONFLICT (worker) DO UPDATE SET check_ids = excluded.check_ids"
);

statement!(delete_one, [INT4OID], c"DELETE FROM awty.intent WHERE worker = $1");

// One id per row: an array that an administrator has written need not be one of this program's.
statement!(
    delete_others,
    [INT4ARRAYOID],
    c"WITH gone AS (DELETE FROM awty.intent WHERE NOT worker = ANY ($1) RETURNING worker, check_ids)
      SELECT g.worker, u.id FROM gone AS g CROSS JOIN LATERAL pg_catalog.unnest(g.check_ids) AS u (id)
      WHERE u.id IS NOT NULL"
);

statement!(count_others, [INT4ARRAYOID], c"SELECT 1 FROM awty.intent WHERE NOT worker = ANY ($1) LIMIT 1");

fn array<T: IntoDatum>(values: Vec<T>) -> Arg
where
    Vec<T>: IntoDatum,
{
    values.into_datum()
}

/// Says what a worker is about to run, instead of what it said before.
pub fn write(worker: i32, ids: &[i64]) {
    bracket(|| upsert(|s| s.execute(&[arg(worker), array(ids.to_vec())])));
}

/// Says that a worker is about to run nothing.
pub fn clear(worker: i32) {
    bracket(|| delete_one(|s| s.execute(&[arg(worker)])));
}

/// Takes away the intents of workers that are not among those given, and returns the checks that each of them named.
pub fn take_others(workers: Vec<i32>) -> Vec<Vec<i64>> {
    bracket(|| {
        // Looks first, so that an idle database is not written to.
        if count_others(|s| s.query(&[array(workers.clone())], |rows| rows.len())) == 0 {
            return Vec::new();
        }
        let mut named: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
        delete_others(|s| {
            s.query(&[array(workers)], |rows| {
                for (worker, id) in (0..rows.len()).filter_map(|row| Some((rows.get(row, 1)?, rows.get(row, 2)?))) {
                    named.entry(worker).or_default().push(id);
                }
            });
        });
        named.into_values().collect()
    })
}
