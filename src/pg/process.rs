//! What awty's background processes have in common: how they are registered, how they answer signals, how they wait.
//!
//! Invariant: SIGTERM ends a process at its next interrupt check (`die`), also in the middle of a run, so that nothing of
//! awty outlives a shutdown or DROP DATABASE … WITH (FORCE); a changed configuration is read at the next turn.
//! Does not: know what a process is for.

use super::clock::{self, Woken};
use super::unbound;
use pgrx::pg_sys;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// The process that sent SIGTERM first; 0 before that.
static TERMINATED_BY: AtomicI32 = AtomicI32::new(0);

/// Did another process end this one? If not, its own run has.
pub fn was_terminated_by_another() -> bool {
    let by = TERMINATED_BY.load(Ordering::Relaxed);
    // SAFETY: this process's own number.
    by != 0 && by != unsafe { pg_sys::MyProcPid }
}

/// SIGTERM: notes who sent it, and does what PostgreSQL does.
///
/// # Safety
/// Runs in a signal handler.
unsafe extern "C" fn terminated(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: the kernel passes a valid pointer; the rest is made for signal handlers.
    unsafe {
        let _ = TERMINATED_BY.compare_exchange(0, (*info).si_pid(), Ordering::Relaxed, Ordering::Relaxed);
        unbound::DIE(signal);
    }
}

/// Lets the C library keep a little of the memory that is freed. Else it gives the end of the heap back to the kernel whenever 128 kB
/// of it are free, and takes it again for the next statement. What its own default does once a larger piece has been freed.
pub fn keep_freed_memory() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(1024 * 1024)));
}

/// What one worker is told when it starts; copied through `bgw_extra`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Assignment {
    pub database: pg_sys::Oid,
    pub role: pg_sys::Oid,
    pub entry: u32,
    pub generation: u64,
}

/// Describes a process to the postmaster.
///
/// The name is the same for all processes of a kind: it can be seen by everybody.
pub fn describe(
    name: &CStr,
    function: &CStr,
    restart: i32,
    assignment: Option<Assignment>,
) -> pg_sys::BackgroundWorker {
    let mut worker = pg_sys::BackgroundWorker {
        bgw_flags: (pg_sys::BGWORKER_SHMEM_ACCESS | pg_sys::BGWORKER_BACKEND_DATABASE_CONNECTION) as i32,
        // Not on a standby, and at once after a promotion.
        bgw_start_time: pg_sys::BgWorkerStartTime::BgWorkerStart_RecoveryFinished,
        bgw_restart_time: restart,
        // SAFETY: this process's own number; 0 in the postmaster, because nobody has to be told.
        bgw_notify_pid: if assignment.is_some() { unsafe { pg_sys::MyProcPid } } else { 0 },
        ..Default::default()
    };
    copy(&mut worker.bgw_name, name);
    copy(&mut worker.bgw_type, name);
    copy(&mut worker.bgw_library_name, c"awty");
    copy(&mut worker.bgw_function_name, function);
    if let Some(assignment) = assignment {
        const { assert!(size_of::<Assignment>() <= pg_sys::BGW_EXTRALEN as usize) };
        // SAFETY: both are plain bytes, and there is room, as asserted.
        unsafe { worker.bgw_extra.as_mut_ptr().cast::<Assignment>().write_unaligned(assignment) };
    }
    worker
}

fn copy(to: &mut [c_char], text: &CStr) {
    for (to, from) in to.iter_mut().zip(text.to_bytes_with_nul()) {
        *to = *from as c_char;
    }
}

/// What this process was told when it started.
pub fn assignment() -> Assignment {
    // SAFETY: set by the postmaster for background workers, of which this is one; written by `describe`.
    unsafe { (*pg_sys::MyBgworkerEntry).bgw_extra.as_ptr().cast::<Assignment>().read_unaligned() }
}

/// Sets the signal handlers and lets signals in. SIGINT stays what it is: it cancels the current run.
pub fn listen_to_signals() {
    // SAFETY: handlers of PostgreSQL itself, made for this.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        use pg_sys::pqsignal;
        #[cfg(feature = "pg18")]
        use pg_sys::pqsignal_be as pqsignal;
        // As pqsignal() does it, which does not pass on who has sent the signal.
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = terminated as *const () as usize;
        action.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(libc::SIGTERM, &action, std::ptr::null_mut());
        pqsignal(libc::SIGHUP, Some(unbound::RELOAD));
        pg_sys::BackgroundWorkerUnblockSignals();
        // A SIGHUP that came before the handler was there is lost; what it was about is not.
        pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP);
    }
}

/// At every turn of a loop: die if told to, take part in barriers, read a changed configuration.
pub fn answer_signals() {
    // SAFETY: called outside of critical sections, in a process that has set its handlers.
    unsafe {
        pgrx::check_for_interrupts!();
        if (&raw const pg_sys::ConfigReloadPending).read_volatile() != 0 {
            (&raw mut pg_sys::ConfigReloadPending).write_volatile(0);
            pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP);
        }
    }
}

/// Waits for the latch, at most so long.
pub fn wait(duration: Duration) -> Woken {
    clock::sleep(duration, wait_event())
}

/// The name under which a waiting process is seen in `pg_stat_activity`.
fn wait_event() -> u32 {
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    {
        use std::sync::OnceLock;
        static EVENT: OnceLock<u32> = OnceLock::new();
        // SAFETY: a constant C string; the number is the same in all processes.
        *EVENT.get_or_init(|| unsafe { pg_sys::WaitEventExtensionNew(c"AwtyWaitForSlot".as_ptr()) })
    }
    // Before PostgreSQL 17 all extensions share one name, "Extension".
    #[cfg(not(any(feature = "pg17", feature = "pg18")))]
    pg_sys::PG_WAIT_EXTENSION
}

/// What the process does, for `pg_stat_activity`; the same words for every job.
pub fn report(activity: Option<&CStr>) {
    let (state, text) = match activity {
        Some(text) => (pg_sys::BackendState::STATE_RUNNING, text.as_ptr()),
        None => (pg_sys::BackendState::STATE_IDLE, std::ptr::null()),
    };
    // SAFETY: null or a constant C string.
    unsafe { pg_sys::pgstat_report_activity(state, text) };
}

/// Sends the counters of the statistics views on their way: now, or when a second has passed since they were last sent.
pub fn report_statistics(now: bool) {
    // SAFETY: called between transactions.
    unsafe {
        pg_sys::pgstat_report_stat(now);
    }
}

/// Ends the process: 0 for good, 1 to be started again where that is foreseen.
pub fn exit(code: i32) -> ! {
    // SAFETY: ends this process in the way PostgreSQL wants it.
    unsafe { pg_sys::proc_exit(code) };
    // The bindings of PostgreSQL 18 do not tell that it never returns.
    #[cfg(feature = "pg18")]
    unreachable!()
}

/// Does somebody wait to drop, rename or copy a database? Then nothing of awty may be connected to it.
///
/// Such a command takes a lock on the database first, and then waits five seconds for connections to go away.
pub fn is_database_wanted(database: pg_sys::Oid) -> bool {
    let tag = pg_sys::LOCKTAG {
        locktag_field1: 0,
        locktag_field2: pg_sys::DatabaseRelationId.to_u32(),
        locktag_field3: database.to_u32(),
        locktag_field4: 0,
        locktag_type: pg_sys::LockTagType::LOCKTAG_OBJECT as u8,
        locktag_lockmethodid: pg_sys::DEFAULT_LOCKMETHOD as u8,
    };
    let mode = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;
    // SAFETY: a session lock, taken without waiting and given back at once; the kind that connecting takes, too.
    unsafe {
        match pg_sys::LockAcquire(&tag, mode, true, true) {
            pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL => true,
            _ => {
                pg_sys::LockRelease(&tag, mode, true);
                false
            }
        }
    }
}
