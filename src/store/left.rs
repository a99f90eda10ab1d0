//! Leases and targets that a former job has left. The next job of its name would have them.

use super::typed::{is_true, statement};
use crate::pg::text::Text;

statement! {
    pub fn remove_targets(job: &Text) = query,
    c"WITH limits AS (DELETE FROM awty_internal.target AS t WHERE t.job = $1), buckets AS (DELETE FROM awty_internal.bucket AS b WHERE b.job = $1)
      DELETE FROM awty_internal.breaker AS k WHERE k.job = $1"
}

statement! {
    pub fn remove_leases(job: &Text) = query,
    c"DELETE FROM awty_internal.lease AS l WHERE l.job = $1"
}

statement! {
    /// Returns whether a lease or target is left, also one that is newer than the snapshot of this transaction.
    pub fn is_any(job: &Text) -> bool = query_latest(is_true),
    c"SELECT EXISTS (SELECT FROM awty_internal.target AS t WHERE t.job = $1)
          OR EXISTS (SELECT FROM awty_internal.bucket AS b WHERE b.job = $1)
          OR EXISTS (SELECT FROM awty_internal.breaker AS k WHERE k.job = $1)
          OR EXISTS (SELECT FROM awty_internal.lease AS l WHERE l.job = $1)"
}

statement! {
    /// Returns whether the snapshot of this transaction shows a job of this name, or checks of it.
    pub fn is_shown(job: &Text) -> bool = query(is_true),
    c"SELECT EXISTS (SELECT FROM awty.job AS j WHERE j.job = $1)
          OR EXISTS (SELECT FROM awty.future_job AS p WHERE p.job = $1 AND NOT p.held)
          OR EXISTS (SELECT FROM awty.future_job AS q WHERE q.job = $1 AND q.held)"
}
