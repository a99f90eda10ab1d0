//! awty (*are we there yet?*) runs a check for each entity when the check is due.
//!
//! The modules, from the ground up:
//!
//! - [`version`], [`settings`], [`error`], [`failpoint`]: for all modules.
//! - [`pg`], [`mod@process`]: safe calls of PostgreSQL's functions, in general and for background processes.
//! - [`shmem`]: the processes' shared memory. [`restore`]: recognises a restored server.
//! - [`store`]: SQL statements on the engine's tables.
//! - [`mod@function`], [`signature`]: a job's function and its forms.
//! - [`call`]: arguments, rights and options of SQL calls.
//! - [`calendar`]: open time.
//! - [`figures`], [`mod@repeat`], [`rule`], [`mod@watch`], [`lease`], [`trial`]: statistics, repetitions, rules,
//!   external workers, and dry runs with time travel.
//! - [`run`]: runs checks and handles crashes.
//! - [`worker`], [`launcher`], [`maintainer`]: the background processes.
//! - [`api`]: SQL calls about jobs, checks and the status.
//!
//! The crate `awty-core` makes all decisions about time. DESIGN.md describes how the processes work together.
//!
//! Invariant: PostgreSQL's ERROR unwinds through every frame here (`panic = "unwind"`). awty does not run during a
//! binary upgrade or in single-user mode.

#![deny(ffi_unwind_calls)]

#[cfg(not(panic = "unwind"))]
compile_error!("awty must be built with panic = \"unwind\": PostgreSQL's errors unwind through it");

mod api;
mod calendar;
mod call;
mod error;
mod failpoint;
mod figures;
mod function;
mod launcher;
mod lease;
mod maintainer;
mod pg;
mod process;
mod quiet;
mod repeat;
mod restore;
mod rule;
mod run;
mod settings;
mod shmem;
mod signature;
mod store;
mod trial;
mod version;
mod watch;
mod worker;

use pg::report;
use pgrx::prelude::*;

pgrx::pg_module_magic!(name, version);

#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    report::without_backtraces();
    settings::register();
    rule::statements::by_oid::register();
    // SAFETY: PostgreSQL sets both flags before it loads libraries.
    let (preloading, upgrade) =
        unsafe { (pg_sys::process_shared_preload_libraries_in_progress, pg_sys::IsBinaryUpgrade) };
    if preloading && !upgrade {
        restore::note_start();
        shmem::register();
        launcher::register();
    }
}
