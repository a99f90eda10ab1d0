//! awty, *are we there yet?*: one check per entity, run when it is due.
//!
//! The modules, in the order data flows:
//! - [`api`]: what SQL calls;
//! - [`store`]: the only SQL text; [`owner`]: the rights it runs with; [`function`], [`catalog`]: what PostgreSQL knows;
//!   [`extension`]: the locks that come first;
//! - [`hint`] and [`board`]: what processes tell each other at commit, in shared memory;
//! - [`launcher`], [`dispatcher`], [`worker`], [`executor`], [`process`]: who runs what; [`run`]: one run;
//! - [`clock`], [`settings`], [`error`], [`text`]: the only ones that read time, settings, name an SQLSTATE, or bend text.
//!
//! All decisions about time are in the crate `awty-core`. DESIGN.md tells how the processes work together.
//!
//! Invariant: PostgreSQL's ERROR unwinds through every frame here (`panic = "unwind"`).
//! Does not: run anything in a binary upgrade or in single-user mode.

#[cfg(not(panic = "unwind"))]
compile_error!("awty must be built with panic = \"unwind\": PostgreSQL's errors unwind through it");

mod api;
mod board;
mod catalog;
mod clock;
mod dispatcher;
mod error;
mod executor;
mod extension;
mod failpoint;
mod function;
mod hint;
mod launcher;
mod owner;
mod process;
mod run;
mod settings;
mod store;
mod text;
mod worker;

use pgrx::prelude::*;

pgrx::pg_module_magic!(name, version);

/// Called by PostgreSQL when it loads the library.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    // An error of PostgreSQL's that passes through Rust is to reach the client as it was, without a backtrace in its DETAIL.
    if std::env::var_os("RUST_LIB_BACKTRACE").is_none() {
        // SAFETY: a server process has one thread.
        unsafe { std::env::set_var("RUST_LIB_BACKTRACE", "0") };
    }
    settings::register();
    // SAFETY: flags that PostgreSQL sets before it loads libraries.
    let (preloading, upgrade) =
        unsafe { (pg_sys::process_shared_preload_libraries_in_progress, pg_sys::IsBinaryUpgrade) };
    if preloading && !upgrade {
        board::register();
        launcher::register();
    }
}
