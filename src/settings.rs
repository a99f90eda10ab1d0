//! awty's settings. All are server-level (`postgresql.conf`, reloaded on SIGHUP), so users cannot change them.

use awty_core::Width;
use chrono::TimeDelta;
use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting};
use pgrx::{PostgresGucEnum, pg_sys};

pub const MAX_WORKERS: usize = 64;
pub const MAX_BATCH: usize = 1000;

static ENABLED: GucSetting<bool> = GucSetting::<bool>::new(true);
static SLOT: GucSetting<i32> = GucSetting::<i32>::new(60);
static WORKERS: GucSetting<i32> = GucSetting::<i32>::new(4);
static WORKERS_PER_ROLE: GucSetting<i32> = GucSetting::<i32>::new(2);
static BATCH_SIZE: GucSetting<i32> = GucSetting::<i32>::new(500);
static CATCH_UP_RATE: GucSetting<i32> = GucSetting::<i32>::new(0);
static HISTORY_RETENTION: GucSetting<i32> = GucSetting::<i32>::new(30 * 24 * 60);
static ATTEMPT_RETENTION: GucSetting<i32> = GucSetting::<i32>::new(24 * 60);
static MAX_CRASHES: GucSetting<i32> = GucSetting::<i32>::new(5);
static AUTO_ADOPT: GucSetting<bool> = GucSetting::<bool>::new(false);
static LOG_FAILURES: GucSetting<LogFailures> = GucSetting::<LogFailures>::new(LogFailures::All);
static TIME_TRAVEL: GucSetting<bool> = GucSetting::<bool>::new(false);
static SYNCHRONOUS_COMMIT: GucSetting<bool> = GucSetting::<bool>::new(false);

#[derive(Clone, Copy, PartialEq, Eq, Debug, PostgresGucEnum)]
pub enum LogFailures {
    #[name = c"all"]
    All,
    #[name = c"codes"]
    Codes,
    #[name = c"none"]
    None,
}

pub fn log_failures() -> LogFailures {
    LOG_FAILURES.get()
}

pub fn enabled() -> bool {
    ENABLED.get()
}

pub fn slot() -> Width {
    // The check hook refuses invalid values, so the default is never used.
    Width::new(i64::from(SLOT.get())).unwrap_or(Width::MINUTE)
}

pub fn max_workers() -> u32 {
    WORKERS.get().unsigned_abs()
}

pub fn max_workers_per_role() -> u32 {
    WORKERS_PER_ROLE.get().unsigned_abs()
}

pub fn batch_size() -> usize {
    BATCH_SIZE.get().unsigned_abs() as usize
}

/// 0 means no limit.
pub fn catch_up_rate() -> u32 {
    CATCH_UP_RATE.get().unsigned_abs()
}

/// `None` means that rows are never deleted.
pub fn history_retention() -> Option<TimeDelta> {
    retention(&HISTORY_RETENTION)
}

pub fn attempt_retention() -> Option<TimeDelta> {
    retention(&ATTEMPT_RETENTION)
}

fn retention(setting: &GucSetting<i32>) -> Option<TimeDelta> {
    let minutes = i64::from(setting.get());
    (minutes > 0).then(|| TimeDelta::minutes(minutes))
}

pub fn max_crashes() -> i32 {
    MAX_CRASHES.get()
}

pub fn auto_adopt() -> bool {
    AUTO_ADOPT.get()
}

pub fn time_travel() -> bool {
    TIME_TRAVEL.get()
}

pub fn synchronous_commit() -> bool {
    SYNCHRONOUS_COMMIT.get()
}

pub fn max_prepared_transactions() -> i32 {
    // SAFETY: the lookup returns a valid C string or NULL, and NULL is handled.
    unsafe {
        let value = pg_sys::GetConfigOption(c"max_prepared_transactions".as_ptr(), true, false);
        if value.is_null() {
            0
        } else {
            std::ffi::CStr::from_ptr(value).to_str().ok().and_then(|text| text.parse().ok()).unwrap_or(0)
        }
    }
}

unsafe extern "C-unwind" fn check_slot(
    new_value: *mut i32,
    _extra: *mut *mut std::ffi::c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: PostgreSQL passes a valid pointer to the new value.
    let seconds = unsafe { *new_value };
    let fits = Width::new(i64::from(seconds)).is_ok();
    if !fits {
        // SAFETY: both texts are static, and PostgreSQL does not free them.
        unsafe {
            pg_sys::GUC_check_errdetail_string = c"A slot must divide a day.".as_ptr().cast_mut();
            pg_sys::GUC_check_errhint_string =
                c"Use 1s, 5s, 15s, 1min, 5min, 15min, 1h or 1d, for example.".as_ptr().cast_mut();
        }
    }
    fits
}

pub fn register() {
    let int = |name, short, long, setting, min, max, flags| {
        GucRegistry::define_int_guc(name, short, long, setting, min, max, GucContext::Sighup, flags);
    };
    let bool = |name, short, long, setting| {
        GucRegistry::define_bool_guc(name, short, long, setting, GucContext::Sighup, GucFlags::default());
    };
    bool(
        c"awty.enabled",
        c"Runs checks.",
        c"When off, checks can be scheduled and cancelled but none runs. Checks that fall due meanwhile count as missed.",
        &ENABLED,
    );
    // SAFETY: `check_slot` only reads the value that PostgreSQL passes.
    unsafe {
        GucRegistry::define_int_guc_with_hooks(
            c"awty.slot",
            c"Sets the width of a slot: checks run at multiples of it, counted from midnight UTC.",
            c"Must divide a day. A check runs at the first slot at or after its time.",
            &SLOT,
            1,
            86_400,
            GucContext::Sighup,
            GucFlags::UNIT_S,
            Some(check_slot),
            None,
            None,
        );
    }
    int(
        c"awty.max_workers",
        c"Sets how many workers may run checks at once, in all databases.",
        c"They are taken from max_worker_processes, which also needs one for awty's launcher and two for its maintainers.",
        &WORKERS,
        1,
        MAX_WORKERS as i32,
        GucFlags::default(),
    );
    int(
        c"awty.max_workers_per_role",
        c"Sets how many workers may run checks of one role in one database at once.",
        c"A second worker helps a role whose checks have been waiting behind a slow run for a second.",
        &WORKERS_PER_ROLE,
        1,
        MAX_WORKERS as i32,
        GucFlags::default(),
    );
    int(
        c"awty.batch_size",
        c"Sets how many checks a worker may run between two flushes of the write-ahead log.",
        c"A worker takes fewer checks if runs take longer. A set-based job gets at most this number of rows in one call.",
        &BATCH_SIZE,
        1,
        MAX_BATCH as i32,
        GucFlags::default(),
    );
    int(
        c"awty.catch_up_rate",
        c"Sets how many missed checks are caught up on per second; 0 sets no limit.",
        c"Checks whose slot passed while nothing could run are run at this rate, beside the checks of new slots.",
        &CATCH_UP_RATE,
        0,
        1_000_000,
        GucFlags::default(),
    );
    int(
        c"awty.history_retention",
        c"Sets how long finished checks are kept; 0 keeps them for ever.",
        c"The history is dropped in whole days, once the last hour of a day is older than this.",
        &HISTORY_RETENTION,
        0,
        i32::MAX,
        GucFlags::UNIT_MIN,
    );
    int(
        c"awty.attempt_retention",
        c"Sets how long ended leases of external workers are kept; 0 keeps them for ever.",
        c"They are dropped in whole days, once the last hour of a day is older than this.",
        &ATTEMPT_RETENTION,
        0,
        i32::MAX,
        GucFlags::UNIT_MIN,
    );
    int(
        c"awty.max_crashes",
        c"Sets how often the server or a worker may go down during runs of a check before the check is held.",
        c"A held check stays in awty.future_job until awty.release().",
        &MAX_CRASHES,
        1,
        1000,
        GucFlags::default(),
    );
    bool(
        c"awty.auto_adopt",
        c"Runs the checks of a restored or cloned database without awty.adopt().",
        c"Leave this off on servers to which copies of a production database are restored.",
        &AUTO_ADOPT,
    );
    bool(
        c"awty.time_travel",
        c"Lets a client move the clock of its own transaction ahead by awty.travel(), for tests.",
        c"Leave this off on a production server, because the checks that such a transaction runs stay locked until it ends.",
        &TIME_TRAVEL,
    );
    bool(
        c"awty.synchronous_commit",
        c"Commits each run as a client's transaction, instead of flushing once per batch.",
        c"When on, runs begin only when the synchronous standbys have acknowledged their batch. When off, a crash or a failover may undo the last runs completely. Their checks then run again.",
        &SYNCHRONOUS_COMMIT,
    );
    GucRegistry::define_enum_guc(
        c"awty.log_failures",
        c"Sets what the server log says about failed runs and checks that end with a problem.",
        c"With all, the log has what failed and why. With codes, it has only numbers of checks, outcomes and SQLSTATEs, but no name, key or message. With none, it has nothing.",
        &LOG_FAILURES,
        GucContext::Sighup,
        GucFlags::default(),
    );
    reserve_prefix();
}

/// Makes PostgreSQL refuse misspelt `awty.` settings.
fn reserve_prefix() {
    // SAFETY: the prefix is a constant C string.
    unsafe { pg_sys::MarkGUCPrefixReserved(c"awty".as_ptr()) };
}
