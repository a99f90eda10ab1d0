//! Reasons why a call cannot be made.

/// The reason why a call cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmade {
    pub why: String,
    /// Whether a later attempt may succeed.
    pub may_come: bool,
    pub fault: &'static str,
}

impl Unmade {
    /// Builds the error for a secret that has no file yet.
    pub fn missing(name: &str) -> Self {
        Unmade {
            why: format!(
                "the secret {name:?} is not in the tenant's folder of credentials; create a file of that name there"
            ),
            may_come: true,
            fault: REQUEST,
        }
    }

    /// Builds the error for a secret that may not be sent to this origin. The gateway's file needs `line` to allow it.
    pub fn not_allowed(name: &str, origin: &str, line: &str) -> Self {
        let why = format!("the secret {name:?} may not go to {origin}; the gateway's file lets it by {line}");
        Unmade { why, may_come: false, fault: SECRET_NOT_ALLOWED }
    }
}

/// The fault of a call whose request cannot be built.
pub const REQUEST: &str = "request";
/// The fault of a call with a secret that may not be sent to this origin.
pub const SECRET_NOT_ALLOWED: &str = "secret-not-allowed";

impl From<String> for Unmade {
    fn from(why: String) -> Self {
        Unmade { why, may_come: false, fault: REQUEST }
    }
}
