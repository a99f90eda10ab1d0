//! Lets a client try out runs of checks: [`dry_run`] rolls one run back; [`travel`] makes runs in a transaction that
//! cannot commit.

mod dry_run;
mod statements;
mod travel;
