#![allow(clippy::unwrap_used, clippy::expect_used)] // a panic fails the test

mod broken_rows;
mod clients;
mod databases;
mod decoding;
mod dumps;
mod extension;
mod extension_again;
mod memory;
mod no_process;
mod not_loaded;
mod old_snapshot;
mod one_database;
mod owners;
mod reference;
mod replication;
mod serializable;
mod status;
