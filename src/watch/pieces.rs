//! Visits many keys of a rule in pieces. Each piece has its own transaction, which also stores the last visited key.

use crate::pg::clock;
use crate::pg::text::Text;
use crate::rule::Watched;
use std::time::Duration;

/// Time limit of a piece that locks checks or alerts. The limit is short, because clients that change the watched rows
/// wait for these locks.
const LOCKED: Duration = Duration::from_millis(500);
const KEYS: i64 = 5_000;
/// Number of keys for the first call of `visit` in [`piece`]. This number is small, because the rule's expression
/// `until` may be slow. Later calls get more keys if the first calls are fast.
const FIRST_KEYS: i64 = 100;

/// Visits the next keys of the rule as one piece. `visit(after, limit)` visits at most `limit` keys after `after` and
/// returns these keys.
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
