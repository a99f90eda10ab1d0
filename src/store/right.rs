use super::statement::Rows;
use super::typed::{Row, statement};
use crate::pg::array::{self, REGROLE};
use crate::pg::text::Text;
use pgrx::pg_sys;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Right {
    Read,
    Schedule,
    Claim,
}

impl Right {
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

statement! {
    pub fn granted(name: &Text) -> Option<Granted> = query_latest,
    c"SELECT j.job, j.role::pg_catalog.oid, j.readers, j.allowed, j.claimers, j.paused FROM awty.job AS j WHERE j.job = $1"
}

statement! {
    pub fn all() -> Vec<Granted> = query_as_caller,
    c"SELECT j.job, j.role::pg_catalog.oid, j.readers, j.allowed, j.claimers, j.paused FROM awty.job AS j ORDER BY j.job"
}

// Granting the right `schedule` also sets `repeats`. If the role's first awty.repeat() had to set `repeats`, the job
// would stay locked until the role ends its transaction.
statement! {
    fn update_right(job: &Text, role: pg_sys::Oid, right: Option<Text>) -> bool = query,
    c"UPDATE awty.job AS j SET readers = n.readers, allowed = n.allowed, claimers = n.claimers,
          repeats = j.repeats OR $3 IS NOT DISTINCT FROM 'schedule'
      FROM awty.job AS o CROSS JOIN LATERAL (
          SELECT pg_catalog.array_remove(o.readers, $2::pg_catalog.regrole) || CASE $3 WHEN 'read' THEN ARRAY[$2::pg_catalog.regrole] END,
                 pg_catalog.array_remove(o.allowed, $2::pg_catalog.regrole) || CASE $3 WHEN 'schedule' THEN ARRAY[$2::pg_catalog.regrole] END,
                 pg_catalog.array_remove(o.claimers, $2::pg_catalog.regrole) || CASE $3 WHEN 'claim' THEN ARRAY[$2::pg_catalog.regrole] END
      ) AS n (readers, allowed, claimers)
      WHERE j.job = $1 AND o.job = $1
        AND (j.readers, j.allowed, j.claimers) IS DISTINCT FROM (n.readers, n.allowed, n.claimers)"
}

statement! {
    /// Removes all rights to the job. Returns whether there were any.
    pub fn remove_all(job: &Text) -> bool = query,
    c"UPDATE awty.job SET readers = '{}', allowed = '{}', claimers = '{}'
      WHERE job = $1 AND (readers, allowed, claimers) IS DISTINCT FROM ('{}', '{}', '{}')"
}

statement! {
    fn lock_with_dropped(limit: i64) -> Vec<Text> = query,
    c"SELECT j.job FROM awty.job AS j
      WHERE EXISTS (
          SELECT FROM pg_catalog.unnest(j.readers || j.allowed || j.claimers) AS u (role)
          WHERE u.role::pg_catalog.oid NOT IN (SELECT o.oid FROM pg_catalog.pg_roles AS o))
      ORDER BY j.job LIMIT $1 FOR UPDATE SKIP LOCKED"
}

statement! {
    fn delete_dropped(jobs: &[Text]) = query,
    c"UPDATE awty.job AS j SET
          readers = ARRAY(SELECT u.role FROM pg_catalog.unnest(j.readers) AS u (role)
                          WHERE u.role::pg_catalog.oid IN (SELECT o.oid FROM pg_catalog.pg_roles AS o)),
          allowed = ARRAY(SELECT u.role FROM pg_catalog.unnest(j.allowed) AS u (role)
                          WHERE u.role::pg_catalog.oid IN (SELECT o.oid FROM pg_catalog.pg_roles AS o)),
          claimers = ARRAY(SELECT u.role FROM pg_catalog.unnest(j.claimers) AS u (role)
                           WHERE u.role::pg_catalog.oid IN (SELECT o.oid FROM pg_catalog.pg_roles AS o))
      WHERE j.job = ANY ($1)"
}

pub struct Granted {
    pub job: Text,
    /// Members of this role have all rights to the job.
    pub role: pg_sys::Oid,
    pub paused: bool,
    readers: Vec<pg_sys::Oid>,
    schedulers: Vec<pg_sys::Oid>,
    claimers: Vec<pg_sys::Oid>,
}

impl Granted {
    pub fn has(&self, right: Right, may_be: impl Fn(pg_sys::Oid) -> bool) -> bool {
        let (schedulers, claimers) = (&self.schedulers[..], &self.claimers[..]);
        let granted = match right {
            Right::Read => [&self.readers[..], schedulers, claimers],
            Right::Schedule => [schedulers, &[], &[]],
            Right::Claim => [claimers, &[], &[]],
        };
        may_be(self.role) || granted.into_iter().flatten().any(|role| may_be(*role))
    }
}

impl Row for Granted {
    fn read(rows: &Rows, row: usize) -> Option<Self> {
        let roles = |column| -> Vec<pg_sys::Oid> {
            let Some(roles) = rows.datum(row, column) else { return Vec::new() };
            // SAFETY: the columns of these statements are arrays of regrole.
            let roles = unsafe { array::elements(roles, REGROLE) };
            roles.into_iter().flatten().flatten().map(|role| pg_sys::Oid::from(role.value() as u32)).collect()
        };
        Some(Self {
            job: rows.get(row, 1)?,
            role: rows.get(row, 2)?,
            paused: rows.get(row, 6)?,
            readers: roles(3),
            schedulers: roles(4),
            claimers: roles(5),
        })
    }
}

/// Removes rights of dropped roles. A dump would name such a role by its number, and another role may have this number
/// on the restored server.
pub fn remove_dropped(limit: i64) {
    let jobs = lock_with_dropped(limit);
    if !jobs.is_empty() {
        delete_dropped(&jobs);
    }
}

/// Returns whether this changes the right.
pub fn set_right(name: &Text, role: pg_sys::Oid, right: Option<Right>) -> bool {
    update_right(name, role, right.map(|right| Text::from(right.word())))
}
