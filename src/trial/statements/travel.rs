use crate::pg::text::Text;
use crate::store::typed::{row, statement};
use awty_core::Time;
use pgrx::pg_sys;

#[derive(Clone)]
pub struct DueCheck {
    pub id: i64,
    pub job: Text,
    pub entity_name: Text,
    pub entity_key: Text,
    pub slot: Time,
}

row!(DueCheck { id, job, entity_name, entity_key, slot });

#[derive(Default)]
pub struct End {
    pub outcome: Option<Text>,
    pub next_check_at: Option<Time>,
}

row!(End { outcome, next_check_at });

statement! {
    pub fn first(role: pg_sys::Oid, from: Time, by: Time, without: &[i64]) -> Option<(Text, Time)> = query,
    c"SELECT j.job, f.next_check_at
      FROM awty.job AS j
      CROSS JOIN LATERAL (
          SELECT p.next_check_at, p.id FROM awty.future_job AS p
          WHERE p.job = j.job AND NOT p.held AND p.next_check_at >= $2 AND p.next_check_at <= $3 AND p.id <> ALL ($4)
          ORDER BY p.next_check_at, p.id LIMIT 1
      ) AS f
      WHERE j.role = $1 AND NOT j.paused AND j.function_name IS NOT NULL
      ORDER BY f.next_check_at, f.id LIMIT 1"
}

statement! {
    pub fn of_slot(job: &Text, slot: Time, most: usize, without: &[i64]) -> Vec<DueCheck> = query,
    c"SELECT f.id, f.job, f.entity_name, f.entity_key, f.next_check_at FROM awty.future_job AS f
      WHERE f.job = $1 AND NOT f.held AND f.next_check_at = $2 AND f.id <> ALL ($4) ORDER BY f.id LIMIT $3"
}

statement! {
    pub fn end(id: i64) -> Option<End> = query,
    c"SELECT (SELECT h.outcome FROM awty.future_job_history AS h WHERE h.id = $1),
             (SELECT f.next_check_at FROM awty.future_job AS f WHERE f.id = $1)"
}
