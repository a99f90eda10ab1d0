//! Leases and targets that a former job has left. The next job of its name would have them.

use super::typed::{is_true, statement};
use crate::pg::text::Text;

statement! {
    pub fn remove(job: &Text) = query,
    c"WITH limits AS (DELETE FROM awty_internal.target AS t WHERE t.job = $1), buckets AS (DELETE FROM awty_internal.bucket AS b WHERE b.job = $1),
          breakers AS (DELETE FROM awty_internal.breaker AS k WHERE k.job = $1)
      DELETE FROM awty_internal.lease AS l WHERE l.job = $1"
}

statement! {
    pub fn is_any(job: &Text) -> bool = query_latest(is_true),
    c"SELECT EXISTS (SELECT FROM awty_internal.target AS t WHERE t.job = $1)
          OR EXISTS (SELECT FROM awty_internal.bucket AS b WHERE b.job = $1)
          OR EXISTS (SELECT FROM awty_internal.breaker AS k WHERE k.job = $1)
          OR EXISTS (SELECT FROM awty_internal.lease AS l WHERE l.job = $1)"
}
