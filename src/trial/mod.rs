//! Runs that a client makes on trial: [`dry_run`] rolls one run back; [`travel`] makes runs in a transaction that cannot
//! commit.
//!
//! Does not: change how a run is made or booked (see `run`).

mod dry_run;
mod statements;
mod travel;
