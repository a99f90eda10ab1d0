//! Visits many keys of a rule in pieces. Each piece has its own transaction, which also stores the last visited key.

use crate::pg::clock;
use crate::pg::text::Text;
use crate::rule::Watched;
use std::time::Duration;

/// Time limit of a transaction that visits rows and locks their checks or alerts. The limit is short, because clients
/// that change these rows wait for the locks.
const LOCKED: Duration = Duration::from_millis(500);
const KEYS: i64 = 5_000;
/// Number of keys in the first batch. The first batch is small, because a rule's expression may be slow. Later batches
/// are larger if the first ones are fast.
const FIRST_KEYS: i64 = 100;

/// Visits a rule's keys in batches until this transaction's time limit has passed.
///
/// `visit(after, limit)` visits at most `limit` keys after `after` and returns these keys.
///
/// Returns the piece's last key, or `None` if no key is left. A piece takes at most half of the job's timeout, and at
/// most [`LOCKED`] if it locks rows.
pub fn piece(
    watched: &Watched,
    locks: bool,
    from: Option<&Text>,
    mut visit: impl FnMut(Option<&Text>, i64) -> Vec<Text>,
) -> Option<Text> {
    let began = clock::mono();
    let half = watched.job.options.limits.timeout.to_std().unwrap_or_default() / 2;
    let most = if locks { half.min(LOCKED) } else { half };
    let mut after = from.cloned();
    let mut limit = FIRST_KEYS;
    loop {
        let read = clock::mono();
        let keys = visit(after.as_ref(), limit);
        if keys.len() < usize::try_from(limit).unwrap_or(usize::MAX) {
            return None;
        }
        after = keys.into_iter().last();
        if clock::mono().since(began) >= most {
            return after;
        }
        limit = match clock::mono().since(read) {
            time if time < most / 8 => (limit * 2).min(KEYS),
            time if time > most / 4 => (limit / 2).max(1),
            _ => limit,
        };
    }
}
