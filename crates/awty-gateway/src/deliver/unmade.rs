//! Reasons why a call cannot be made.

/// Why a call cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmade {
    /// Message for people.
    pub why: String,
    /// Whether a retry may succeed.
    pub may_come: bool,
    /// Short name of the fault.
    pub fault: &'static str,
}

impl Unmade {
    /// Builds the fault of a secret that has no file yet.
    pub fn missing(name: &str) -> Self {
        Unmade {
            why: format!(
                "the secret {name:?} is not in the tenant's folder of credentials; create a file of that name there"
            ),
            may_come: true,
            fault: REQUEST,
        }
    }

    /// Builds the fault of a secret that may not go to this origin. `line` in the gateway's file would allow it.
    pub fn not_allowed(name: &str, origin: &str, line: &str) -> Self {
        let why = format!("the secret {name:?} may not go to {origin}; the gateway's file lets it by {line}");
        Unmade { why, may_come: false, fault: SECRET_NOT_ALLOWED }
    }
}

/// Fault: the request cannot be built.
pub const REQUEST: &str = "request";
/// Fault: the gateway's file does not let the secret go to this origin.
pub const SECRET_NOT_ALLOWED: &str = "secret-not-allowed";

impl From<String> for Unmade {
    fn from(why: String) -> Self {
        Unmade { why, may_come: false, fault: REQUEST }
    }
}
