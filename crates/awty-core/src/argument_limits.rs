//! Limits of the arguments of SQL functions: lengths in bytes, and numbers of elements.

use chrono::TimeDelta;

/// PostgreSQL limits names to 63 bytes.
pub const MAX_JOB: usize = 63;
pub const MAX_CALENDAR: usize = 63;
/// Long enough for a quoted table name with its schema.
pub const MAX_ENTITY_NAME: usize = 255;
pub const MAX_NOTE: usize = 1024;
pub const MAX_ARGS: usize = 1024 * 1024;
/// Long enough for a schema-qualified name, even if quoting doubles every byte.
pub const MAX_FUNCTION: usize = 260;
pub const MAX_COMMAND: usize = 10_000;
/// An entity's key must fit into an index entry.
pub const MAX_ENTITY_KEY: usize = 1024;
pub const MAX_KEYS: usize = 1_000_000;
pub const MAX_CHANNEL: usize = 63;
pub const MAX_EXPRESSION: usize = 100_000;
pub const MAX_CRON: usize = 64 * 1024;
pub const MAX_ZONE: usize = 255;
pub const MAX_CLAIM: i32 = 1000;
pub const MAX_CLAIMED_JOBS: usize = 10_000;
pub const MAX_WORKER: usize = 255;
pub const MAX_LEASES: usize = 100_000;
pub const MAX_STEPS: i64 = 100_000;
/// Longer error messages of failed runs and calls are truncated.
pub const MAX_MESSAGE: usize = 4096;
pub const MAX_RESULT: usize = 1024 * 1024;
pub const MAX_OCCURRENCES: u16 = 10_000;
/// Maximum length of `jitter` and `catch_up`.
pub const MAX_SHIFT: TimeDelta = TimeDelta::days(366);
/// Maximum length of each interval of a rule, and of a repetition's period `every`. The limit is a century, so that
/// sums of a time and a length stay in range.
pub const MAX_RULE_LENGTH: TimeDelta = TimeDelta::days(36_525);
pub const MAX_LEVELS: usize = 100;
pub const MAX_REMINDERS: usize = 5;
pub const MAX_ELEMENTS: usize = 100;
pub const MAX_CLOSED: usize = 10_000;
