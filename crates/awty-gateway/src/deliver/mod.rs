//! A lease becomes a request, and what came of it becomes a verdict. Pure.
//!
//! Does not: know the database or the network.

pub mod definition;
pub mod range;
pub mod request;
pub mod result;
pub mod retry;
pub mod sign;
pub mod unmade;
pub mod verdict;
