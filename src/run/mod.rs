//! One run: everything between taking a check on and committing what it did.
//!
//! `transaction`, `commit` and `timer` bound it, `row` reads and locks the check, `call` calls the function, `session`
//! cleans up.

pub mod call;
mod commit;
pub mod memory;
pub mod row;
pub mod session;
pub mod timer;
pub mod transaction;
