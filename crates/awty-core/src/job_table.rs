//! Counters and log state of jobs, in a table of fixed size.
//!
//! Invariant: each run is counted in exactly one row of its database. If the table is full, a new job replaces the job
//! whose last run is oldest. The database's row for *other jobs* gets the replaced job's counters.

use crate::argument_limits::{MAX_ENTITY_NAME, MAX_JOB};
use crate::figures::Figures;
use crate::log_rate::LogRate;
use crate::{Mono, Passed, Time};

#[derive(Clone, Copy, Debug)]
pub struct JobRow {
    database: u32,
    name: [u8; MAX_JOB],
    len: u8,
    pub figures: Figures,
    pub since: Time,
    pub is_new: bool,
    pub log: LogRate,
    pub claimed_at: Option<Time>,
    pub served_at: Option<Time>,
    /// Last target of the last claim. The next claim begins with the target that follows, so that targets take turns.
    pub target: TargetName,
}

#[derive(Clone, Copy, Debug)]
pub struct TargetName {
    len: u8,
    bytes: [u8; MAX_ENTITY_NAME],
}

impl TargetName {
    const NONE: Self = Self { len: 0, bytes: [0; MAX_ENTITY_NAME] };

    pub fn new(name: &[u8]) -> Self {
        let mut copy = Self::NONE;
        let len = name.len().min(MAX_ENTITY_NAME);
        copy.bytes[..len].copy_from_slice(&name[..len]);
        Self { len: len as u8, ..copy }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl JobRow {
    const FREE: Self = Self {
        database: 0,
        name: [0; MAX_JOB],
        len: 0,
        figures: Figures::NONE,
        since: Time::UNIX_EPOCH,
        is_new: false,
        log: LogRate::QUIET,
        claimed_at: None,
        served_at: None,
        target: TargetName::NONE,
    };

    pub fn name(&self) -> &[u8] {
        &self.name[..usize::from(self.len)]
    }

    pub fn database(&self) -> u32 {
        self.database
    }
}

/// Counters of up to `JOBS` jobs, with one row for each job. An extra row for each database adds up the counters of the
/// database's other jobs.
#[derive(Clone, Debug)]
pub struct JobTable<const N: usize, const JOBS: usize> {
    /// For each row, a hash of its database and job name, or 0 if the row is free. A search compares hashes, because
    /// comparing all names would take longer than a short run.
    keys: [u64; N],
    rows: [JobRow; N],
    jobs: usize,
}

fn key(database: u32, name: &[u8]) -> u64 {
    let bytes = database.to_le_bytes();
    let hash = bytes
        .iter()
        .chain(name)
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    hash.max(1)
}

impl<const N: usize, const JOBS: usize> JobTable<N, JOBS> {
    pub const EMPTY: Self = Self { keys: [0; N], rows: [JobRow::FREE; N], jobs: 0 };

    fn find(&self, database: u32, name: &[u8]) -> Option<usize> {
        let wanted = key(database, name);
        let is_it = |index: &usize| {
            let row = &self.rows[*index];
            row.database == database && row.name() == name
        };
        (0..N).filter(|index| self.keys[*index] == wanted).find(is_it)
    }

    pub fn get(&self, database: u32, name: &[u8]) -> Option<&JobRow> {
        self.find(database, name).map(|index| &self.rows[index])
    }

    /// Returns the job's row. If the job has replaced another job, also returns the replaced job's database.
    pub fn row(&mut self, database: u32, name: &[u8], now: Time) -> (Option<&mut JobRow>, Option<u32>) {
        if name.len() > MAX_JOB {
            return (None, None);
        }
        if let Some(index) = self.find(database, name) {
            return (Some(&mut self.rows[index]), None);
        }
        let left = if name.is_empty() || self.jobs < JOBS { None } else { self.merge_oldest() };
        let Some(index) = self.keys.iter().position(|key| *key == 0) else { return (None, left) };
        self.keys[index] = key(database, name);
        self.jobs += usize::from(!name.is_empty());
        let row = &mut self.rows[index];
        *row = JobRow { database, len: name.len() as u8, since: now, ..JobRow::FREE };
        row.name[..name.len()].copy_from_slice(name);
        (Some(row), left)
    }

    fn merge_oldest(&mut self) -> Option<u32> {
        let named = (0..N).filter(|index| self.keys[*index] != 0 && self.rows[*index].len > 0);
        let oldest = named.min_by_key(|index| self.rows[*index].figures.last_run_at)?;
        let row = self.rows[oldest];
        self.jobs -= 1;
        match self.find(row.database, b"") {
            Some(others) => {
                self.keys[oldest] = 0;
                let others = &mut self.rows[others];
                others.figures.add(&row.figures);
                others.since = others.since.min(row.since);
                others.is_new = true;
            }
            None => {
                self.keys[oldest] = key(row.database, b"");
                self.rows[oldest] = JobRow { len: 0, is_new: true, log: LogRate::QUIET, ..row };
            }
        }
        Some(row.database)
    }

    pub fn forget(&mut self, database: u32, name: &[u8]) -> bool {
        let found = self.find(database, name);
        if let Some(index) = found {
            self.keys[index] = 0;
            self.jobs -= usize::from(!name.is_empty());
        }
        found.is_some()
    }

    pub fn forget_database(&mut self, database: u32) {
        for index in 0..N {
            if self.keys[index] != 0 && self.rows[index].database == database {
                self.keys[index] = 0;
                self.jobs -= usize::from(self.rows[index].len > 0);
            }
        }
    }

    pub fn of(&self, database: u32) -> impl Iterator<Item = &JobRow> {
        let is_used = move |(key, row): &(&u64, &JobRow)| **key != 0 && row.database == database;
        self.keys.iter().zip(&self.rows).filter(is_used).map(|(_, row)| row)
    }

    pub fn of_mut(&mut self, database: u32) -> impl Iterator<Item = &mut JobRow> {
        let is_used = move |(key, row): &(&u64, &mut JobRow)| **key != 0 && row.database == database;
        self.keys.iter().zip(&mut self.rows).filter(is_used).map(|(_, row)| row)
    }

    pub fn summaries(&mut self, database: u32, now: Mono) -> Vec<(Vec<u8>, Passed)> {
        self.of_mut(database)
            .filter_map(|row| row.log.summary(now).map(|passed| (row.name().to_vec(), passed)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Fate, RunOf};
    use crate::testing::clock;
    use chrono::TimeDelta;

    fn run(second: i64) -> RunOf {
        let started_at = clock("10:00:00") + TimeDelta::seconds(second);
        RunOf { started_at, finished_at: started_at, lateness: TimeDelta::zero() }
    }

    fn names(table: &JobTable<2060, 2048>, database: u32) -> Vec<String> {
        let mut names: Vec<_> =
            table.of(database).map(|row| String::from_utf8_lossy(row.name()).into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_job_that_has_not_run_for_longest_makes_room_and_loses_no_number() {
        let mut table = Box::new(JobTable::<2060, 2048>::EMPTY);
        for job in 0..2049_i64 {
            let (row, left) = table.row(1, format!("job {job}").as_bytes(), clock("09:00:00"));
            row.unwrap().figures.ran(&run(if job == 7 { 9_999 } else { job }), Fate::Again);
            assert_eq!(left, (job == 2048).then_some(1), "{job}");
        }
        let names = names(&table, 1);
        assert_eq!((names.len(), names[0].as_str()), (2049, ""));
        assert!(!names.contains(&"job 0".into()) && names.contains(&"job 7".into()));
        assert_eq!(table.of(1).map(|row| row.figures.runs).sum::<u64>(), 2049);
        table.row(1, b"job 0", clock("09:00:00"));
        assert_eq!(table.of(1).count(), 2049);
        assert_eq!(table.of(1).find(|row| row.name().is_empty()).unwrap().figures.runs, 2);
    }

    #[test]
    fn a_job_is_merged_within_its_own_database() {
        let mut table = Box::new(JobTable::<2060, 2048>::EMPTY);
        for job in 0..2048_i64 {
            let (row, _) = table.row(1, format!("job {job}").as_bytes(), clock("09:00:00"));
            row.unwrap().figures.ran(&run(job), Fate::Again);
        }
        let (row, left) = table.row(2, b"job 0", clock("09:00:00"));
        assert_eq!((row.unwrap().figures.runs, left), (0, Some(1)));
        assert_eq!((table.of(1).count(), names(&table, 2)), (2048, vec!["job 0".to_owned()]));
        table.forget_database(1);
        assert_eq!((table.of(1).count(), table.of(2).count()), (0, 1));
        assert!(table.forget(2, b"job 0") && !table.forget(2, b"job 0"));
        assert_eq!(table.jobs, 0);
    }
}
