//! The library of `awty-gateway`, which calls HTTP endpoints when awty says that it is time. README.md describes the
//! modules.

pub mod api;
pub mod clock;
pub mod config;
pub mod db;
pub mod deliver;
pub mod duration;
pub mod health;
pub mod lease;
pub mod listen;
pub mod metrics;
pub mod net;
pub mod notify;
pub mod scrape;
pub mod secrets;
pub mod serve;
pub mod sqlstate;
