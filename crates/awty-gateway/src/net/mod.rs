//! Makes the HTTP calls, without using the database.

pub mod call;
pub mod connect;
pub mod counted;
pub mod fault;
pub mod guard;
pub mod pool;
pub mod registry;
pub mod report;
pub mod resolve;
pub mod tls;
