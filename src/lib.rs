//! awty, *are we there yet?*, runs a check for each entity when the check is due.
//!
//! DESIGN.md describes the processes and the modules. The crate `awty-core` makes all decisions about time.
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
    // SAFETY: flags that PostgreSQL sets before it loads libraries.
    let (preloading, upgrade) =
        unsafe { (pg_sys::process_shared_preload_libraries_in_progress, pg_sys::IsBinaryUpgrade) };
    if preloading && !upgrade {
        restore::note_start();
        shmem::register();
        launcher::register();
    }
}
