//! Calls HTTP endpoints when awty says that it is time. [`serve`] runs the whole program. README.md describes the other
//! parts.

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
pub mod page;
pub mod scrape;
pub mod secrets;
pub mod serve;
pub mod sqlstate;
