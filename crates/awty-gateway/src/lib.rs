//! Calls HTTP endpoints when awty says that it is time.
//!
//! [`lease`] claims due checks and books answers. [`deliver`] turns a lease into a request and an answer into a
//! verdict. [`net`] makes one HTTP call. [`api`] is the HTTP API. [`db`] holds every SQL statement.

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
