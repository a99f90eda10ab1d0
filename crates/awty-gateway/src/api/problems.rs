pub struct Known {
    pub name: &'static str,
    pub status: u16,
    pub title: &'static str,
    pub remedy: &'static str,
}

const fn known(name: &'static str, status: u16, title: &'static str, remedy: &'static str) -> Known {
    Known { name, status, title, remedy }
}

pub const PROBLEMS: &[Known] = &[
    known(
        "malformed-json",
        400,
        "The body is not a JSON object",
        "Send one JSON object. The detail names the place of the error.",
    ),
    known(
        "invalid-field",
        422,
        "Fields are invalid",
        "Each error names a field, what is wrong, and what to write instead.",
    ),
    known(
        "malformed-uri",
        422,
        "The URI cannot be called",
        "Write scheme, host and path, such as https://api.example.com/tick; no user, no fragment.",
    ),
    known(
        "address-not-allowed",
        422,
        "The address is not allowed",
        "Use a public address, or open its network with the gateway's setting allow_networks.",
    ),
    known(
        "uri-already-scheduled",
        409,
        "The URI is scheduled already",
        "A URI has one schedule. PUT replaces it, and \"existing\" has its address.",
    ),
    known("already-running", 409, "The call is already running", "Repeat the request when the call has ended."),
    known(
        "key-reused",
        409,
        "The key was used for another call",
        "Use a new Idempotency-Key for each call, and the same one only to repeat it.",
    ),
    known(
        "period-out-of-range",
        422,
        "The period is too short or too long",
        "GET /v1/status shows the limits, min_period and max_period.",
    ),
    known(
        "too-large",
        413,
        "The request is too large",
        "Send the address of the content, and let the endpoint fetch it.",
    ),
    known("unsupported-media-type", 415, "The body must be application/json", "Send Content-Type: application/json."),
    known("method-not-allowed", 405, "The resource does not have this method", "The header Allow lists its methods."),
    known("not-found", 404, "Nothing was found", "It does not exist, or the token's role may not see it."),
    known("deleted", 410, "It was deleted", "\"history\" has the address of its calls. PUT creates it again."),
    known(
        "precondition-failed",
        412,
        "A precondition of the request is not met",
        "GET it again, and repeat the request with its new ETag.",
    ),
    known(
        "token-missing",
        401,
        "A token is required",
        "Send Authorization: Bearer awty_…; awty-gateway token create makes a token.",
    ),
    known("token-expired", 401, "The token has expired", "Create a new one with awty-gateway token create."),
    known(
        "not-permitted",
        403,
        "The token does not permit this",
        "Use a token of a wider scope, or of a role with the right.",
    ),
    known("rate-limited", 429, "Too many requests", "Wait for the time in Retry-After."),
    known("database-away", 503, "The database does not answer", "Try again; calls that are due wait."),
    known(
        "read-only-standby",
        503,
        "The database is a standby",
        "Ask the gateway of the primary server, or wait until this one is promoted.",
    ),
    known(
        "held-until-adopted",
        503,
        "The database is held until it is adopted",
        "In the database: SELECT awty.adopt();",
    ),
    known(
        "version-mismatch",
        503,
        "The extension is missing, or its library has another version",
        "In the database: CREATE EXTENSION awty_http CASCADE; or ALTER EXTENSION awty UPDATE; or restart the server.",
    ),
    known("timed-out", 504, "The database took too long", "Ask for less, or try again."),
    known(
        "internal",
        500,
        "An internal error occurred",
        "The detail has a number. The gateway's log has the error under this number.",
    ),
];

pub fn find(name: &str) -> Option<&'static Known> {
    PROBLEMS.iter().find(|known| known.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_problem_says_what_to_do() {
        for one in PROBLEMS {
            assert!(one.remedy.ends_with(['.', ';']) && !one.title.ends_with('.'), "{}", one.name);
            assert!((400..600).contains(&one.status), "{}", one.name);
            assert_eq!(PROBLEMS.iter().filter(|other| other.name == one.name).count(), 1, "{}", one.name);
        }
    }
}
