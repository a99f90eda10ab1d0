//! Authenticates requests by token, checks scopes, and limits the rate of each token.
//!
//! Invariant: a token is looked up only by its hash, and no log contains it.

use super::Api;
use super::problem::Problem;
use crate::db::Token;
use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use sha2::{Digest, Sha256};
use std::num::NonZeroU32;
use std::sync::Arc;

const PER_SECOND: NonZeroU32 = NonZeroU32::new(50).unwrap();
const BURST: NonZeroU32 = NonZeroU32::new(100).unwrap();
/// `awty_` and 43 characters.
const LENGTH: usize = 48;
/// Number of tokens with a known rate above which idle ones are forgotten.
const MANY: usize = 10_000;

/// Request rate of each token.
pub struct Limits(DefaultKeyedRateLimiter<i64>);

impl Default for Limits {
    fn default() -> Self {
        Limits(RateLimiter::keyed(Quota::per_second(PER_SECOND).allow_burst(BURST)))
    }
}

/// The authenticated token of a request. Every token may read.
pub struct Asker {
    token: Token,
    changes: bool,
}

impl Asker {
    /// Refuses a token whose scope does not include `scope`.
    pub fn may(&self, scope: &str) -> Result<(), Problem> {
        let rank = |scope: &str| ["read", "write", "admin"].iter().position(|known| *known == scope);
        if rank(&self.token.scope) >= rank(scope) {
            return Ok(());
        }
        Err(Problem::new("not-permitted", format!("The token has the scope {}; {scope} is needed.", self.token.scope)))
    }

    pub fn role(&self) -> &str {
        &self.token.role
    }

    /// Whether the request may change something, and so may wait for a lock.
    pub fn changes(&self) -> bool {
        self.changes
    }
}

impl FromRequestParts<Arc<Api>> for Asker {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let missing = || Problem::new("token-missing", "Send the header Authorization: Bearer awty_…");
        let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let (scheme, text) = header.and_then(|header| header.split_once(' ')).ok_or_else(missing)?;
        let text = text.trim();
        if !scheme.eq_ignore_ascii_case("bearer") || !text.starts_with("awty_") || text.len() != LENGTH {
            return Err(missing());
        }
        let token = api.db.token(&Sha256::digest(text), crate::clock::now()).await?.ok_or_else(missing)?;
        if token.expired {
            return Err(Problem::new("token-expired", "The token has expired; make a new one."));
        }
        let limits = &api.limits.0;
        if limits.len() > MANY {
            limits.retain_recent();
        }
        match limits.check_key(&token.id) {
            Ok(()) => Ok(Asker { token, changes: !parts.method.is_safe() }),
            Err(_) => {
                Err(Problem::new("rate-limited", format!("A token has {PER_SECOND} requests a second; wait a little.")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_has_a_pace_of_its_own() {
        let limits = Limits::default();
        let passed = (0..1_000).filter(|_| limits.0.check_key(&1).is_ok()).count();
        assert!((100..1_000).contains(&passed), "{passed}");
        assert!(limits.0.check_key(&2).is_ok());
    }
}
