//! Invariant: the database finds a token only by its hash, and no log contains a token.

use super::permits::Seen;
use super::problem::{Problem, stopping};
use super::rates::{PER_SECOND, Rates};
use super::state::Api;
use crate::db::{Request, Token};
use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use sha2::{Digest, Sha256};
use std::sync::Arc;

const LENGTH: usize = 48;
#[derive(Clone)]
pub struct Asker {
    token: Token,
    changes: bool,
}

impl Asker {
    #[cfg(test)]
    pub fn of(role: &str) -> Self {
        let token = Token { id: 1, role: role.into(), scope: "admin".into(), expired: false };
        Asker { token, changes: true }
    }

    fn admitted(token: Token, changes: bool, rates: &Rates) -> Result<Self, Problem> {
        if token.expired {
            return Err(Problem::new("token-expired", "The token has expired; make a new one."));
        }
        if !rates.allow(token.id) {
            let detail = format!("A token has {PER_SECOND} requests a second; wait a little.");
            return Err(Problem::new("rate-limited", detail));
        }
        Ok(Asker { token, changes })
    }

    pub fn may(&self, scope: &str) -> Result<(), Problem> {
        let rank = |scope: &str| ["read", "write", "admin"].iter().position(|known| *known == scope);
        if rank(&self.token.scope) >= rank(scope) {
            return Ok(());
        }
        Err(Problem::new("not-permitted", format!("The token has the scope {}; {scope} is needed.", self.token.scope)))
    }

    pub fn scope(&self) -> &str {
        &self.token.scope
    }

    pub fn role(&self) -> &str {
        &self.token.role
    }

    pub fn changes(&self) -> bool {
        self.changes
    }
}

fn unreadable() -> Problem {
    let detail = "The header Authorization has no token of awty; write Bearer, a space, and awty_ with 43 characters.";
    Problem::new("token-missing", detail)
}

impl FromRequestParts<Arc<Api>> for Asker {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        if let Some(known) = parts.extensions.get::<Asker>() {
            return Ok(known.clone());
        }
        let missing = || Problem::new("token-missing", "Send the header Authorization: Bearer awty_…");
        let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let (scheme, text) = header.ok_or_else(missing)?.split_once(' ').ok_or_else(unreadable)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(unreadable());
        }
        let asker = api.asker(text.trim(), !parts.method.is_safe()).await?;
        if let Some(seen) = parts.extensions.get::<Seen>() {
            seen.is(&asker.token.role);
        }
        Ok(asker)
    }
}

impl Api {
    pub async fn asker(&self, text: &str, changes: bool) -> Result<Asker, Problem> {
        if !text.starts_with("awty_") || text.len() != LENGTH {
            return Err(unreadable());
        }
        let unknown = || {
            let detail =
                "The token is not known: it was dropped, is from another database, or a character of it is wrong.";
            Problem::new("token-missing", detail)
        };
        let token = self.token(text).await?.ok_or_else(unknown)?;
        Asker::admitted(token, changes, &self.rates)
    }

    /// Looks the token up in a task of its own, because a statement whose client has gone would close its connection to
    /// the database. Strangers could make the gateway open one connection after the other.
    async fn token(&self, text: &str) -> Result<Option<Token>, Problem> {
        let place = self.lookups.clone().acquire_owned().await.map_err(|_| stopping())?; // never closed
        let (db, hash) = (self.db.clone(), Sha256::digest(text));
        let look_up = tokio::spawn(async move {
            let found = db.token(&hash, crate::clock::now()).await;
            drop(place);
            found
        });
        Ok(look_up.await.map_err(|_| stopping())??)
    }

    pub async fn begin(&self, asker: &Asker) -> Result<Request, Problem> {
        let permit = Arc::new(self.permits.permit(asker.role(), asker.changes()).await?);
        let request = self.db.begin(asker.role(), permit.limit(), permit.of_role(), permit.clone()).await?;
        permit.begin();
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{StatusCode, header::RETRY_AFTER};
    use axum::response::IntoResponse;

    /// Asks without a server, because the token has 50 requests a second, and a busy server answers fewer.
    #[test]
    fn a_token_that_asks_too_often_is_told_to_wait_and_no_other_is() {
        let rates = Rates::default();
        let ask = |id| {
            let token = Token { id, role: "app".into(), scope: "read".into(), expired: false };
            Asker::admitted(token, false, &rates).map_err(IntoResponse::into_response)
        };
        let refused: Vec<_> = (0..1_000).filter_map(|_| ask(1).err()).collect();
        assert!((1..=900).contains(&refused.len()), "{} of 1000 were refused", refused.len());
        for answer in refused {
            assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
            assert_eq!(answer.headers()[RETRY_AFTER], "1");
        }
        assert!(ask(2).is_ok());
    }
}
