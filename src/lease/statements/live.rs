//! Live leases of one job. A claim reads the live leases once, because reading them again for each leased check would
//! take most of the claim's time.

use crate::pg::array::{self, TEXT};
use crate::pg::text::Text;
use crate::store::from_timestamptz;
use crate::store::statement::{Arg, Kept, Rows};
use crate::store::typed::{Outcome, Param, statement};
use awty_core::Time;
use pgrx::{FromDatum, pg_sys};
use std::cell::OnceCell;
use std::collections::HashMap;

statement! {
    /// Reads up to `most` unexpired leases, the earliest expiry first. Only [`Live::in_flight`] needs the targets.
    pub fn read(job: &Text, now: Time, most: Option<i64>, with_targets: bool) -> Live = query_latest,
    c"SELECT pg_catalog.array_agg(l.id), pg_catalog.array_agg(l.entity_name) FILTER (WHERE $4), pg_catalog.count(*),
          pg_catalog.min(l.expires_at)
      FROM (SELECT x.id, x.entity_name, x.expires_at FROM awty_internal.lease AS x
            WHERE x.job = $1 AND x.expires_at > $2 ORDER BY x.expires_at LIMIT $3) AS l"
}

/// A job's unexpired leases. SQL statements receive the ids of the leased checks as an array.
pub struct Live {
    checks: Arg,
    targets: Arg,
    pub count: i64,
    pub first_expiry: Option<Time>,
    in_flight: OnceCell<HashMap<Text, u32>>,
}

impl Outcome for Live {
    fn read(rows: &Rows) -> Self {
        let kept = |column| rows.first(column).map(|Kept(array)| array);
        Live {
            checks: kept(1),
            targets: kept(2),
            count: rows.first(3).unwrap_or(0),
            first_expiry: rows.first(4).map(from_timestamptz),
            in_flight: OnceCell::new(),
        }
    }
}

impl Param for &Live {
    const TYPE: pg_sys::Oid = pg_sys::INT8ARRAYOID;

    fn arg(self) -> Arg {
        self.checks
    }
}

impl Live {
    pub fn in_flight(&self, target: &Text) -> u32 {
        self.in_flight.get_or_init(|| count(self.targets)).get(target).copied().unwrap_or(0)
    }
}

fn count(targets: Arg) -> HashMap<Text, u32> {
    let mut counts = HashMap::new();
    // SAFETY: `targets` is an array of texts, which lives as long as the memory of the call.
    let targets = targets.and_then(|targets| unsafe { array::elements(targets, TEXT) });
    for target in targets.into_iter().flatten() {
        // SAFETY: `target` is an element of an array of texts.
        if let Some(target) = target.and_then(|target| unsafe { Text::from_datum(target, false) }) {
            *counts.entry(target).or_default() += 1;
        }
    }
    counts
}
