//! Throwaway PostgreSQL clusters with awty in them, for tests, benches and the demo.
//!
//! A cluster is a server made from the staged PostgreSQL (`scripts/stage`), with a data directory of its own, reached by
//! its Unix socket only:
//!
//! ```no_run
//! use awty_testkit::{Cluster, Stop};
//!
//! let mut cluster = Cluster::builder().set("awty.slot", "1s").start();
//! cluster.create_extension("postgres");
//! cluster.await_sql("postgres", "the first slot to have run", "SELECT last_slot_run IS NOT NULL FROM awty.status");
//! cluster.stop(Stop::Immediate);
//! cluster.start();
//! ```
//!
//! Invariant: nothing is written into the installed PostgreSQL, no other cluster is touched, and a cluster is stopped and
//! removed when its [`Cluster`] is dropped, also by a panic. What a killed test left behind is swept by the next.
//! Does not: wait for luck. Whatever must happen is polled for with a deadline, and a failure says what was awaited, what
//! was seen last, and the end of the server's log.

mod account;
mod builder;
mod clock;
mod cluster;
mod connect;
mod disk;
mod files;
mod folder;
mod log;
mod poll;
mod preload;
mod stage;
mod upgrade;
mod verify;

pub use builder::Builder;
pub use cluster::{Cluster, Stop};
pub use disk::DiskFault;
pub use files::sweep;
pub use folder::Folder;
pub use poll::{PATIENCE, poll};
pub use postgres;
pub use rustix::process::Signal;
pub use stage::{checkout, directory as stage_directory};
