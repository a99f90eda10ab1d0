//! One run: everything between taking a check on and committing what it did.
//!
//! `transaction`, `commit` and `timer` bound it, `row` reads and locks the check, `call` calls the function, `archive` puts it
//! into the history, `session` cleans up.

pub mod archive;
pub mod call;
mod commit;
pub mod memory;
pub mod row;
pub mod session;
pub mod timer;
pub mod transaction;
