//! The longest texts and arrays that calls take. Texts are measured in bytes.

/// Maximum length of a job's name in bytes, as for all names in PostgreSQL.
pub const MAX_JOB: usize = 63;
/// Maximum length of an entity's name: a table's name with schema and quotes.
pub const MAX_ENTITY_NAME: usize = 255;
/// Maximum length of a note.
pub const MAX_NOTE: usize = 1024;
/// Maximum size of a check's `args`.
pub const MAX_ARGS: usize = 1024 * 1024;
/// Maximum length of a function's name: schema and function, both quoted and with every character doubled.
pub const MAX_FUNCTION: usize = 260;
/// Maximum length of a command that is given in place of a function.
pub const MAX_COMMAND: usize = 10_000;
/// Maximum length of an entity's key, so that an index entry can hold it.
pub const MAX_ENTITY_KEY: usize = 1024;
/// Maximum number of keys in one call.
pub const MAX_KEYS: usize = 1_000_000;
/// Maximum length of a NOTIFY channel.
pub const MAX_CHANNEL: usize = 63;
/// Maximum length of an expression of a rule.
pub const MAX_EXPRESSION: usize = 100_000;
/// Maximum length of the text that is parsed as a cron expression. The parser refuses expressions that are too long.
pub const MAX_CRON: usize = 64 * 1024;
/// Maximum length of a time zone's name.
pub const MAX_ZONE: usize = 255;
/// Maximum number of checks that a claim leases.
pub const MAX_CLAIM: i32 = 1000;
/// Maximum number of jobs in one claim.
pub const MAX_CLAIMED_JOBS: usize = 10_000;
/// Maximum length of an external worker's name.
pub const MAX_WORKER: usize = 255;
/// Maximum number of leases in one call.
pub const MAX_LEASES: usize = 100_000;
/// Maximum size of an external worker's result.
pub const MAX_RESULT: usize = 1024 * 1024;
