//! Invariant: SIGTERM ends a process at its next interrupt check, even within a run, so that no process survives a
//! shutdown or DROP DATABASE … WITH (FORCE).

pub mod session;
pub mod session_locks;
pub mod session_settings;
pub mod sync_rep;
pub mod timer;
pub mod transaction;
pub mod vacuum;

use crate::pg::clock::{self, Woken};
use crate::pg::unbound;
use pgrx::pg_sys;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

static TERMINATED_BY: AtomicI32 = AtomicI32::new(0);

pub fn was_terminated_by_another() -> bool {
    let by = TERMINATED_BY.load(Ordering::Relaxed);
    // SAFETY: no other thread uses this variable.
    by != 0 && by != unsafe { pg_sys::MyProcPid }
}

unsafe extern "C" fn terminated(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: the kernel passes a valid `info`, and all calls are safe in a signal handler.
    unsafe {
        let _ = TERMINATED_BY.compare_exchange(0, (*info).si_pid(), Ordering::Relaxed, Ordering::Relaxed);
        unbound::DIE(signal);
    }
}

/// Allocates one large block and frees it at once. The C library then raises its limit for returning free memory to the
/// kernel, so the process keeps the memory that it frees later.
pub fn keep_freed_memory() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(1024 * 1024)));
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Assignment {
    pub database: pg_sys::Oid,
    pub role: pg_sys::Oid,
    pub entry: u32,
    pub generation: u64,
}

/// A process's name contains no job or role, because every role can see it.
pub fn describe(
    name: &CStr,
    function: &CStr,
    restart: i32,
    assignment: Option<Assignment>,
) -> pg_sys::BackgroundWorker {
    let mut worker = pg_sys::BackgroundWorker {
        bgw_flags: (pg_sys::BGWORKER_SHMEM_ACCESS | pg_sys::BGWORKER_BACKEND_DATABASE_CONNECTION) as i32,
        bgw_start_time: pg_sys::BgWorkerStartTime::BgWorkerStart_RecoveryFinished,
        bgw_restart_time: restart,
        // SAFETY: no other thread uses this variable.
        bgw_notify_pid: if assignment.is_some() { unsafe { pg_sys::MyProcPid } } else { 0 },
        ..Default::default()
    };
    copy(&mut worker.bgw_name, name);
    copy(&mut worker.bgw_type, name);
    copy(&mut worker.bgw_library_name, c"awty");
    copy(&mut worker.bgw_function_name, function);
    if let Some(assignment) = assignment {
        const { assert!(size_of::<Assignment>() <= pg_sys::BGW_EXTRALEN as usize) };
        // SAFETY: an assignment is plain data, and fits into `bgw_extra`.
        unsafe { worker.bgw_extra.as_mut_ptr().cast::<Assignment>().write_unaligned(assignment) };
    }
    worker
}

fn copy(to: &mut [c_char], text: &CStr) {
    for (to, from) in to.iter_mut().zip(text.to_bytes_with_nul()) {
        *to = *from as c_char;
    }
}

pub fn assignment() -> Assignment {
    // SAFETY: `describe` wrote an `Assignment` into `bgw_extra`, which the postmaster passed on.
    unsafe { (*pg_sys::MyBgworkerEntry).bgw_extra.as_ptr().cast::<Assignment>().read_unaligned() }
}

/// Keeps PostgreSQL's handler of SIGINT, because a SIGINT cancels the current run.
pub fn listen_to_signals() {
    // SAFETY: `action` is filled in completely, and all handlers are safe in a signal.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        use pg_sys::pqsignal;
        #[cfg(feature = "pg18")]
        use pg_sys::pqsignal_be as pqsignal;
        // Does not use pqsignal(), because its handlers do not receive the PID of the process that sent the signal.
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = terminated as *const () as usize;
        action.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(libc::SIGTERM, &action, std::ptr::null_mut());
        pqsignal(libc::SIGHUP, Some(unbound::RELOAD));
        pg_sys::BackgroundWorkerUnblockSignals();
        // Reads the configuration again, because a SIGHUP before this point had no effect.
        pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP);
    }
}

pub fn answer_signals() {
    // SAFETY: no critical section is open, and the signal handlers are installed.
    unsafe {
        pgrx::check_for_interrupts!();
        if (&raw const pg_sys::ConfigReloadPending).read_volatile() != 0 {
            (&raw mut pg_sys::ConfigReloadPending).write_volatile(0);
            pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP);
        }
    }
}

pub fn wait(duration: Duration) -> Woken {
    clock::sleep(duration, wait_event())
}

fn wait_event() -> u32 {
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    {
        use std::sync::OnceLock;
        static EVENT: OnceLock<u32> = OnceLock::new();
        // SAFETY: the event's name is a C string.
        *EVENT.get_or_init(|| unsafe { pg_sys::WaitEventExtensionNew(c"AwtyWaitForSlot".as_ptr()) })
    }
    #[cfg(not(any(feature = "pg17", feature = "pg18")))]
    pg_sys::PG_WAIT_EXTENSION
}

pub fn report(activity: Option<&CStr>) {
    let (state, text) = match activity {
        Some(text) => (pg_sys::BackendState::STATE_RUNNING, text.as_ptr()),
        None => (pg_sys::BackendState::STATE_IDLE, std::ptr::null()),
    };
    // SAFETY: `text` is null or a C string.
    unsafe { pg_sys::pgstat_report_activity(state, text) };
}

pub fn report_statistics(now: bool) {
    // SAFETY: no transaction is open.
    unsafe {
        pg_sys::pgstat_report_stat(now);
    }
}

/// The postmaster does not restart a process that exits with code 0.
pub fn exit(code: i32) -> ! {
    // SAFETY: `proc_exit` runs the exit callbacks, and never returns.
    unsafe { pg_sys::proc_exit(code) };
    #[cfg(feature = "pg18")]
    unreachable!()
}

/// Returns whether the postmaster has exited. Its children must then exit too, because otherwise no new server can
/// start.
pub fn is_orphan() -> bool {
    // SAFETY: no other thread uses this variable.
    let postmaster = unsafe { pg_sys::PostmasterPid };
    u32::try_from(postmaster).is_ok_and(|postmaster| postmaster != std::os::unix::process::parent_id())
}

/// Returns whether a command such as DROP DATABASE waits for connections to end.
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
    // SAFETY: the lock is taken without waiting, and is released at once.
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
