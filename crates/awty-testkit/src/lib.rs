//! Throwaway PostgreSQL clusters with awty, for tests, benches and the demo. Clients reach a server only by its Unix
//! socket.
//!
//! Invariant: the next test removes the clusters of killed tests. Every wait has a deadline, and shows the last
//! observation and the end of the server log if it fails.

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
pub use files::sweep;
pub use folder::Folder;
pub use poll::{PATIENCE, poll};
pub use postgres;
pub use rustix::process::Signal;
pub use stage::{checkout, directory as stage_directory};
