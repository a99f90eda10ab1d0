//! Why a lease becomes no request.

/// Why there is no request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmade {
    /// For people.
    pub why: String,
    /// Another attempt may find a request.
    pub may_come: bool,
    /// Short name of the fault.
    pub fault: &'static str,
}

impl Unmade {
    /// A secret has no file yet.
    pub fn missing(name: &str) -> Self {
        Unmade {
            why: format!("the secret {name:?} is not in the tenant's folder of credentials"),
            may_come: true,
            fault: REQUEST,
        }
    }

    /// A secret may not go where the call goes. `line` would let it.
    pub fn not_allowed(name: &str, origin: &str, line: &str) -> Self {
        let why = format!("the secret {name:?} may not go to {origin}; the gateway's file lets it by {line}");
        Unmade { why, may_come: false, fault: SECRET_NOT_ALLOWED }
    }
}

/// The request cannot be made.
pub const REQUEST: &str = "request";
/// The gateway's file does not let a secret go there.
pub const SECRET_NOT_ALLOWED: &str = "secret-not-allowed";

impl From<String> for Unmade {
    fn from(why: String) -> Self {
        Unmade { why, may_come: false, fault: REQUEST }
    }
}
