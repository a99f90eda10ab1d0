//! Gives each error a text and a hint.

use super::Error;
use super::phrase::{Words, array, call, head, ident, origin_busy, quote, say};
use crate::signature::Signature;
use crate::version;
use awty_core::limits::Shown;
use awty_core::versions::Unserved;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;

impl Error {
    pub(super) fn words(&self) -> Words {
        match self {
            Error::NotPreloaded => say(
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "awty must be loaded by \"shared_preload_libraries\"",
                "Add shared_preload_libraries = 'awty' to postgresql.conf and restart the server.",
            ),
            Error::NothingRuns => say(
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "awty is not loaded by \"shared_preload_libraries\", so no check runs",
                "Add shared_preload_libraries = 'awty' to postgresql.conf and restart the server.",
            )
            .detail("Checks that are scheduled now run as soon as awty is loaded."),
            Error::Unserved { installed, unserved } => say(
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!(
                    "extension \"awty\" is installed in version \"{installed}\", which its library {} does not serve",
                    version::LIBRARY
                ),
                match unserved {
                    Unserved::Older => "ALTER EXTENSION awty UPDATE;",
                    Unserved::Newer => "Restart the server, which still has the old library in memory.",
                },
            ),
            Error::Standby { function } => say(
                Code::ERRCODE_READ_ONLY_SQL_TRANSACTION,
                format!("cannot execute {function} during recovery"),
                "Schedule on the primary server.",
            ),
            Error::ReadOnly { function } => say(
                Code::ERRCODE_READ_ONLY_SQL_TRANSACTION,
                format!("cannot execute {function} in a read-only transaction"),
                "BEGIN READ WRITE; starts a transaction that may write.",
            ),
            Error::Restricted { function } => say(
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("cannot execute {function} within a security-restricted operation"),
                "Call it from a trigger or from the application.",
            )
            .detail("Index expressions, materialized views and maintenance commands must have no such effects."),
            Error::NotTrigger { function } => say(
                Code::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
                format!("{function} was not called by a trigger"),
                "Only awty's own triggers may call this function.",
            ),
            Error::Null { argument } => say(
                Code::ERRCODE_NULL_VALUE_NOT_ALLOWED,
                format!("argument \"{argument}\" must not be null"),
                format!("Give \"{argument}\" a value."),
            ),
            Error::Empty { argument } => say(
                Code::ERRCODE_INVALID_NAME,
                format!("argument \"{argument}\" must not be empty"),
                format!("Give \"{argument}\" a value."),
            ),
            Error::TooLong { argument, max } => say(
                Code::ERRCODE_NAME_TOO_LONG,
                format!("argument \"{argument}\" must not be longer than {max} bytes"),
                format!("Use a shorter \"{argument}\"."),
            ),
            Error::KeyType { argument, kind } => say(
                Code::ERRCODE_DATATYPE_MISMATCH,
                format!("argument \"{argument}\" must not be of type {kind}"),
                "awty.key(a, b) makes one key of several columns.",
            ),
            Error::ArrayShape { argument: "entity_keys" } => say(
                Code::ERRCODE_ARRAY_ELEMENT_ERROR,
                "argument \"entity_keys\" must have one dimension",
                "Use array_agg(), which makes an array of rows.",
            ),
            Error::ArrayShape { argument } => say(
                Code::ERRCODE_ARRAY_ELEMENT_ERROR,
                format!("argument \"{argument}\" must have one element for each key"),
                "Use array_agg() over the same rows for each argument.",
            ),
            Error::TooManyKeys { max } => say(
                Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                format!("argument \"entity_keys\" must not have more than {max} elements"),
                "Split the keys among several calls.",
            ),
            Error::KeyTwice { key } => say(
                Code::ERRCODE_CARDINALITY_VIOLATION,
                format!("key \"{key}\" is given twice"),
                "Give each key only once, because an entity has at most one check of each job.",
            ),
            Error::ArgsTooLarge { max } => say(
                Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                format!("argument \"args\" must not be larger than {max} bytes"),
                "Pass a key, and let the job look up the data.",
            ),
            Error::AtOrAfter { both } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                if *both {
                    "arguments \"at\" and \"after\" cannot be used together"
                } else {
                    "one of the arguments \"at\" and \"after\" is required"
                },
                "SELECT awty.schedule('orders', '42', 'unshipped', after => '3 hours');",
            ),
            Error::OutOfRange { argument } => say(
                Code::ERRCODE_DATETIME_FIELD_OVERFLOW,
                format!("argument \"{argument}\" is out of range"),
                "Use a finite time. The job's \"max_horizon\" limits how far ahead a check may be.",
            ),
            Error::NotPositive { argument } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("argument \"{argument}\" must be positive"),
                format!("Use {argument} => '1 day', for example."),
            ),
            Error::StepOfMonths => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                "argument \"step\" must not have months or years",
                "Use step => '30 days', for example.",
            ),
            Error::TooManySteps { max } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("a forecast cannot have more than {max} steps"),
                "Use a longer \"step\" or a shorter \"ahead\".",
            ),
            Error::TooShort { argument, min } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("argument \"{argument}\" must be at least {min}"),
                format!("Use {argument} => '{min}' or more."),
            ),
            Error::DurationOutOfRange { argument } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("argument \"{argument}\" is out of range"),
                "Use a shorter interval.",
            ),
            Error::Negative { argument } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("argument \"{argument}\" must not be negative"),
                "Use a positive interval. A past \"at\" means the next slot.",
            ),
            Error::TooFar { job, time, horizon } => say(
                Code::ERRCODE_DATETIME_FIELD_OVERFLOW,
                format!("time {} is too far ahead for job \"{job}\"", time.format("%Y-%m-%d %H:%M:%S%:z")),
                format!("SELECT awty.alter({}, max_horizon => '10 years');", quote(job)),
            )
            .detail(format!("The job's \"max_horizon\" is {}.", Shown(*horizon))),
            Error::UnknownJob { job, nearest } => say(
                Code::ERRCODE_UNDEFINED_OBJECT,
                format!("job \"{job}\" does not exist"),
                match nearest {
                    Some(nearest) => format!("Did you mean \"{nearest}\"?"),
                    None => call("awty.register", &[job, "schema.function"]),
                },
            ),
            Error::JobExists { job, own: false } => say(
                Code::ERRCODE_DUPLICATE_OBJECT,
                format!("job \"{job}\" already exists"),
                "Use another name, because this job belongs to another role.",
            ),
            Error::JobExists { job, own: true } => say(
                Code::ERRCODE_DUPLICATE_OBJECT,
                format!("job \"{job}\" already exists with another definition"),
                "Add replace => true to replace the definition.",
            )
            .detail("The function, the role or an option differs."),
            Error::NotAllowed { job, role } => say(
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("permission denied for job \"{job}\""),
                format!("A member of the job's role can execute: {}", call("awty.allow", &[job, role])),
            ),
            Error::NotOwner { job } => say(
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("permission denied for job \"{job}\""),
                "Ask a member of the job's role, or a superuser.",
            )
            .detail("Only members of the job's role may change it."),
            Error::Option { message } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                message.clone(),
                "SELECT * FROM awty.job; shows the options of each job.",
            ),
            Error::Choice { argument, value, choices } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("invalid value for argument \"{argument}\": \"{value}\""),
                format!("Use one of: {choices}."),
            ),
            Error::Slot { message, server } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                message.clone(),
                format!("Use a multiple of awty.slot ({server} seconds) that divides a day, or a shorter awty.slot."),
            ),
            Error::UnknownOption { option, options } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("option \"{option}\" does not exist or has no default"),
                format!("The options are {options}."),
            ),
            Error::Command { job, command, create, function } => say(
                Code::ERRCODE_INVALID_NAME,
                format!("\"{command}\" is a command and not the name of a function"),
                format!("{create} SELECT awty.register({}, {});", quote(job), quote(function)),
            ),
            Error::FunctionName { function } => say(
                Code::ERRCODE_INVALID_NAME,
                format!("invalid function name \"{function}\""),
                "Give the name only, with its schema, such as 'shop.unshipped'.",
            ),
            Error::FunctionMissing { function, set_based } => say(
                Code::ERRCODE_UNDEFINED_FUNCTION,
                format!("function {function}(awty.future_job{}) does not exist", array(*set_based)),
                head(function, if *set_based { Signature::Set } else { Signature::Check }),
            ),
            Error::NotAFunction { function } => say(
                Code::ERRCODE_WRONG_OBJECT_TYPE,
                format!("{function} is not a plain function"),
                head(function, Signature::Check),
            ),
            Error::WrongResult { function, takes } => say(
                Code::ERRCODE_INVALID_FUNCTION_DEFINITION,
                format!("function {function} must return timestamptz{} or void", array(*takes == Signature::Set)),
                head(function, *takes),
            ),
            Error::Ambiguous { function, takes } => {
                let [first, second] = takes.map(|takes| format!("{function}({})", takes.signature()));
                say(
                    Code::ERRCODE_AMBIGUOUS_FUNCTION,
                    format!("function {function} is not unique"),
                    format!("DROP FUNCTION {second}; or drop the other one."),
                )
                .detail(format!("There are {first} and {second}."))
            }
            Error::OfJob { job, error } => {
                let words = error.words();
                Words { message: format!("job \"{job}\" cannot run: {}", words.message), ..words }
            }
            Error::TemporaryFunction { function } => say(
                Code::ERRCODE_INVALID_FUNCTION_DEFINITION,
                format!("function {function} is temporary"),
                "Create the function in a schema that other sessions can see.",
            ),
            Error::NoExecute { function, role } => say(
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("permission denied for function {function} as role \"{role}\""),
                format!("GRANT EXECUTE ON FUNCTION {function} TO {};", ident(role)),
            ),
            Error::NoUsage { schema, role } => say(
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("permission denied for schema {schema} as role \"{role}\""),
                format!("GRANT USAGE ON SCHEMA {} TO {};", ident(schema), ident(role)),
            ),
            Error::Untrusted { function, role } => say(
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("role \"{role}\" runs only functions of superusers, and {function} has another owner"),
                format!("Use run_as => an ordinary role, or let a superuser read {function} and own it."),
            )
            .detail(
                "A superuser, or a role with BYPASSRLS, CREATEROLE, REPLICATION or a predefined role, would lend its rights \
                 to every role that may change the function.",
            ),
            Error::ForeignFunction { function, owner, role } => say(
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("function {function} belongs to role \"{owner}\""),
                format!("If role {0} may run {function}, execute: ALTER FUNCTION {function} OWNER TO {0};", ident(role)),
            )
            .detail(format!(
                "The function would run with the rights of role \"{role}\", which runs its own functions, and those of roles that \
                 it is a member of, of superusers and of the role that registered the job."
            )),
            Error::OtherRole { job, role } => say(
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("job \"{job}\" can be tried only by role \"{role}\""),
                format!("SET ROLE {};", ident(role)),
            )
            .detail("The job runs with that role's rights."),
            Error::TooManyJobs { role, max } => say(
                Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                format!("role \"{role}\" cannot have more than {max} jobs"),
                "Use one job for any number of entities, and pass the differences in the check's key or arguments.",
            ),
            Error::JobBusy { job } => say(
                Code::ERRCODE_LOCK_NOT_AVAILABLE,
                format!("job \"{job}\" or one of its checks or targets is locked by another transaction"),
                "Try again. SELECT * FROM pg_prepared_xacts; shows transactions that wait to be committed.",
            ),
            Error::OriginBusy => origin_busy(),
            Error::UnknownRole { role } => say(
                Code::ERRCODE_UNDEFINED_OBJECT,
                format!("role \"{role}\" does not exist"),
                "SELECT rolname FROM pg_roles; lists the roles.",
            ),
            Error::NotMember { role, caller, privileged } => say(
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("must be able to SET ROLE \"{role}\""),
                match privileged {
                    true => format!("Use run_as => {}, and grant that role the rights that the function needs.", quote(caller)),
                    false => format!("GRANT {} TO {};", ident(role), ident(caller)),
                },
            ),
            Error::NoLogin { role, caller } => say(
                Code::ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION,
                format!("role \"{role}\" is not permitted to log in"),
                match caller {
                    Some(caller) => format!("Use run_as => {}.", quote(caller)),
                    None => format!("ALTER ROLE {} LOGIN;", ident(role)),
                },
            ),
            Error::NoConnect { role, database } => say(
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("role \"{role}\" may not connect to database \"{database}\""),
                format!("GRANT CONNECT ON DATABASE {} TO {};", ident(database), ident(role)),
            ),
            Error::AlreadyPending { job, entity, id } => say(
                Code::ERRCODE_UNIQUE_VIOLATION,
                format!("a check of job \"{job}\" is already pending for {entity}"),
                "Use on_conflict => 'replace', 'keep', 'earliest' or 'latest'.",
            )
            .detail(format!("It is check {id}.")),
            Error::Contended { job, entity } => say(
                Code::ERRCODE_T_R_SERIALIZATION_FAILURE,
                format!("the check of job \"{job}\" for {entity} kept changing"),
                "Try the transaction again.",
            ),
            Error::NoCheck { entity, job } => say(
                Code::ERRCODE_UNDEFINED_OBJECT,
                match job {
                    None => format!("no check is pending for {entity}"),
                    Some(job) => format!("no check of job \"{job}\" is pending for {entity}"),
                },
                "SELECT entity_name, entity_key, job FROM awty.future_job; lists the pending checks.",
            ),
            Error::ManyChecks { entity, jobs, function } => say(
                Code::ERRCODE_CARDINALITY_VIOLATION,
                format!("more than one check is pending for {entity}"),
                call(function, &[&entity.name, &entity.key, jobs.first().map_or("", String::as_str)]),
            )
            .detail(format!("The jobs are {}.", jobs.iter().map(|job| ident(job)).collect::<Vec<_>>().join(", "))),
            Error::Running { id, since } => say(
                Code::ERRCODE_OBJECT_IN_USE,
                format!("check {id} has been running since {}", since.format("%Y-%m-%d %H:%M:%S%.3f%:z")),
                "Try again when the run is over.",
            ),
            Error::Held { entity, job } => say(
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("the check of job \"{job}\" for {entity} is held"),
                format!("SELECT awty.release({}, {}, {});", quote(&entity.name), quote(&entity.key), quote(job)),
            ),
            Error::NotHeld { entity, job } => say(
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("the check of job \"{job}\" for {entity} is not held"),
                "SELECT entity_name, entity_key, job FROM awty.future_job WHERE held; lists the checks to release.",
            ),
            Error::NotDatabaseOwner { database } => say(
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("must be owner of database \"{database}\""),
                "Ask the owner of the database, or a superuser.",
            ),
            Error::BrokenJob { job, message } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("job \"{job}\" has an invalid row in awty.job"),
                format!("A superuser can execute: SELECT awty.unregister({}); and register the job again.", quote(job)),
            )
            .detail(format!("The row cannot be used: {message}.")),
            Error::Altered { table } => say(
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("table {table} has been altered in a way that awty does not support"),
                format!("Drop the rule or trigger on {table} that suppresses awty's statements."),
            ),
            Error::Repeat { error, job, zone } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                error.to_string(),
                super::repeat::hint(error, job, zone.as_deref()),
            ),
            Error::UnknownZone { zone, hint } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("time zone \"{zone}\" not recognized"),
                hint,
            ),
            Error::Watch(error) => error.words(),
            Error::Calendar(error) => error.words(),
            Error::Travel(error) => error.words(),
            Error::AnswerOutOfRange { job } => say(
                Code::ERRCODE_DATETIME_FIELD_OVERFLOW,
                format!("job \"{job}\" returned a time that is out of range"),
                "Return NULL if nothing is left to check.",
            ),
            Error::AnswerCount { job, checks, answers } => say(
                Code::ERRCODE_ARRAY_ELEMENT_ERROR,
                format!("job \"{job}\" returned {answers} results for {checks} checks"),
                "Return one time or NULL for each check, in the order of the checks.",
            ),
            Error::Lease(error) => error.words(),
            Error::Quiet(error) => error.words(),
            Error::Uri(error) => error.words(),
        }
    }
}
