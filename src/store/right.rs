//! Statements on the rights to jobs that `awty.allow()` has given.
//!
//! Does not: check members of a job's role, who have all rights.

use super::arg;
use super::statement::{Rows, statement};
use crate::pg::array::{self, REGROLE};
use crate::pg::catalog;
use crate::pg::owner::as_owner;
use crate::pg::text::Text;
use pgrx::pg_sys;

/// Rights of a role on a job if the role is no member of the job's role. Each right includes `Read`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Right {
    Read,
    /// Schedule, cancel, run now, hold and release its checks.
    Schedule,
    /// Claim its checks as an external worker.
    Claim,
}

impl Right {
    /// The right's name in SQL.
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
    select_rights,
    [],
    c"SELECT j.job, j.role::pg_catalog.oid, j.readers, j.allowed, j.claimers FROM awty.job AS j ORDER BY j.job"
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

/// The roles that were granted this right to a job, or a right that includes it. Members of the job's role are not listed.
pub fn granted(name: &Text, right: Right) -> Vec<pg_sys::Oid> {
    let args = [Some(name.datum()), Some(Text::from(right.word()).datum())];
    as_owner(|| {
        select_granted(|s| s.query_latest(&args, |rows| (0..rows.len()).filter_map(|row| rows.get(row, 1)).collect()))
    })
}

/// The names of the jobs that a role may see.
pub fn names_for(role: pg_sys::Oid) -> Vec<String> {
    as_owner(|| {
        select_names(|s| {
            s.query(&[arg(role), arg(catalog::BECOME)], |rows| {
                (0..rows.len()).filter_map(|row| rows.get::<Text>(row, 1)).map(|name| name.to_string()).collect()
            })
        })
    })
}

/// A job that a role may read, and the role's other rights.
pub struct Readable {
    pub job: Text,
    pub role: pg_sys::Oid,
    pub may_schedule: bool,
    pub may_claim: bool,
}

/// The jobs that the caller may read, by its statement's snapshot. `may_be` says whether the caller is a member of a role.
pub fn readable(may_be: impl Fn(pg_sys::Oid) -> bool) -> Vec<Readable> {
    let any = |rows: &Rows, row, column| {
        let Some(roles) = rows.datum(row, column) else { return false };
        // SAFETY: the columns of this statement are arrays of regrole.
        let roles = unsafe { array::elements(roles, REGROLE) };
        roles.into_iter().flatten().flatten().any(|role| may_be(pg_sys::Oid::from(role.value() as u32)))
    };
    let one = |rows: &Rows, row| {
        let (job, role) = (rows.get::<Text>(row, 1)?, rows.get(row, 2)?);
        let all = may_be(role);
        let (may_schedule, may_claim) = (all || any(rows, row, 4), all || any(rows, row, 5));
        (may_schedule || may_claim || any(rows, row, 3)).then_some(Readable { job, role, may_schedule, may_claim })
    };
    as_owner(|| {
        select_rights(|s| s.query_as_caller(&[], |rows| (0..rows.len()).filter_map(|row| one(rows, row)).collect()))
    })
}

/// Replaces a role's right to a job; `None` removes it.
pub fn set_right(name: &Text, role: pg_sys::Oid, right: Option<Right>) {
    let right = right.map(|right| Text::from(right.word()).datum());
    as_owner(|| update_right(|s| s.execute(&[Some(name.datum()), arg(role), right])));
}
