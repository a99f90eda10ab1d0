//! awty, *are we there yet?*: one check per entity, run when it is due.
//!
//! The modules, in the order data flows:
//! - [`api`]: what SQL calls;
//! - [`store`]: the only SQL text;
//! - [`pg`]: PostgreSQL's functions, each behind one that Rust may call safely; its README lists every departure from the plain way;
//! - [`mod@repeat`]: repetitions, which begin their next check when one ends; [`mod@watch`]: rules, which watch tables;
//! - [`shmem`]: what processes tell each other, in shared memory;
//! - [`problem`]: who is told of failures;
//! - [`launcher`], [`maintainer`], [`worker`]: the processes; [`run`]: one run; [`trying`]: one that is undone; [`mod@travel`]: runs in a client's transaction that cannot commit; [`mod@function`]: what a job calls, in one of the forms of [`takes`]; [`crash`]: after one; [`restore`]: after a restore;
//! - [`outside`]: workers outside, which take checks by lease;
//! - [`version`], [`settings`], [`error`], [`failpoint`]: what all of them need.
//!
//! All decisions about time are in the crate `awty-core`. DESIGN.md tells how the processes work together.
//!
//! Invariant: PostgreSQL's ERROR unwinds through every frame here (`panic = "unwind"`).
//! Does not: run anything in a binary upgrade or in single-user mode.

#![deny(ffi_unwind_calls)]

#[cfg(not(panic = "unwind"))]
compile_error!("awty must be built with panic = \"unwind\": PostgreSQL's errors unwind through it");

mod api;
mod crash;
mod error;
mod failpoint;
mod function;
mod launcher;
mod maintainer;
mod outside;
mod pg;
mod problem;
mod repeat;
mod restore;
mod run;
mod settings;
mod shmem;
mod store;
mod takes;
mod travel;
mod trying;
mod version;
mod watch;
mod worker;

use pg::report;
use pgrx::prelude::*;

pgrx::pg_module_magic!(name, version);

/// Called by PostgreSQL when it loads the library.
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
