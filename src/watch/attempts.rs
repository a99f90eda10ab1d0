//! Changes rules under a lock of their table.
//!
//! Invariant: with the table locked, a client waits only for a moment for locks of other objects and rows, because writers
//! and readers of the table also wait. It may wait longer for the lock of the table itself, as DROP TRIGGER does.

use crate::error::{Error, Result, WatchError};
use crate::pg::clock;
use crate::pg::subtransaction::kept_if_ok;
use std::time::Duration;

const TRIES: usize = 10;
/// Time for other clients of the table between two tries.
const PAUSE: Duration = Duration::from_millis(300);

/// Calls `wait`, which gives back all its locks, and then `change`, which locks the table. Calls both again if a lock
/// that `change` needs is busy.
pub fn attempt<R>(wait: impl Fn() -> Result<()>, change: impl Fn() -> Result<R>) -> Result<R> {
    let try_once = || {
        wait()?;
        kept_if_ok(&change)
    };
    for _ in 1..TRIES {
        match try_once() {
            Err(Error::Watch(WatchError::Busy { .. })) => clock::pause(PAUSE),
            result => return result,
        }
    }
    try_once()
}
