use super::typed::{row, statement};
use std::collections::BTreeMap;

statement! {
    pub fn write(worker: i32, ids: &[i64]) = query,
    c"INSERT INTO awty_internal.in_flight AS i (worker, check_ids) VALUES ($1, $2)
      ON CONFLICT (worker) DO UPDATE SET check_ids = excluded.check_ids"
}

statement! {
    pub fn clear(worker: i32) = query,
    c"DELETE FROM awty_internal.in_flight WHERE worker = $1"
}

statement! {
    pub fn all() -> Vec<Read> = query,
    c"SELECT i.worker, i.xmin::pg_catalog.text::pg_catalog.int8 FROM awty_internal.in_flight AS i"
}

// Deletes only unchanged rows, because a new worker may have replaced a row.
statement! {
    fn delete_read(workers: Vec<i32>, xids: Vec<i64>) -> Vec<(i32, i64)> = query,
    c"WITH gone AS (
          DELETE FROM awty_internal.in_flight AS i USING ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS r (worker, xid)
          WHERE i.worker = r.worker AND i.xmin::pg_catalog.text::pg_catalog.int8 = r.xid
          RETURNING i.worker, i.check_ids)
      SELECT g.worker, u.id FROM gone AS g CROSS JOIN LATERAL pg_catalog.unnest(g.check_ids) AS u (id)
      WHERE u.id IS NOT NULL"
}

#[derive(Clone, Copy)]
pub struct Read {
    pub worker: i32,
    xid: i64,
}

row!(Read { worker, xid });

pub fn take(read: &[Read]) -> Vec<(i32, Vec<i64>)> {
    if read.is_empty() {
        return Vec::new();
    }
    let (workers, xids): (Vec<i32>, Vec<i64>) = read.iter().map(|row| (row.worker, row.xid)).unzip();
    let mut named: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
    for (worker, id) in delete_read(workers, xids) {
        named.entry(worker).or_default().push(id);
    }
    named.into_iter().collect()
}
