//! Workers outside: what they call, and what becomes of leases that nobody answers.
//!
//! - [`claim`] hands checks out; [`answer`] takes what came of them; [`beat`] is for the time in between;
//! - [`target`] says what may be handed out, and what answers say of whom is called;
//! - [`expire`] books what was never answered, for claims and for the maintainer.
//!
//! Invariant (P14): a lease is a run that happens elsewhere. So the same guards apply, and `run::book` writes what comes of it.
//! Does not: run anything, or decide when a lease is over (see `awty_core::lease`).

mod answer;
mod arrays;
mod beat;
mod claim;
pub mod expire;
mod target;
