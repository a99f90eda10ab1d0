//! The secrets of tenants, each in a file of the credentials folder, and the origins to which each may go.

use super::grants::{self, Grants};
use crate::deliver::unmade::Unmade;
use std::path::PathBuf;

/// Maximum length of a tenant's secret, in bytes.
pub const LONGEST: usize = 8 * 1024;

/// The secrets of the tenants.
#[derive(Debug, Default)]
pub struct Secrets {
    /// Folder of the secrets.
    pub credentials: PathBuf,
    /// Origins to which each secret may go.
    pub grants: Grants,
}

impl Secrets {
    /// Reads a secret of a tenant's role without its last line break, if the secret may go to the origin.
    pub fn of(&self, role: &str, origin: &str, name: &str) -> Result<String, Unmade> {
        let path = grants::path(role, name).ok_or_else(|| Unmade::missing(name))?;
        if !self.grants.allows(&path, origin) {
            return Err(Unmade::not_allowed(name, origin, &grants::line(&path, origin)));
        }
        let text = std::fs::read_to_string(self.credentials.join(path)).map_err(|_| Unmade::missing(name))?;
        let text = text.trim_end_matches(['\r', '\n']);
        if text.len() <= LONGEST { Ok(text.to_owned()) } else { Err(Unmade::missing(name)) }
    }
}
