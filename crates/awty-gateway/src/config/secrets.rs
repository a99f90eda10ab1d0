use super::grants::{self, Grants};
use crate::deliver::unmade::Unmade;
use std::path::PathBuf;

pub const LONGEST: usize = 8 * 1024;

#[derive(Debug, Default)]
pub struct Secrets {
    pub credentials: PathBuf,
    pub grants: Grants,
}

impl Secrets {
    pub fn of(&self, role: &str, origin: &str, name: &str) -> Result<String, Unmade> {
        let path = grants::path(role, name).ok_or_else(|| Unmade::missing(name))?;
        if !self.grants.allows(&path, origin) {
            return Err(Unmade::not_allowed(name, origin, &grants::line(&path, origin)));
        }
        let text =
            std::fs::read_to_string(self.credentials.join(path)).map_err(|error| Unmade::unread(name, &error))?;
        let text = text.trim_end_matches(['\r', '\n']);
        if text.len() <= LONGEST { Ok(text.to_owned()) } else { Err(Unmade::missing(name)) }
    }
}
