//! Invariant: a lease is locked before its check. If a client has locked the check, the lease is left for a later call,
//! so no deadlock is possible.

use super::statements::lease::{self, End, StoredLease};
use super::statements::target;
use crate::figures::account::Account;
use crate::pg::catch::Failure;
use crate::pg::clock;
use crate::pg::text::Text;
use crate::run::book::{self, Timing};
use crate::run::crash;
use crate::shmem::wakeup;
use crate::store::check_row::{Locked, Table};
use crate::store::check_stat::Suspicion;
use crate::store::job::{self, Job};
use awty_core::lease::{State, Unanswered};
use awty_core::{Mono, Time};
use chrono::TimeDelta;
use pgrx::pg_sys;
use std::collections::HashMap;
use std::time::Duration;

pub const PIECE: i64 = 1000;
/// Time limit for the expired leases of one role, because a role may have thousands of jobs, and finding the next time
/// of a repetition may take milliseconds.
const OF_ROLE: Duration = Duration::from_millis(200);

/// Ends expired leases, but only a limited number for each job and for a limited time for each role, so that neither a
/// job with many locked checks nor a role with many jobs delays other roles.
pub fn sweep(now: Time) {
    target::forget(now);
    let names = lease::jobs_overdue(now);
    let share = (PIECE / (names.len() as i64).max(1)).max(10);
    let mut left: HashMap<pg_sys::Oid, Duration> = HashMap::new();
    for name in names {
        let job = job::find(&name).and_then(Result::ok);
        let role = job.as_ref().map_or(pg_sys::InvalidOid, |job| job.role);
        let (began, left) = (clock::mono(), left.entry(role).or_insert(OF_ROLE));
        if left.is_zero() {
            continue;
        }
        let over = lease::overdue_of(&name, now, share);
        match &job {
            Some(job) => book(job, &over, now, Some(began.plus(*left))),
            None => lease::end(&over.iter().map(|given| ended(given, false, None, None)).collect::<Vec<_>>(), now),
        };
        *left = left.saturating_sub(clock::mono().since(began));
    }
}

fn ended(given: &StoredLease, kept: bool, failure: Option<&Failure>, held: Option<bool>) -> End {
    End {
        number: given.number,
        kept,
        ok: false,
        sqlstate: failure.map(|failure| Text::from(failure.sqlstate.as_str())),
        message: failure.map(|failure| Text::from(failure.message.as_str())),
        result: None,
        held,
    }
}

/// Ends leases that the caller has locked. Stops after the time `until`, even if leases are left.
pub fn book(job: &Job, over: &[StoredLease], now: Time, until: Option<Mono>) -> Vec<i64> {
    let mut done = Vec::new();
    let Some(table) = Table::open_latest() else { return done };
    let kept = job.options.terms.keep_attempts.keeps(false);
    let mut account = Account::default();
    for given in over {
        let Some(row) = table.read(given.id) else {
            done.extend(lease::end(&[ended(given, kept, None, None)], now));
            continue;
        };
        let unanswered = given.lease.unanswered(job.options.terms.delivery, now);
        if unanswered == Unanswered::Wait || table.lock(&row) != Locked::Same {
            continue;
        }
        let failure = failure(given, job, now);
        let mut held = row.held;
        if unanswered == Unanswered::Crash {
            crash::suspect(&[given.id], Suspicion::Exit, true);
            held = !lease::held(&[given.id]).is_empty();
        }
        done.extend(lease::end(&[ended(given, kept, Some(&failure), Some(held))], now));
        match unanswered {
            Unanswered::Wait | Unanswered::Crash => {}
            Unanswered::Failure(how) => {
                let started_at = given.lease.leased_at;
                let run_time = (now - started_at).max(TimeDelta::zero());
                let timing = Timing { started_at, finished_at: now, run_time };
                let _ = book::failure(&table, job, &row, &failure, how, &timing, &mut account);
                wakeup::count_ended(1);
            }
        }
        if clock::is_past(until) {
            break;
        }
    }
    account.at_commit(&job.name);
    done
}

fn failure(given: &StoredLease, job: &Job, now: Time) -> Failure {
    let (sqlstate, message) = match (given.lease.state(now), job.options.terms.heartbeat) {
        (State::Expired | State::Lost, Some(heartbeat)) => {
            (LOST, format!("no heartbeat came for {} s", heartbeat.as_seconds_f64()))
        }
        _ => {
            let timeout = (given.lease.deadline - given.lease.leased_at).as_seconds_f64();
            (TIMED_OUT, format!("no answer came within the timeout of {timeout} s"))
        }
    };
    Failure { sqlstate: sqlstate.into(), message, context: String::new() }
}

const TIMED_OUT: &str = crate::pg::sqlstate::QUERY_CANCELED;
const LOST: &str = crate::pg::sqlstate::CONNECTION_FAILURE;
