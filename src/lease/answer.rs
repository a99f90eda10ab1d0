//! Invariant: a report, its history row and the next check are committed together with the caller's transaction. A
//! report for an ended lease changes nothing.
//!
//! `complete_many()` and `fail_many()` skip locked checks and leases, so that a client's lock does not delay other
//! reports.

use super::arrays::{each, leases};
use super::heartbeat::live;
use super::statements::lease::{self, End, StoredLease};
use super::target;
use crate::call::args::{Args, calls, is_too_large};
use crate::call::argument_limits::MAX_RESULT;
use crate::call::rights;
use crate::error::{self, Error, LeaseError, Result};
use crate::failpoint::failpoint;
use crate::figures::account::{Account, CheckResult};
use crate::pg::array::{BOOL, JSONB, TEXT, TIME};
use crate::pg::catch::Failure;
use crate::pg::clock;
use crate::pg::subtransaction::{has_one_snapshot, kept_whole};
use crate::pg::text::Text;
use crate::run::book::{self, Timing};
use crate::shmem::wakeup;
use crate::store;
use crate::store::check_row::{Row, Table, answer};
use crate::store::job::Job;
use awty_core::{Answer, Failed, Time};
use chrono::TimeDelta;
use pgrx::{FromDatum, pg_sys};
use std::collections::{HashMap, HashSet};

const EXTERNAL: &str = "38000";

calls! {
    fn complete -> &'static str = |args| one(args, "awty.complete()", completion);
    fn fail -> &'static str = |args| one(args, "awty.fail()", failure);
    fn complete_many -> Vec<&'static str> = |args| many(args, "awty.complete_many()", completions);
    fn fail_many -> Vec<&'static str> = |args| many(args, "awty.fail_many()", failures);
}

#[derive(Clone)]
enum Answered {
    Done(Answer),
    Failed { failure: Failure, retry_at: Option<Time>, is_final: bool, not_started: bool, target_down: bool },
}

#[derive(Clone)]
struct Report {
    number: i64,
    answered: Answered,
    result: Option<pg_sys::Datum>,
}

fn one(args: &Args, function: &'static str, read: fn(&Args, i64) -> Result<Report>) -> Result<&'static str> {
    rights::gate_lease(function)?;
    let number = args.get::<i64>(0).ok_or(Error::Null { argument: "lease" })?;
    let report = read(args, number)?;
    Ok(take(&[report], Locks::Wait).pop().unwrap_or(VOID))
}

fn completion(args: &Args, number: i64) -> Result<Report> {
    Ok(Report { number, answered: Answered::Done(again(args.datum(1))), result: result(args.datum(2))? })
}

fn again(datum: Option<pg_sys::Datum>) -> Answer {
    answer(datum.map(|datum| datum.value() as i64))
}

fn result(datum: Option<pg_sys::Datum>) -> Result<Option<pg_sys::Datum>> {
    // SAFETY: the SQL functions declare the argument as jsonb.
    if datum.is_some_and(|datum| unsafe { is_too_large(datum, MAX_RESULT) }) {
        return Err(Error::TooLong { argument: "result", max: MAX_RESULT });
    }
    Ok(datum)
}

fn failure(args: &Args, number: i64) -> Result<Report> {
    let flag = |index| args.datum(index);
    failed(number, [1, 2, 3, 4, 5, 6, 7].map(flag))
}

fn failed(
    number: i64,
    [message, code, at, is_final, not_started, target_down, result_of]: [Option<pg_sys::Datum>; 7],
) -> Result<Report> {
    // SAFETY: the SQL functions declare these arguments as text.
    let text = |datum: Option<pg_sys::Datum>| datum.and_then(|datum| unsafe { Text::from_datum(datum, false) });
    let message = text(message).ok_or(Error::Null { argument: "message" })?;
    let code = text(code).map_or(EXTERNAL.to_owned(), |code| code.to_string());
    let is_code = code.len() == 5 && code.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    if !is_code || code.starts_with("00") {
        return Err(LeaseError::SqlState { value: code.chars().take(20).collect() }.into());
    }
    let flag = |datum: Option<pg_sys::Datum>| datum.is_some_and(|datum| datum.value() != 0);
    let retry_at = at.map(|datum| clock::clamped(datum.value() as i64));
    let failure = Failure { sqlstate: code, message: message.to_string(), context: String::new() };
    let (is_final, not_started, target_down) = (flag(is_final), flag(not_started), flag(target_down));
    let answered = Answered::Failed { failure, retry_at, is_final, not_started, target_down };
    Ok(Report { number, answered, result: result(result_of)? })
}

type Reports = Vec<Result<Report>>;

fn completions(args: &Args) -> Result<(usize, Reports)> {
    let numbers = leases(args)?;
    let next_at = each(args, 1, TIME, "next_at", numbers.len())?;
    let results = each(args, 2, JSONB, "result", numbers.len())?;
    let read = |place: usize, number| {
        Ok(Report { number, answered: Answered::Done(again(next_at[place])), result: result(results[place])? })
    };
    Ok((numbers.len(), by_place(&numbers, read)))
}

fn failures(args: &Args) -> Result<(usize, Reports)> {
    let numbers = leases(args)?;
    let count = numbers.len();
    if args.datum(1).is_none() && count > 0 {
        return Err(Error::Null { argument: "message" });
    }
    let columns = [
        each(args, 1, TEXT, "message", count)?,
        each(args, 2, TEXT, "sqlstate", count)?,
        each(args, 3, TIME, "retry_at", count)?,
        each(args, 4, BOOL, "final", count)?,
        each(args, 5, BOOL, "not_started", count)?,
        each(args, 6, BOOL, "target_down", count)?,
        each(args, 7, JSONB, "result", count)?,
    ];
    let read = |place: usize, number| failed(number, [0, 1, 2, 3, 4, 5, 6].map(|column: usize| columns[column][place]));
    Ok((count, by_place(&numbers, read)))
}

fn by_place(numbers: &[Option<i64>], read: impl Fn(usize, i64) -> Result<Report>) -> Reports {
    let all = numbers.iter().enumerate();
    all.map(|(place, number)| read(place, number.ok_or(Error::Null { argument: "leases" })?)).collect()
}

/// Stores all reports together. If one raises an error, stores the reports one by one.
fn many(args: &Args, function: &'static str, read: fn(&Args) -> Result<(usize, Reports)>) -> Result<Vec<&'static str>> {
    rights::gate_lease(function)?;
    let (count, reports) = read(args)?;
    let mut answers = vec![VOID; count];
    let mut good = Vec::new();
    for (place, report) in reports.into_iter().enumerate() {
        match report {
            Ok(report) => good.push((place, report)),
            Err(error) => error.warn(),
        }
    }
    let all: Vec<Report> = good.iter().map(|(_, report)| report.clone()).collect();
    match kept_whole(|| take(&all, Locks::Skip)) {
        Ok(taken) => good.iter().zip(taken).for_each(|((place, _), answer)| answers[*place] = answer),
        Err(caught) if is_everybodys(&caught.failure()) => caught.rethrow(),
        Err(_) => {
            for (place, report) in good {
                match kept_whole(|| take(std::slice::from_ref(&report), Locks::Skip)) {
                    Ok(mut taken) => answers[place] = taken.pop().unwrap_or(VOID),
                    Err(caught) if is_everybodys(&caught.failure()) => caught.rethrow(),
                    Err(caught) => error::log::not_booked(report.number, &caught.failure()),
                }
            }
        }
    }
    Ok(answers)
}

/// Returns whether a failure concerns the whole statement: cancellation, serialization conflict, lack of resources, or
/// `lock_timeout`.
fn is_everybodys(trouble: &Failure) -> bool {
    ["40", "53", "57", "25", "55P03"].iter().any(|class| trouble.sqlstate.starts_with(class))
}

const VOID: &str = "void";
/// The report was not stored, because a client has locked the check or the lease. The worker must send the report
/// again.
const BUSY: &str = "busy";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Locks {
    Wait,
    Skip,
}

struct Taken<'a> {
    given: StoredLease,
    job: Job,
    row: Row,
    report: &'a Report,
}

impl Taken<'_> {
    fn key(&self) -> (Text, Text) {
        (self.job.name.clone(), self.given.target.clone())
    }
}

impl Report {
    /// Even a failed call shows that the target is up, unless the report says that the target is down or that the call
    /// was not started.
    fn target_report(&self) -> Option<target::Report> {
        match &self.answered {
            Answered::Failed { failure, target_down: true, .. } => Some(target::Report::Down(failure.message.clone())),
            Answered::Failed { not_started: true, .. } => None,
            Answered::Failed { .. } | Answered::Done(_) => Some(target::Report::Answered),
        }
    }
}

fn take(reports: &[Report], locks: Locks) -> Vec<&'static str> {
    let now = clock::now();
    let numbers: Vec<i64> = reports.iter().map(|report| report.number).collect();
    let mut answers: HashMap<i64, &'static str> = HashMap::new();
    let Some(table) = Table::open_latest() else { return vec![VOID; reports.len()] };
    let mut first: HashMap<i64, &Report> = HashMap::new();
    for report in reports {
        first.entry(report.number).or_insert(report);
    }
    let mut live = live(&numbers, now);
    live.sort_unstable_by_key(|(given, _)| given.id);
    let (mut taken, mut ends) = (Vec::new(), Vec::new());
    for (given, job) in live {
        let report = first[&given.number];
        let locked = if locks == Locks::Wait { Ok(table.lock_waiting(given.id)) } else { table.lock_at_once(given.id) };
        let Ok(row) = locked else {
            answers.insert(given.number, BUSY);
            continue;
        };
        ends.push(end(&given, &job, report, row.as_ref().map(|row| row.held)));
        if let Some(row) = row {
            taken.push(Taken { given, job, row, report });
        }
    }
    // A heartbeat and `awty.requeue()` lock a lease, but not its check.
    if locks == Locks::Skip && !has_one_snapshot() {
        let ending: Vec<i64> = ends.iter().map(|end| end.number).collect();
        let free: HashSet<i64> = lease::lock(&ending).into_iter().map(|given| given.number).collect();
        answers.extend(ending.into_iter().filter(|number| !free.contains(number)).map(|number| (number, BUSY)));
        ends.retain(|end| free.contains(&end.number));
        taken.retain(|taken| free.contains(&taken.given.number));
    }
    failpoint!("answer.locked");
    let ended: HashSet<i64> =
        if ends.is_empty() { HashSet::new() } else { lease::end(&ends, now).into_iter().collect() };
    if has_one_snapshot() && taken.iter().any(|taken| !ended.contains(&taken.given.number)) {
        Error::from(LeaseError::Concurrent).raise();
    }
    taken.retain(|taken| ended.contains(&taken.given.number));
    let reports: Vec<_> = taken.iter().filter_map(|taken| Some((taken.key(), taken.report.target_report()?))).collect();
    let of_check: HashMap<i64, i64> = taken.iter().map(|taken| (taken.row.id, taken.given.number)).collect();
    let mut waiting = Vec::new();
    for (check, became, is_answer) in book(&table, taken, now) {
        let answer = match became {
            CheckResult::Pending => {
                waiting.push(check);
                if is_answer { "rescheduled" } else { "retrying" }
            }
            CheckResult::Next { held: true } => "held",
            CheckResult::Next { held: false } => "next",
            CheckResult::Ended => "ended",
        };
        answers.insert(of_check[&check], answer);
    }
    if !waiting.is_empty() {
        answers.extend(lease::held(&waiting).iter().map(|check| (of_check[check], "held")));
    }
    target::record_reports(reports, now);
    failpoint!("answer.booked");
    numbers.iter().map(|number| answers.remove(number).unwrap_or(VOID)).collect()
}

fn end(given: &StoredLease, job: &Job, report: &Report, held: Option<bool>) -> End {
    let failure = match &report.answered {
        Answered::Done(_) => None,
        Answered::Failed { failure, .. } => Some(failure),
    };
    End {
        number: given.number,
        kept: job.options.terms.keep_attempts.keeps(failure.is_none()),
        ok: failure.is_none(),
        sqlstate: failure.map(|failure| Text::from(failure.sqlstate.as_str())),
        message: failure.map(|failure| store::message(&failure.message)),
        result: report.result,
        held,
    }
}

/// Reports are stored in one statement only if they share the job, the start of the lease, the due time, and whether
/// the check has a row in `check_stat`.
type Shared = (Text, Time, Time, bool);

fn book(table: &Table, taken: Vec<Taken>, now: Time) -> Vec<(i64, CheckResult, bool)> {
    let noted: HashSet<i64> =
        lease::noted(&taken.iter().map(|taken| taken.row.id).collect::<Vec<_>>()).into_iter().collect();
    let mut groups: HashMap<Shared, (Job, Vec<(Row, Answer)>)> = HashMap::new();
    let mut became = Vec::new();
    wakeup::count_ended(taken.len() as u64);
    for Taken { given, job, row, report } in taken {
        match &report.answered {
            Answered::Done(answer) => {
                let key = (job.name.clone(), given.lease.leased_at, row.slot, noted.contains(&row.id));
                groups.entry(key).or_insert_with(|| (job, Vec::new())).1.push((row, *answer));
            }
            Answered::Failed { failure, retry_at, is_final, not_started, .. } => {
                let how: Failed =
                    job.options.terms.reported(*retry_at, *is_final, *not_started, given.number.unsigned_abs());
                let mut account = Account::by_check();
                let timing = timing(given.lease.leased_at, now);
                // The failure is always stored, because this transaction has locked the check's row.
                let _ = book::failure(table, &job, &row, failure, how, &timing, &mut account);
                became.extend(account.at_commit(&job.name).into_iter().map(|(check, became)| (check, became, false)));
            }
        }
    }
    for ((_, leased_at, _, noted), (job, answered)) in groups {
        let mut account = Account::by_check();
        let _ = book::answers(table, &job, answered.into_iter(), &timing(leased_at, now), noted, &mut account);
        account.took((now - leased_at).max(TimeDelta::zero()));
        became.extend(account.at_commit(&job.name).into_iter().map(|(check, became)| (check, became, true)));
    }
    became
}

fn timing(leased_at: Time, now: Time) -> Timing {
    Timing { started_at: leased_at, finished_at: now, run_time: (now - leased_at).max(TimeDelta::zero()) }
}
