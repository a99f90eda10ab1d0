//! One run: everything between taking a check on and committing what it did.
//!
//! `transaction` and `timer` bound it, `catch` takes its errors, `row` reads and locks the check, `call` calls the function, `session`
//! cleans up.

pub mod call;
mod catch;
pub mod row;
pub mod session;
pub mod timer;
pub mod transaction;
