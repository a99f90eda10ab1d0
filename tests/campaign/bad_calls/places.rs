//! Makes calls in different contexts, such as a transaction, a cursor or a COPY.
//!
//! Invariant: a step returns `Err` only if the connection is lost. Each step keeps the session's user and settings, and
//! leaves no transaction open.

use super::signatures::Function;
use crate::random::Random;
use awty_testkit::postgres::{Client, Error, SimpleQueryMessage};
use std::io::Write as _;

#[derive(Clone, Copy, Debug)]
pub enum Place {
    Plain,
    Transaction,
    ReadOnly,
    Serializable,
    RepeatableRead,
    Aborted,
    Savepoints,
    OneMessage,
    Subtransaction,
    Restricted,
    Prepared,
    HeldCursor,
    Insert,
    Copy,
}

const PLACES: [Place; 18] = {
    use Place::*;
    [
        Plain,
        Plain,
        Plain,
        Plain,
        Transaction,
        Transaction,
        ReadOnly,
        Serializable,
        RepeatableRead,
        Aborted,
        Savepoints,
        OneMessage,
        Subtransaction,
        Restricted,
        Prepared,
        HeldCursor,
        Insert,
        Copy,
    ]
};

#[rustfmt::skip]
const SETTINGS: &[&str] = &[
    "search_path = ''", "search_path = pg_temp, garbage, pg_catalog", "search_path = awty", "search_path = nowhere, \"$user\"",
    "DateStyle = 'German, DMY'", "DateStyle = 'SQL, MDY'", "DateStyle = 'Postgres, YMD'", "IntervalStyle = 'sql_standard'",
    "IntervalStyle = 'iso_8601'", "TimeZone = 'Europe/Berlin'", "TimeZone = 'America/St_Johns'", "TimeZone = '+167:59:59'",
    "TimeZone = 'Antarctica/Troll'", "standard_conforming_strings = off", "escape_string_warning = off", "backslash_quote = off",
    "transform_null_equals = on", "row_security = off", "default_transaction_read_only = on", "default_transaction_isolation = serializable",
    "default_transaction_deferrable = on", "lock_timeout = 5000", "extra_float_digits = -15", "bytea_output = escape", "quote_all_identifiers = on",
    "check_function_bodies = off", "force_parallel_mode = regress", "plan_cache_mode = force_generic_plan", "enable_seqscan = off",
    "enable_indexscan = off", "jit_above_cost = 0", "synchronous_commit = off", "client_min_messages = debug2", "work_mem = 64",
    "constraint_exclusion = on", "xmloption = document", "session_replication_role = replica", "log_statement_stats = on",
    "default_tablespace = ''", "default_table_access_method = heap", "temp_buffers = 100", "max_stack_depth = 100",
];

#[derive(Debug)]
pub struct Step {
    place: Place,
    settings: Vec<&'static str>,
    pub calls: Vec<String>,
    undone: bool,
}

impl Step {
    pub fn any(functions: &[Function], random: &mut Random) -> Self {
        let place = *random.pick(&PLACES);
        let settings = (0..random.below(3)).map(|_| *random.pick(SETTINGS)).collect();
        let most = match place {
            Place::Plain | Place::Restricted | Place::Prepared | Place::HeldCursor => 1,
            Place::Insert | Place::Copy => 20,
            _ => 6,
        };
        let calls = (0..1 + random.below(most)).map(|_| super::call::call(functions, random)).collect();
        Self { place, settings, calls, undone: random.per_mille(300) }
    }

    pub fn take(&self, client: &mut Client, role: &str) -> Result<Vec<(String, String)>, Error> {
        for setting in &self.settings {
            ask(client, &format!("SET {setting}"))?; // fails for settings of superusers or other versions
        }
        let before = state(client)?;
        let mut answers = self.make(client, role)?;
        let after = state(client)?;
        if before != after {
            answers.push((
                format!("{:?} {:?}", self.place, self.calls),
                format!("XX000 the session was {before}, is {after}"),
            ));
        }
        ask(client, "RESET ALL")?;
        Ok(answers)
    }

    fn make(&self, client: &mut Client, role: &str) -> Result<Vec<(String, String)>, Error> {
        let end = if self.undone { "ROLLBACK" } else { "COMMIT" };
        let first = &self.calls[0];
        let quoted = |call: &str| format!("$garbage${call}$garbage$");
        match self.place {
            Place::Plain => self.each(client, "", ""),
            Place::Transaction => self.each(client, "BEGIN", end),
            Place::ReadOnly => self.each(client, "BEGIN READ ONLY", end),
            Place::Serializable => self.each(client, "BEGIN ISOLATION LEVEL SERIALIZABLE", end),
            Place::RepeatableRead => self.each(client, "BEGIN ISOLATION LEVEL REPEATABLE READ", end),
            Place::Aborted => self.each(client, "BEGIN; SELECT 1/0", end),
            Place::Savepoints => self.savepoints(client, end),
            Place::OneMessage => Ok(vec![(self.calls.join("; "), ask(client, &self.calls.join("; "))?)]),
            Place::Subtransaction => {
                let tries: Vec<_> =
                    self.calls.iter().map(|call| format!("SELECT garbage.try({})", quoted(call))).collect();
                self.calls.iter().zip(&tries).map(|(call, sql)| Ok((call.clone(), value(client, sql)?))).collect()
            }
            Place::Restricted => {
                ask(client, &format!("SELECT pg_catalog.set_config('garbage.call', {}, false)", quoted(first)))?;
                let refreshed = ask(client, &format!("REFRESH MATERIALIZED VIEW garbage.by_{role}"))?;
                let answer = value(client, &format!("SELECT answer FROM garbage.by_{role}"))?;
                ask(client, "RESET garbage.call")?;
                Ok(vec![(first.clone(), refreshed), (first.clone(), answer)])
            }
            Place::Prepared => {
                let prepared = ask(client, &format!("PREPARE garbage AS {first}"))?;
                let executed = [ask(client, "EXECUTE garbage")?, ask(client, "EXECUTE garbage")?];
                let known = prepared.is_empty();
                ask(client, "DEALLOCATE ALL")?;
                Ok(std::iter::once(prepared)
                    .chain(executed.into_iter().filter(|_| known))
                    .map(|answer| (first.clone(), answer))
                    .collect())
            }
            Place::HeldCursor => {
                let declared = ask(client, &format!("BEGIN; DECLARE garbage CURSOR WITH HOLD FOR {first}"))?;
                let ended = ask(client, end)?;
                ask(client, "CLOSE ALL")?;
                Ok(vec![(first.clone(), declared), (first.clone(), ended)])
            }
            Place::Insert => {
                let rows: Vec<_> = self.calls.iter().map(|call| format!("({})", quoted(call))).collect();
                let insert =
                    format!("INSERT INTO garbage.inbox (call) SELECT v FROM (VALUES {}) AS v(v)", rows.join(", "));
                let inserted = ask(client, &format!("BEGIN; {insert}"))?;
                self.inbox(client, inserted, end)
            }
            Place::Copy => {
                ask(client, "BEGIN READ WRITE")?; // the driver cannot handle a COPY that is refused before it begins
                let copied = copy(client, &self.calls)?;
                self.inbox(client, copied, end)
            }
        }
    }

    fn each(&self, client: &mut Client, begin: &str, end: &str) -> Result<Vec<(String, String)>, Error> {
        ask(client, begin)?;
        let mut answers = Vec::new();
        for call in &self.calls {
            answers.push((call.clone(), ask(client, call)?));
        }
        answers.push((self.calls.join("; "), ask(client, end)?));
        Ok(answers)
    }

    fn savepoints(&self, client: &mut Client, end: &str) -> Result<Vec<(String, String)>, Error> {
        ask(client, "BEGIN")?;
        let mut answers = Vec::new();
        for (number, call) in self.calls.iter().enumerate() {
            ask(client, "SAVEPOINT s")?;
            let answer = ask(client, call)?;
            ask(client, if answer.is_empty() && number % 2 == 0 { "RELEASE s" } else { "ROLLBACK TO s" })?;
            answers.push((call.clone(), answer));
        }
        answers.push((self.calls.join("; "), ask(client, end)?));
        Ok(answers)
    }

    fn inbox(&self, client: &mut Client, put_in: String, end: &str) -> Result<Vec<(String, String)>, Error> {
        let mut answers = vec![(self.calls.join("; "), put_in)];
        if answers[0].1.is_empty() {
            for row in client.simple_query("SELECT call, answer FROM garbage.inbox")? {
                if let SimpleQueryMessage::Row(row) = row {
                    answers.push((row.get(0).unwrap_or("").into(), row.get(1).unwrap_or("").into()));
                }
            }
            ask(client, "DELETE FROM garbage.inbox")?;
        }
        answers.push((self.calls.join("; "), ask(client, end)?));
        Ok(answers)
    }
}

pub fn ask(client: &mut Client, sql: &str) -> Result<String, Error> {
    answer(client.simple_query(sql).map(drop))
}

pub fn value(client: &mut Client, sql: &str) -> Result<String, Error> {
    match client.simple_query(sql) {
        Ok(rows) => Ok(rows
            .iter()
            .find_map(|row| match row {
                SimpleQueryMessage::Row(row) if !row.is_empty() => row.get(0).map(str::to_owned),
                _ => None,
            })
            .unwrap_or_default()),
        Err(error) => answer(Err(error)),
    }
}

fn copy(client: &mut Client, calls: &[String]) -> Result<String, Error> {
    let mut writer = match client.copy_in("COPY garbage.inbox (call) FROM STDIN") {
        Ok(writer) => writer,
        Err(error) => return answer(Err(error)),
    };
    for call in calls {
        let line = call.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t");
        if writer.write_all(format!("{line}\n").as_bytes()).is_err() {
            break; // finish() reports the reason
        }
    }
    answer(writer.finish().map(drop))
}

fn answer(result: Result<(), Error>) -> Result<String, Error> {
    match result {
        Ok(()) => Ok(String::new()),
        Err(error) => match error.as_db_error() {
            Some(refusal) if !error.is_closed() => Ok(format!("{} {}", refusal.code().code(), refusal.message())),
            _ => Err(error),
        },
    }
}

fn state(client: &mut Client) -> Result<String, Error> {
    value(
        client,
        "SELECT pg_catalog.concat_ws(' ', current_user, session_user, pg_catalog.string_agg(name || '=' || setting, ', '))
         FROM pg_catalog.pg_settings WHERE source OPERATOR(pg_catalog.=) 'session'
           AND name OPERATOR(pg_catalog.<>) 'transaction_read_only' AND name !~ 'transaction_(isolation|deferrable)'",
    )
}
