//! Statements on the rights to jobs that `awty.allow()` has given.
//!
//! Does not: know what members of a job's role may do, which is all of it.

use super::arg;
use super::statement::statement;
use crate::pg::catalog;
use crate::pg::owner::as_owner;
use crate::pg::text::Text;
use pgrx::pg_sys;

/// What a role that is no member of a job's role may do with the job. Each includes `Read`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Right {
    Read,
    /// Schedule, cancel, run now, hold and release its checks.
    Schedule,
    /// Take its checks as a worker outside.
    Claim,
}

impl Right {
    /// As SQL names it.
    pub fn word(self) -> &'static str {
        match self {
            Right::Read => "read",
            Right::Schedule => "schedule",
            Right::Claim => "claim",
        }
    }
}

impl std::str::FromStr for Right {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        [Right::Read, Right::Schedule, Right::Claim].into_iter().find(|right| right.word() == word).ok_or(())
    }
}

statement!(
    select_granted,
    [TEXTOID, TEXTOID],
    c"SELECT a.role::pg_catalog.oid
      FROM awty.job AS j, pg_catalog.unnest(CASE $2 WHEN 'read' THEN j.readers || j.allowed || j.claimers
                                                    WHEN 'schedule' THEN j.allowed ELSE j.claimers END) AS a (role)
      WHERE j.job = $1"
);

statement!(
    select_names,
    [OIDOID, TEXTOID],
    c"SELECT j.job FROM awty.job AS j
      WHERE pg_catalog.pg_has_role($1, j.role, $2)
         OR EXISTS (SELECT FROM pg_catalog.unnest(j.readers || j.allowed || j.claimers) AS a (role)
                    WHERE pg_catalog.pg_has_role($1, a.role, $2))
      ORDER BY j.job LIMIT 10000"
);

statement!(
    update_right,
    [TEXTOID, OIDOID, TEXTOID],
    c"UPDATE awty.job AS j SET readers = n.readers, allowed = n.allowed, claimers = n.claimers
      FROM awty.job AS o CROSS JOIN LATERAL (
          SELECT pg_catalog.array_remove(o.readers, $2::pg_catalog.regrole) || CASE $3 WHEN 'read' THEN ARRAY[$2::pg_catalog.regrole] END,
                 pg_catalog.array_remove(o.allowed, $2::pg_catalog.regrole) || CASE $3 WHEN 'schedule' THEN ARRAY[$2::pg_catalog.regrole] END,
                 pg_catalog.array_remove(o.claimers, $2::pg_catalog.regrole) || CASE $3 WHEN 'claim' THEN ARRAY[$2::pg_catalog.regrole] END
      ) AS n (readers, allowed, claimers)
      WHERE j.job = $1 AND o.job = $1
        AND (j.readers, j.allowed, j.claimers) IS DISTINCT FROM (n.readers, n.allowed, n.claimers)"
);

/// The roles that were given a right to a job, besides members of its own, or one that includes it.
pub fn granted(name: &Text, right: Right) -> Vec<pg_sys::Oid> {
    let args = [Some(name.datum()), Some(Text::from(right.word()).datum())];
    as_owner(|| {
        select_granted(|s| s.query_latest(&args, |rows| (0..rows.len()).filter_map(|row| rows.get(row, 1)).collect()))
    })
}

/// The names of the jobs that a role may know of.
pub fn names_for(role: pg_sys::Oid) -> Vec<String> {
    as_owner(|| {
        select_names(|s| {
            s.query(&[arg(role), arg(catalog::BECOME)], |rows| {
                (0..rows.len()).filter_map(|row| rows.get::<Text>(row, 1)).map(|name| name.to_string()).collect()
            })
        })
    })
}

/// Gives a role a right to a job instead of the one that it had; `None`: no right.
pub fn set_right(name: &Text, role: pg_sys::Oid, right: Option<Right>) {
    let right = right.map(|right| Text::from(right.word()).datum());
    as_owner(|| update_right(|s| s.execute(&[Some(name.datum()), arg(role), right])));
}
