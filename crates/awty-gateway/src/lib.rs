//! The library of `awty-gateway`, which makes the HTTP calls that awty schedules.
//!
//! - [`serve`] runs the whole program; [`config`] reads its flags and files.
//! - [`lease`] claims due checks, sends heartbeats and stores answers.
//! - [`deliver`] turns a lease into a request, and an answer into a verdict.
//! - [`net`] checks addresses, resolves names and makes one HTTP call.
//! - [`api`] is the HTTP API. [`page`] shows the API's data as HTML.
//! - [`db`] has every SQL statement.
//! - [`metrics`] counts the gateway's work; [`scrape`] adds figures of the database; [`health`] answers `/readyz`.
//! - [`listen`] accepts connections; [`files`] fits limits to file descriptors; [`secrets`] reads credentials; [`notify`] tells systemd.

pub mod api;
pub mod clock;
pub mod config;
pub mod db;
pub mod deliver;
pub mod duration;
pub mod files;
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
