//! Starts throwaway PostgreSQL clusters with awty, from the copy of PostgreSQL that `scripts/stage` makes.
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
//! Invariant: a dropped [`Cluster`] is stopped and removed, even after a panic. Every wait has a deadline.

mod account;
mod builder;
mod clock;
mod cluster;
mod connect;
mod disk;
mod files;
pub mod fixture;
mod folder;
pub mod gateway;
mod log;
pub mod markdown;
mod poll;
mod preload;
pub mod receiver;
pub mod reference;
mod stage;
mod upgrade;
mod verify;

pub use builder::Builder;
pub use cluster::{Cluster, Stop};
pub use disk::DiskFault;
pub use files::{home, sweep};
pub use folder::Folder;
pub use poll::{PATIENCE, poll};
pub use postgres;
pub use rustix::process::Signal;
pub use stage::{checkout, directory as stage_directory, target};
