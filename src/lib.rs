//! awty, *are we there yet?*: one check per entity, run when it is due.
//!
//! The modules, in the order of the data flow:
//! - [`api`]: SQL functions
//! - [`store`]: all SQL statements
//! - [`pg`]: safe functions over PostgreSQL's; its README lists every departure from plain use
//! - [`mod@repeat`]: repetitions, whose next check begins when one ends; [`mod@watch`]: rules, which watch tables
//! - [`shmem`]: shared memory of the processes
//! - [`problem`]: reports of failures
//! - [`launcher`], [`maintainer`], [`worker`]: the processes
//! - [`run`]: runs of checks; [`trying`]: a run that is rolled back; [`mod@travel`]: runs in a client's transaction
//!   that cannot commit
//! - [`mod@function`]: a job's function, of a [`signature`]; [`crash`]: after a crash; [`restore`]: after a restore
//! - [`lease`]: external workers, which lease checks
//! - [`version`], [`settings`], [`error`], [`failpoint`]: used by all modules
//!
//! All decisions about time are in the crate `awty-core`. DESIGN.md describes how the processes work together.
//!
//! Invariant: PostgreSQL's ERROR unwinds through every frame here (`panic = "unwind"`).
//! Does not: run during a binary upgrade or in single-user mode.

#![deny(ffi_unwind_calls)]

#[cfg(not(panic = "unwind"))]
compile_error!("awty must be built with panic = \"unwind\": PostgreSQL's errors unwind through it");

mod api;
mod call;
mod error;
mod failpoint;
mod figures;
mod function;
mod launcher;
mod lease;
mod maintainer;
mod pg;
mod repeat;
mod restore;
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

/// PostgreSQL calls it when it loads the library.
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
