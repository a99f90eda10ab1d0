use super::Label;
use super::phrase::{Words, call, ident, quote, say};
use awty_core::argument_limits::{MAX_LEVELS, MAX_REMINDERS, MAX_RULE_LENGTH};
use awty_core::limits::Shown;
use awty_core::watch::LevelError;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;

#[derive(Debug)]
pub enum WatchError {
    NotATable {
        relation: String,
        is: &'static str,
    },
    Distributed {
        relation: String,
    },
    NoPrimaryKey {
        relation: String,
    },
    NotTableOwner {
        relation: String,
        owner: String,
        caller: String,
    },
    OtherPartition {
        relation: String,
        partition: String,
        owner: String,
    },
    Unreadable {
        argument: &'static str,
        text: String,
        sqlstate: i32,
        message: String,
        hint: String,
        position: usize,
    },
    WholeRow {
        argument: &'static str,
    },
    NotAnExpression {
        argument: &'static str,
        what: String,
    },
    /// The expression's value can change without a write of the row, so no trigger would notice the change.
    NotStable {
        argument: &'static str,
        what: String,
    },
    WrongType {
        argument: &'static str,
        text: String,
        wanted: &'static str,
        found: String,
    },
    Levels(LevelError),
    LengthTooLong {
        argument: &'static str,
    },
    WithinOrDue {
        both: bool,
    },
    SinceAndDue,
    EveryUnderSlot {
        slot: String,
    },
    NameTooLong {
        max: usize,
    },
    NeedsSince {
        relation: String,
    },
    RuleExists {
        rule: String,
        own: bool,
    },
    OtherTable {
        rule: String,
        relation: String,
    },
    NameTaken {
        rule: String,
        object: String,
    },
    NoCreate {
        schema: String,
        owner: String,
    },
    Stopped {
        rule: String,
        why: String,
        not_owners: bool,
        fix: String,
    },
    Call {
        function: String,
    },
    RowSecurity {
        relation: String,
        role: String,
    },
    NoSelect {
        relation: String,
        role: String,
    },
    KeyTooLong {
        rule: String,
        relation: String,
        max: usize,
    },
    UnknownRule {
        rule: String,
    },
    IsRule {
        job: String,
    },
    Silenced {
        entity: Label,
    },
    ForeignTrigger {
        rule: String,
        relation: String,
    },
    NoRule {
        rule: String,
        relation: String,
    },
    LostRule {
        rule: String,
    },
    Changed {
        rule: String,
    },
    Renamed {
        relation: String,
    },
    Busy {
        rule: String,
    },
}

impl WatchError {
    pub(super) fn words(&self) -> Words {
        match self {
            WatchError::NotATable { relation, is } => say(
                Code::ERRCODE_WRONG_OBJECT_TYPE,
                format!("cannot watch \"{relation}\": it is {is}"),
                "Watch an ordinary or a partitioned table.",
            ),
            WatchError::Distributed { relation } => say(
                Code::ERRCODE_WRONG_OBJECT_TYPE,
                format!("cannot watch \"{relation}\": it is a Citus table"),
                format!(
                    "Watch its shards: SELECT * FROM run_command_on_shards({}, $cmd$WITH here AS MATERIALIZED \
                     (SELECT set_config('citus.enable_ddl_propagation', 'off', true) AS off) \
                     SELECT awty.watch('%s', …) FROM here WHERE off IS NOT NULL$cmd$);",
                    quote(relation)
                ),
            ),
            WatchError::NoPrimaryKey { relation } => say(
                Code::ERRCODE_UNDEFINED_OBJECT,
                format!("table \"{relation}\" has no primary key"),
                format!("ALTER TABLE {relation} ADD PRIMARY KEY (…);"),
            ),
            WatchError::NotTableOwner { relation, owner, caller } => say(
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("must be owner of table \"{relation}\""),
                format!("Call awty.watch() as \"{owner}\", or as a role that may become it; \"{caller}\" may not."),
            ),
            WatchError::OtherPartition { relation, partition, owner } => say(
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("table {relation} is in a partition tree with {partition}, which has another owner"),
                format!(
                    "If role {owner} may run the code of the indexes of {partition}, execute: ALTER TABLE {partition} OWNER TO {owner};",
                    owner = ident(owner)
                ),
            ),
            WatchError::Unreadable { argument, text, sqlstate, message, hint, position } => {
                let before = position.saturating_sub(1);
                let place = if *position > 0 {
                    let (start, end): (String, String) =
                        (text.chars().take(before).collect(), text.chars().skip(before).collect());
                    format!("In \"{argument}\", at character {position}: {start}>>>{end}")
                } else {
                    format!("In \"{argument}\": {text}")
                };
                let hint = if hint.is_empty() {
                    "Write columns without the table's name, such as status <> 'UNSHIPPED'."
                } else {
                    hint
                };
                say(Code::from(*sqlstate), message.clone(), hint).detail(place)
            }
            WatchError::NotAnExpression { argument, what } => say(
                Code::ERRCODE_FEATURE_NOT_SUPPORTED,
                format!("argument \"{argument}\" must be one expression over one row: {what}"),
                "For conditions over several tables, write a job and schedule it: awty.register() and awty.schedule().",
            ),
            WatchError::WholeRow { argument } => say(
                Code::ERRCODE_FEATURE_NOT_SUPPORTED,
                format!("argument \"{argument}\" must not use the whole row"),
                format!("Name the columns, such as {argument} => $$status <> 'UNSHIPPED'$$."),
            )
            .detail("PostgreSQL would refuse to add columns to the table, because a function takes its row."),
            WatchError::NotStable { argument, what } => say(
                Code::ERRCODE_FEATURE_NOT_SUPPORTED,
                format!("argument \"{argument}\" must not use {what}"),
                "Use \"since\" and \"within\" instead.",
            )
            .detail("The value would change without an UPDATE, so no trigger would fire."),
            WatchError::WrongType { argument, text, wanted, found } => say(
                Code::ERRCODE_DATATYPE_MISMATCH,
                format!("argument \"{argument}\" must be of type {wanted}, not {found}"),
                format!("Use {argument} => $${}$$.", converted(argument, text, found)),
            ),
            WatchError::Levels(LevelError::Within) => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                "argument \"within\" must be positive",
                "Use within => '3 hours', for example.",
            ),
            WatchError::Levels(LevelError::Escalate(level)) => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("element {level} of argument \"escalate\" must be longer than the level before it"),
                "Each level counts from \"since\" or \"due\", as in within => '3 hours', escalate => '{6 hours, 1 day}'.",
            ),
            WatchError::Levels(LevelError::TooMany) => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("a rule cannot have more than {MAX_LEVELS} levels"),
                "Use fewer elements in \"escalate\".",
            ),
            WatchError::Levels(LevelError::Remind(place)) => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!(
                    "element {place} of argument \"remind\" must be positive, and shorter than the reminder before it"
                ),
                "Each reminder counts back from level 1, as in remind => '{1 day, 4 hours}'.",
            ),
            WatchError::Levels(LevelError::TooManyReminders) => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("a rule cannot have more than {MAX_REMINDERS} reminders"),
                "Use fewer elements in \"remind\".",
            ),
            WatchError::Levels(LevelError::Every) => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                "argument \"every\" must be positive",
                "Use every => '1 day', for example.",
            ),
            WatchError::LengthTooLong { argument } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("argument \"{argument}\" must not be longer than {}", Shown(MAX_RULE_LENGTH)),
                "Use a shorter interval.",
            ),
            WatchError::EveryUnderSlot { slot } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("argument \"every\" must be at least one slot of {slot}"),
                "Use every => '1 day', for example.",
            ),
            WatchError::WithinOrDue { both } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                if *both { "use either \"within\" or \"due\", not both" } else { "\"within\" or \"due\" is required" },
                "Use within => '3 hours' after \"since\", or due => 'promised_at', for example.",
            ),
            WatchError::SinceAndDue => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                "argument \"since\" cannot be used with \"due\"",
                "Leave \"since\" out, or use \"within\" instead of \"due\".",
            ),
            WatchError::NameTooLong { max } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("argument \"rule\" must not be longer than {max} bytes"),
                "Use a shorter \"rule\".",
            ),
            WatchError::NeedsSince { relation } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("argument \"since\" or \"due\" is required, because table \"{relation}\" is partitioned"),
                "Use since => 'placed_at', for example.",
            )
            .detail("PostgreSQL deletes a row that moves to another partition, and inserts it there."),
            WatchError::RuleExists { rule, own: true } => say(
                Code::ERRCODE_DUPLICATE_OBJECT,
                format!("rule \"{rule}\" already exists with another definition"),
                format!("Use rule => {} for a second rule, or replace => true.", quote(&format!("{rule}_2"))),
            ),
            WatchError::RuleExists { rule, own: false } => say(
                Code::ERRCODE_DUPLICATE_OBJECT,
                format!("a job or rule \"{rule}\" already exists"),
                format!("Use rule => {}.", quote(&format!("{rule}_2"))),
            ),
            WatchError::OtherTable { rule, relation } => say(
                Code::ERRCODE_DUPLICATE_OBJECT,
                format!("rule \"{rule}\" watches table \"{relation}\""),
                format!(
                    "Use rule => {}, or end the other rule: {}",
                    quote(&format!("{rule}_2")),
                    call("awty.unwatch", &[rule])
                ),
            ),
            WatchError::NameTaken { rule, object } => say(
                Code::ERRCODE_DUPLICATE_OBJECT,
                format!("{object} already exists and does not belong to awty"),
                format!("Use rule => {}, or drop the object.", quote(&format!("{rule}_2"))),
            ),
            WatchError::NoCreate { schema, owner } => say(
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("permission denied for schema {schema} as role \"{owner}\", which owns the table"),
                format!("GRANT CREATE ON SCHEMA {schema} TO {};", ident(owner)),
            ),
            WatchError::Stopped { rule, why, not_owners, fix } => say(
                if *not_owners { Code::ERRCODE_INSUFFICIENT_PRIVILEGE } else { Code::ERRCODE_UNDEFINED_OBJECT },
                format!("rule \"{rule}\" has stopped: {why}"),
                fix.clone(),
            ),
            WatchError::Call { function } => say(
                Code::ERRCODE_UNDEFINED_FUNCTION,
                format!("function {function}(awty.alert) that returns void does not exist"),
                format!(
                    "CREATE FUNCTION {function}(a awty.alert) RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% is late', a.entity_key; END $$;"
                ),
            ),
            WatchError::RowSecurity { relation, role } => say(
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("policies would hide rows of table \"{relation}\" from role \"{role}\""),
                format!("ALTER TABLE {relation} NO FORCE ROW LEVEL SECURITY;"),
            ),
            WatchError::NoSelect { relation, role } => say(
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("permission denied for table {relation} as role \"{role}\""),
                format!("GRANT SELECT ON {relation} TO {};", ident(role)),
            ),
            WatchError::KeyTooLong { rule, relation, max } => say(
                Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                format!(
                    "the primary key of a row of table \"{relation}\" is longer than {max} bytes, the limit of rule \"{rule}\""
                ),
                call("awty.unwatch", &[rule]),
            ),
            WatchError::UnknownRule { rule } => say(
                Code::ERRCODE_UNDEFINED_OBJECT,
                format!("rule \"{rule}\" does not exist"),
                "SELECT rule, relation FROM awty.rule; lists the rules.",
            ),
            WatchError::IsRule { job } => say(
                Code::ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST,
                format!("job \"{job}\" belongs to rule \"{job}\""),
                call("awty.unwatch", &[job]),
            ),
            WatchError::Silenced { entity } => say(
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("{entity} is silenced, not held"),
                "Change the row's \"since\", \"due\" or key, or make it meet the condition.",
            ),
            WatchError::ForeignTrigger { rule, relation } => say(
                Code::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
                format!("rule \"{rule}\" does not watch table \"{relation}\""),
                "Drop the trigger, and call awty.watch() for this table.",
            ),
            WatchError::NoRule { rule, relation } => say(
                Code::ERRCODE_UNDEFINED_OBJECT,
                format!("rule \"{rule}\", whose trigger is on table \"{relation}\", does not exist"),
                "Call awty.watch() again, or drop the trigger.",
            ),
            WatchError::LostRule { rule } => say(
                Code::ERRCODE_UNDEFINED_OBJECT,
                format!("rule \"{rule}\" does not exist, but its job does"),
                "Remove the job with awty.unregister(), and call awty.watch() again.",
            ),
            WatchError::Changed { rule } => say(
                Code::ERRCODE_T_R_SERIALIZATION_FAILURE,
                format!("could not serialize access: rule \"{rule}\" has changed the check or the alert of the row"),
                "Try the transaction again.",
            ),
            WatchError::Renamed { relation } => say(
                Code::ERRCODE_T_R_SERIALIZATION_FAILURE,
                format!(
                    "could not serialize access: another transaction has changed table {relation} or renamed a schema"
                ),
                "Try the transaction again.",
            ),
            WatchError::Busy { rule } => say(
                Code::ERRCODE_LOCK_NOT_AVAILABLE,
                format!("checks, alerts or functions of rule \"{rule}\" are locked by another transaction"),
                "Try again. SELECT * FROM pg_prepared_xacts; shows transactions that wait to be committed.",
            ),
        }
    }
}

fn converted(argument: &str, text: &str, found: &str) -> String {
    let is_name = text.chars().all(|c| c.is_alphanumeric() || c == '_');
    let text = if is_name { text.to_owned() } else { format!("({text})") };
    match (argument, found) {
        ("since" | "due", "date") => format!("{text}::timestamp AT TIME ZONE 'Europe/Berlin'"),
        ("since" | "due", "timestamp without time zone") => format!("{text} AT TIME ZONE 'Europe/Berlin'"),
        ("since" | "due", "text" | "character varying") => format!("{text}::timestamptz"),
        ("since" | "due", _) => format!("to_timestamp({text})"),
        _ => format!("{text} IS NOT NULL"),
    }
}
