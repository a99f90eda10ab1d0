use super::job_option::{self, Field, JobOption, Options};
use super::statement::{Arg, Rows};
use super::typed::statement;
use super::{arg, from_timestamptz, time};
use super::{origin, patience};
use crate::error::Error;
use crate::pg::text::Text;
use crate::pg::{changes, claim_lock, clock, relations, subtransaction};
use crate::settings;
use crate::store::typed::number;
use awty_core::lease::lock::{self, Number};
use awty_core::{Time, Width};
use chrono::TimeDelta;
use pgrx::datum::Interval;
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

#[derive(Clone, PartialEq)]
pub struct Job {
    pub name: Text,
    /// Schema of the function, or empty if external workers claim the job's checks.
    pub schema: Text,
    pub function: Text,
    pub role: pg_sys::Oid,
    pub set_based: bool,
    pub options: Options,
    pub paused: bool,
    pub resumed_at: Option<Time>,
    pub registered_by: pg_sys::Oid,
    pub notify: Option<Text>,
    pub repeats: bool,
}

impl Job {
    pub fn is_external(&self) -> bool {
        self.function.len() == 0
    }

    pub fn runner(&self) -> Option<pg_sys::Oid> {
        (!self.is_external()).then_some(self.role)
    }

    pub fn says_the_same(&self, other: &Job) -> bool {
        let words = |job: &Job| {
            let Job { schema, function, role, set_based, options, notify, .. } = job.clone();
            (schema, function, role, set_based, options, notify)
        };
        words(self) == words(other)
    }
}

statement! {
    fn select_one(name: &Text) -> Option<Result<Job, String>> = query_latest(read_one),
    c"SELECT job, function_schema, function_name, role::pg_catalog.oid, set_based, slot, timeout, max_checks, max_horizon,
             max_attempts, retry_after, on_missed, max_lateness, keep_history, paused, resumed_at, registered_by::pg_catalog.oid,
             notify, repeats, heartbeat, delivery, keep_attempts
      FROM awty.job WHERE job = $1"
}

statement! {
    fn lock_one(name: &Text) -> Option<Result<Job, String>> = query(read_one),
    c"SELECT job, function_schema, function_name, role::pg_catalog.oid, set_based, slot, timeout, max_checks, max_horizon,
             max_attempts, retry_after, on_missed, max_lateness, keep_history, paused, resumed_at, registered_by::pg_catalog.oid,
             notify, repeats, heartbeat, delivery, keep_attempts
      FROM awty.job WHERE job = $1 FOR UPDATE"
}

statement! {
    pub fn count(role: pg_sys::Oid, limit: i64) -> i64 = query_latest(number),
    c"SELECT pg_catalog.count(*) FROM (SELECT 1 FROM awty.job AS j WHERE j.role = $1 LIMIT $2) AS counted"
}

statement! {
    pub fn of_role(role: pg_sys::Oid) -> Vec<Result<Job, (Text, String)>>
        = query(|rows| (0..rows.len()).map(|row| read(rows, row)).collect()),
    c"SELECT job, function_schema, function_name, role::pg_catalog.oid, set_based, slot, timeout, max_checks, max_horizon,
             max_attempts, retry_after, on_missed, max_lateness, keep_history, paused, resumed_at, registered_by::pg_catalog.oid,
             notify, repeats, heartbeat, delivery, keep_attempts
      FROM awty.job WHERE role = $1 AND function_name IS NOT NULL ORDER BY job"
}

statement!(
    insert_one,
    [
        TEXTOID, TEXTOID, TEXTOID, OIDOID, BOOLOID, INTERVALOID, INTERVALOID, INT4OID, INTERVALOID, INT4OID,
        INTERVALOID, TEXTOID, INTERVALOID, TEXTOID, TEXTOID, INTERVALOID, TEXTOID, TEXTOID, OIDOID, TIMESTAMPTZOID
    ],
    c"INSERT INTO awty.job (job, function_schema, function_name, role, set_based, slot, timeout, max_checks, max_horizon,
             max_attempts, retry_after, on_missed, max_lateness, keep_history, notify, heartbeat, delivery, keep_attempts,
             registered_by, registered_at)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
      ON CONFLICT (job) DO NOTHING"
);

statement! {
    update_one,
    [
        TEXTOID, TEXTOID, TEXTOID, OIDOID, BOOLOID, INTERVALOID, INTERVALOID, INT4OID, INTERVALOID, INT4OID,
        INTERVALOID, TEXTOID, INTERVALOID, TEXTOID, TEXTOID, INTERVALOID, TEXTOID, TEXTOID, OIDOID
    ],
    c"UPDATE awty.job SET function_schema = $2, function_name = $3, role = $4, set_based = $5, slot = $6, timeout = $7,
             max_checks = $8, max_horizon = $9, max_attempts = $10, retry_after = $11, on_missed = $12,
             max_lateness = $13, keep_history = $14, notify = $15, heartbeat = $16, delivery = $17, keep_attempts = $18,
             registered_by = $19
      WHERE job = $1"
}

statement! {
    pub fn delete(name: &Text) -> bool = query,
    c"DELETE FROM awty.job WHERE job = $1"
}

statement!(
    update_paused,
    [TEXTOID, BOOLOID, TIMESTAMPTZOID, OIDOID, TEXTOID, TIMESTAMPTZOID],
    c"UPDATE awty.job SET paused = $2, resumed_at = CASE WHEN $2 THEN resumed_at ELSE $3 END,
          paused_at = CASE WHEN $2 THEN $3 END, paused_by = $4::pg_catalog.regrole, paused_note = $5, paused_until = $6
      WHERE job = $1 AND (paused, paused_by, paused_note, paused_until) IS DISTINCT FROM ($2, $4::pg_catalog.regrole, $5, $6)"
);

statement! {
    pub fn paused_until(name: &Text) -> Option<Time> = query_latest,
    c"SELECT paused_until FROM awty.job WHERE job = $1"
}

statement! {
    pub fn first_end(role: pg_sys::Oid, after: Time) -> Option<Time> = query,
    c"SELECT j.paused_until FROM awty.job AS j
      WHERE j.paused_until IS NOT NULL AND j.paused_until > $2 AND ($1 IS NULL OR j.role::pg_catalog.oid = $1)
      ORDER BY j.paused_until LIMIT 1"
}

statement! {
    /// Resumes jobs whose pause has ended. For each job, returns the role and, if the job has a function, the job's
    /// first due time.
    pub fn resume_passed(now: Time, role: pg_sys::Oid) -> Vec<(pg_sys::Oid, Option<Time>)> = query,
    c"UPDATE awty.job SET paused = false, resumed_at = paused_until, paused_at = NULL, paused_by = NULL, paused_note = NULL, paused_until = NULL
      WHERE job = ANY (ARRAY(
          SELECT j.job FROM awty.job AS j
          WHERE j.paused_until IS NOT NULL AND j.paused_until <= $1 AND ($2 IS NULL OR j.role::pg_catalog.oid = $2) FOR UPDATE SKIP LOCKED))
      RETURNING role::pg_catalog.oid, CASE WHEN function_name IS NOT NULL THEN (
          SELECT f.next_check_at FROM awty.future_job AS f
          WHERE f.job = job.job AND NOT f.held ORDER BY f.next_check_at LIMIT 1) END"
}

statement!(update_repeats, [TEXTOID], c"UPDATE awty.job SET repeats = true WHERE job = $1 AND NOT repeats");

fn read_one(rows: &Rows) -> Option<Result<Job, String>> {
    (rows.len() > 0).then(|| read(rows, 0).map_err(|(_, message)| message))
}

fn read(rows: &Rows, row: usize) -> Result<Job, (Text, String)> {
    let name: Text = rows.get(row, 1).unwrap_or_else(|| Text::from(""));
    let options = read_options(rows, row).map_err(|message| (name.clone(), message))?;
    let text = |column| rows.get::<Text>(row, column).unwrap_or_else(|| Text::from(""));
    Ok(Job {
        schema: text(2),
        function: text(3),
        role: rows.get(row, 4).unwrap_or(pg_sys::InvalidOid),
        set_based: rows.get(row, 5).unwrap_or(false),
        options,
        paused: rows.get(row, 15).unwrap_or(false),
        resumed_at: rows.get(row, 16).map(from_timestamptz),
        registered_by: rows.get(row, 17).unwrap_or(pg_sys::InvalidOid),
        notify: rows.get(row, 18),
        repeats: rows.get(row, 19).unwrap_or(true),
        name,
    })
}

fn read_options(rows: &Rows, row: usize) -> Result<Options, String> {
    let mut options = Options::defaults(Width::MINUTE);
    for JobOption { column, field, .. } in job_option::all() {
        let time = || rows.get::<Interval>(row, *column).as_ref().and_then(clock::delta);
        match field(&mut options) {
            Field::Time(value) => *value = time().unwrap_or_default(),
            Field::OptionalTime(value) => *value = time(),
            Field::Count(value) => *value = u32::try_from(rows.get(row, *column).unwrap_or(-1)).unwrap_or(u32::MAX),
            Field::Word(value) => {
                let word = rows.get::<Text>(row, *column).map(|text| text.to_string()).unwrap_or_default();
                value.set(&word).map_err(|error| error.to_string())?;
            }
        }
    }
    options.limits.width = width(options.slot)?;
    options.limits.check().and_then(|()| options.terms.check()).map_err(|error| error.to_string())?;
    Ok(options)
}

pub fn width(slot: Option<TimeDelta>) -> Result<Width, String> {
    let own = slot.map(|slot| Width::new(slot.num_seconds())).transpose().map_err(|error| error.to_string())?;
    Ok(awty_core::slot::effective(own, settings::slot()))
}

pub fn find(name: &Text) -> Option<Result<Job, String>> {
    thread_local! {
        static KNOWN: RefCell<HashMap<Text, (u64, Job)>> = RefCell::default();
    }
    changes::listen();
    let epoch = changes::of_rows();
    if let Some((then, mut job)) = KNOWN.with_borrow(|known| known.get(name).cloned())
        && then == epoch
    {
        // Computes the slot width again, because `awty.slot` may have changed since the job was cached.
        let width = width(job.options.slot);
        return Some(width.map(|width| {
            job.options.limits.width = width;
            job
        }));
    }
    let found = select_one(name);
    if let Some(Ok(job)) = &found
        // SAFETY: the function only reads this process's transaction state.
        && !unsafe { pg_sys::IsInParallelMode() }
    {
        KNOWN.with_borrow_mut(|known| known.insert(name.clone(), (epoch, job.clone())));
    }
    found
}

/// Waits for a transaction that has locked the job, but no longer than `PATIENCE`.
pub fn lock(name: &Text) -> Option<Result<Job, String>> {
    waiting_for(name, || lock_one(name))
}

/// Waits for transactions that use the job, but no longer than `PATIENCE`.
pub fn waiting_for<R>(name: &Text, run: impl FnOnce() -> R) -> R {
    patience::wait(|| Error::JobBusy { job: name.to_string() }, run)
}

thread_local! {
    /// Name that this session has shared last. A subtransaction that has the lock does not take it again.
    static SHARED: RefCell<Option<((u32, u32), Text)>> = const { RefCell::new(None) };
}

/// Keeps the name from other roles until the transaction ends, so that checks that the transaction schedules cannot
/// become checks of another role's job. Then looks up what the caller needs, and gives the name back if that fails.
/// PostgreSQL would keep the lock until the client has read the error.
pub fn sharing_name<R, E>(name: &Text, find: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
    let here = subtransaction::number();
    let is_here = |last: &((u32, u32), Text)| last.0 == here && last.1 == *name;
    if SHARED.with_borrow(|last| last.as_ref().is_some_and(is_here)) {
        return find();
    }
    let Some((jobs, number)) = name_lock(name) else { return find() };
    if !claim_lock::try_share(jobs, number) {
        waiting_for(name, || claim_lock::share(jobs, number));
    }
    let found = find();
    if found.is_err() {
        claim_lock::stop_sharing(jobs, number);
    } else {
        SHARED.set(Some((here, name.clone())));
    }
    found
}

/// Like [`sharing_name`], but does not wait. Returns `false` if a transaction has taken the name.
pub fn try_share_name(name: &Text) -> bool {
    name_lock(name).is_some_and(|(jobs, number)| claim_lock::try_share(jobs, number))
}

/// Waits for transactions that have scheduled checks of a job with this name, but no longer than `PATIENCE`. A caller
/// that gives the name to another role calls this function before it locks the job's row, because transactions that
/// schedule checks may lock the row too.
pub fn take_name(name: &Text) {
    if let Some((jobs, number)) = name_lock(name) {
        waiting_for(name, || claim_lock::take(jobs, number));
    }
}

/// Waits for open claims of the job's checks, but no longer than `PATIENCE`, and keeps others from claiming them.
pub fn take_claims(name: &Text) {
    if let Some(leases) = relations::oid(relations::LEASE) {
        let number = lock::of_claims(origin::identity(), name.as_bytes());
        waiting_for(name, || claim_lock::take(leases, number));
    }
}

fn name_lock(name: &Text) -> Option<(pg_sys::Oid, Number)> {
    thread_local! {
        static IDENTITY: Cell<(pg_sys::Oid, i64)> = const { Cell::new((pg_sys::InvalidOid, 0)) };
    }
    let jobs = relations::oid(relations::JOB)?;
    if IDENTITY.get().0 != jobs {
        IDENTITY.set((jobs, origin::identity()));
    }
    Some((jobs, lock::of_name(IDENTITY.get().1, name.as_bytes())))
}

/// Inserts a job with a new name. The caller must have taken the name.
pub fn insert(job: &Job, now: Time) -> bool {
    let mut args = row(job);
    args.extend([arg(job.registered_by), time(now)]);
    waiting_for(&job.name, || insert_one().execute(&args)) == 1
}

pub fn update(job: &Job) -> bool {
    let mut args = row(job);
    args.push(arg(job.registered_by));
    update_one().execute(&args) == 1
}

fn row(job: &Job) -> Vec<Arg> {
    let function = |text: &Text| (!job.is_external()).then(|| text.datum());
    let mut row =
        vec![Some(job.name.datum()), function(&job.schema), function(&job.function), arg(job.role), arg(job.set_based)];
    row.extend(job_option::LIMITS.iter().map(|option| option.arg(job.options)));
    row.push(job.notify.as_ref().map(Text::datum));
    row.extend(job_option::EXTERNAL.iter().map(|option| option.arg(job.options)));
    row
}

pub struct Pause {
    pub by: pg_sys::Oid,
    pub note: Option<Text>,
    pub until: Option<Time>,
}

pub fn set_paused(name: &Text, pause: Option<&Pause>, now: Time) -> bool {
    let by = pause.and_then(|pause| arg(pause.by));
    let note = pause.and_then(|pause| pause.note.as_ref()).map(Text::datum);
    let until = pause.and_then(|pause| pause.until).and_then(time);
    update_paused().execute(&[Some(name.datum()), arg(pause.is_some()), time(now), by, note, until]) == 1
}

pub fn set_repeats(name: &Text) -> bool {
    waiting_for(name, || update_repeats().execute(&[Some(name.datum())])) == 1
}
