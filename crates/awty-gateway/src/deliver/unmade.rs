use crate::files;
use crate::net::fault::NO_FILE;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmade {
    pub why: String,
    pub may_come: bool,
    pub fault: &'static str,
}

impl Unmade {
    pub fn missing(name: &str) -> Self {
        Unmade {
            why: format!(
                "the secret {name:?} is not in the tenant's folder of credentials; create a file of that name there"
            ),
            may_come: true,
            fault: REQUEST,
        }
    }

    pub fn unread(name: &str, error: &std::io::Error) -> Self {
        if files::are_used_up(error) {
            return Unmade { why: error.to_string(), may_come: true, fault: NO_FILE };
        }
        Self::missing(name)
    }

    pub fn not_allowed(name: &str, origin: &str, line: &str) -> Self {
        let why = format!("the secret {name:?} may not go to {origin}; the gateway's file lets it by {line}");
        Unmade { why, may_come: false, fault: SECRET_NOT_ALLOWED }
    }
}

pub const REQUEST: &str = "request";
pub const SECRET_NOT_ALLOWED: &str = "secret-not-allowed";

impl From<String> for Unmade {
    fn from(why: String) -> Self {
        Unmade { why, may_come: false, fault: REQUEST }
    }
}
