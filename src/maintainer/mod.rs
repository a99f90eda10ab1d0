//! The maintainer inspects one database and exits.
//!
//! Invariant: an inspection without work writes nothing, and runs no user's code.

mod task;

use self::task::{leave_if_wanted, task, trouble};
use crate::calendar;
use crate::error::{self, Error};
use crate::failpoint::failpoint;
use crate::figures::keep;
use crate::figures::problem_log::{self, Problems};
use crate::lease::expire;
use crate::pg::catch::Failure;
use crate::pg::relations::{self, Purpose};
use crate::pg::subtransaction::unless_locked;
use crate::pg::text::Text;
use crate::pg::{catalog, clock, sqlstate};
use crate::process::transaction::{Verdict, transaction, transaction_for_vacuum};
use crate::process::{self, session_settings, timer, vacuum as pg_vacuum};
use crate::quiet;
use crate::repeat::upkeep;
use crate::restore::Hold;
use crate::run::crash;
use crate::settings;
use crate::shmem::{self, Database, DatabaseProblem, State};
use crate::store::partition::{self, Partitioned};
use crate::store::{check_stat, extension, history, hold, inspected, origin, right};
use crate::watch::{follow_calendar, sweep, upkeep as rules};
use awty_core::inspections::AUDIT;
use awty_core::{Outcome, Time};
use pgrx::{pg_guard, pg_sys};
use std::time::Duration;

const STRAYS: i64 = 1000;
/// Time for the lost holds of one role, because another session may give back one lock after the other.
const OF_ROLE: Duration = Duration::from_millis(200);
/// Time limit of VACUUM, which may wait for other sessions. The limit is below five seconds, because DROP DATABASE
/// fails if this process stays connected for longer.
const VACUUM_TIMEOUT: Duration = Duration::from_secs(4);
/// An inspection spends at most this time on ending holds, and leaves the other holds to the next inspection.
const ENDS: Duration = Duration::from_secs(1);

#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn awty_maintainer_main(_argument: pg_sys::Datum) {
    process::listen_to_signals();
    let database = process::assignment().database;
    // SAFETY: the process connects only once, as the bootstrap superuser.
    unsafe { pg_sys::BackgroundWorkerInitializeConnectionByOid(database, pg_sys::InvalidOid, 0) };
    timer::register();
    session_settings::override_settings();
    // A missing standby must not delay the first inspection, because no check runs before this inspection has
    // committed.
    session_settings::set(c"synchronous_commit", c"local");
    failpoint!("maintainer.connected");
    process::report(Some(c"awty: looking for what is due"));
    inspection(database);
    process::exit(0);
}

fn inspection(database: pg_sys::Oid) {
    let before = shmem::read(|shared| shared.database(database).copied());
    match inspect(before) {
        Ok(None) => shmem::write(|shared| {
            // Keeps the database's entry if another inspection was requested, because awty may have just been
            // installed.
            if shared.database(database).is_none_or(|line| !line.inspection_wanted) {
                shared.forget_database(database);
            }
        }),
        Ok(Some(found)) => {
            log_change(before, found);
            failpoint!("maintainer.inspected");
            if found == State::Ready {
                end_passed(database);
                if before.is_none_or(|line| line.state == State::Unknown) {
                    compute_again(database);
                }
                let (looks_after, vacuums) = tasks(database);
                if looks_after {
                    look_after(database);
                }
                if vacuums {
                    leave_if_wanted(database);
                    vacuum(database);
                }
            }
        }
        Err(failure) => trouble(database, &failure),
    }
}

fn inspect(before: Option<Database>) -> Result<Option<State>, Failure> {
    let here = catalog::database();
    let mut gone = Vec::new();
    let is_first = before.is_none_or(|line| line.state == State::Unknown);
    let inspected = transaction(|| {
        if !relations::lock(Purpose::Write) {
            return Verdict::Commit(None);
        }
        failpoint!("maintainer.locked");
        let state = if let Some(unserved) = extension::unserved() {
            State::Unserved(unserved)
        } else if let Some(why) = origin::hold() {
            if why == Hold::Restored {
                origin::mark_as_restored();
            }
            State::Held
        } else {
            State::Ready
        };
        if state == State::Ready {
            // Handles the rows that a crash has left in `in_flight`. Workers start only afterwards, because their rows
            // would look like rows of crashed workers.
            gone = crash::take_up_in_flight(is_first);
            failpoint!("maintainer.in_flight_taken");
            let first = inspected::first_per_role();
            shmem::write(|shared| {
                for (role, due) in first {
                    shared.note_due(here, role, due);
                }
            });
        }
        failpoint!("maintainer.noted");
        Verdict::Commit(Some(state))
    });
    if let Ok(Some(State::Ready)) = inspected {
        task(here, keep::read_back);
    }
    if let Ok(Some(state @ (State::Ready | State::Held))) = inspected
        && before.is_none_or(|line| line.state != State::Ready)
    {
        // Creates the daily partitions early. Otherwise, rows of a day without a partition go to the default partition,
        // and must be moved later.
        //
        // A database whose checks are held needs partitions too, because logical replication may insert rows. It is not
        // looked after, so it gets all partitions here.
        match state {
            State::Held => make_partitions(here),
            _ => drop(task(here, make_first_partitions)),
        }
    }
    inspected.inspect(|found| {
        shmem::write(|shared| shared.forget_names(&gone));
        if let Some(state) = found {
            let now = clock::to_timestamp(clock::now());
            let mono = clock::mono();
            shmem::write(|shared| {
                let is_parked = |line: &shmem::RoleEntry| line.parked_until.is_some_and(|until| until > mono);
                let any_parked = shared.roles.iter().any(|line| line.database == here && is_parked(line));
                if let Some(line) = shared.database_or_new(here) {
                    if *state == State::Ready && line.state != State::Ready {
                        line.able_since = now;
                    }
                    line.state = *state;
                    let trouble = match (*state, line.trouble) {
                        (State::Unserved(unserved), _) => DatabaseProblem::Unserved(unserved),
                        (_, DatabaseProblem::Unserved(_) | DatabaseProblem::Maintenance | DatabaseProblem::Reading) => {
                            DatabaseProblem::None
                        }
                        (
                            _,
                            DatabaseProblem::RoleCannotConnect
                            | DatabaseProblem::NoWorkerSlot
                            | DatabaseProblem::NoEntry,
                        ) if !any_parked => DatabaseProblem::None,
                        (_, trouble) => trouble,
                    };
                    line.set_trouble(trouble, now);
                }
            });
        }
    })
}

fn log_change(before: Option<Database>, found: State) {
    if before.is_some_and(|line| line.state == found) {
        return;
    }
    let _ = transaction(|| {
        match found {
            State::Held => {
                if let Some(why) = origin::hold() {
                    error::log::database_held(&catalog::database_name(), why);
                }
            }
            State::Unserved(unserved) => Error::Unserved { installed: extension::installed(), unserved }.warn(),
            State::Ready | State::Unknown => {}
        }
        Verdict::Commit(())
    });
}

/// Ends holds role by role in short transactions, so that a role whose holds are many, locked or slow does not delay
/// other roles.
fn end_passed(database: pg_sys::Oid) {
    let mut is_done = task(database, |now| quiet::end_pauses(quiet::ALL, now)).is_some();
    let over = task(database, |now| quiet::over(quiet::ALL, now));
    is_done &= over.is_some();
    let (mut roles, mut has_ended) = (over.unwrap_or_default(), false);
    let began = clock::mono();
    while !roles.is_empty() && clock::mono().since(began) < ENDS {
        roles.retain_mut(|jobs| match task(database, |now| quiet::end_holds(jobs, now)) {
            Some(ended) => {
                has_ended |= ended;
                !jobs.is_empty()
            }
            None => {
                is_done = false;
                false
            }
        });
    }
    is_done &= task(database, quiet::announce).is_some();
    if has_ended && !roles.is_empty() {
        shmem::inspect_by(database, clock::to_timestamp(clock::now()));
    } else if !is_done {
        shmem::inspect_by(database, clock::to_timestamp(clock::now() + quiet::LOCKED));
    }
}

fn look_after(database: pg_sys::Oid) {
    task(database, upkeep::repair);
    for one in [rules::repair, sweep::schedule_due, rules::delete_alerts] {
        task(database, one);
    }
    let follow = |calendar: &Text, now| follow_calendar(calendar, catalog::current_role(), now);
    task(database, |now| calendar::follow_zone_data(now, |calendar| follow(calendar, now)));
    for (job, mut problems) in task(database, end_strays).unwrap_or_default() {
        problems.tell(&job);
    }
    for one in [hold_late, expire::sweep, remove_rights] {
        task(database, one);
    }
    make_partitions(database);
    drop_partitions(database);
    keep::stored(database, task(database, keep::store).flatten());
    problem_log::tell_summaries();
}

fn compute_again(database: pg_sys::Oid) {
    let mut after = Some(i64::MIN);
    while let Some(last) = after {
        after = task(database, |now| upkeep::compute_again(last, now)).flatten();
    }
}

fn end_strays(now: Time) -> Vec<(Text, Problems)> {
    history::end(&inspected::lock_orphans(STRAYS), Outcome::Cancelled, now, None);
    let gone = Failure {
        sqlstate: sqlstate::UNDEFINED_OBJECT.into(),
        message: "the job's role no longer exists".into(),
        context: String::new(),
    };
    let roleless = inspected::lock_roleless(now, STRAYS);
    let problems = problem_log::ends(&roleless, Outcome::Failed, &gone);
    history::end(&roleless, Outcome::Failed, now, Some(&gone));
    let here = catalog::database();
    let after = shmem::read(|shared| shared.database(here).map_or(i64::MIN, |line| line.swept));
    let swept = check_stat::remove_orphans(after, STRAYS);
    shmem::write(|shared| {
        if let Some(line) = shared.database_mut(here) {
            line.swept = swept;
        }
    });
    problems
}

fn hold_late(_now: Time) {
    let here = catalog::database();
    let mut lost = hold::lost();
    lost.sort_by_key(|(role, _)| role.to_u32());
    for role in lost.chunk_by(|(role, _), (next, _)| role == next) {
        // Leaves the holds of a role until the next inspection if the role is holding one of the next checks.
        let until = Some(clock::mono().plus(OF_ROLE));
        for (_, id) in role {
            if unless_locked(|| hold::carry_lost(*id)).is_none() || clock::is_past(until) {
                break;
            }
        }
    }
    let mono = clock::mono();
    let mut after = i64::MIN;
    loop {
        let mut late = hold::late(after, STRAYS);
        let Some(last) = late.last() else { break };
        after = *last;
        // Skips running checks, because a hold would roll back their runs.
        shmem::read(|shared| late.retain(|id| shared.running_since(here, *id, mono).is_none()));
        if !late.is_empty() {
            hold::apply(inspected::lock_some_of(&late));
        }
    }
    hold::remove_orphans(STRAYS);
}

fn remove_rights(_now: Time) {
    right::remove_dropped(STRAYS);
}

/// Creates the partitions of today only, because DROP DATABASE waits for the task.
fn make_first_partitions(now: Time) {
    if inspected::any_job() {
        for parted in Partitioned::ALL {
            partition::missing(parted, now, 0).into_iter().for_each(|day| partition::make(parted, day, now));
        }
    }
}

/// Creates each partition in a task of its own, because DROP DATABASE waits for the current task.
fn make_partitions(database: pg_sys::Oid) {
    for parted in Partitioned::ALL {
        let missing = |now| inspected::any_job().then(|| partition::missing(parted, now, partition::AHEAD));
        for day in task(database, missing).flatten().unwrap_or_default() {
            let make = |now| unless_locked(|| partition::make(parted, day, now));
            if task(database, make).flatten().is_none() {
                // Leaves the other days until the next inspection, because clients may wait for the locks of each
                // attempt. It is no problem that this inspection met a lock, because these days come later.
                return;
            }
        }
    }
}

/// Waits for `AUDIT` after a failure, because each try that meets a lock makes runs and clients wait, and any role can
/// ask for inspections.
fn drop_partitions(database: pg_sys::Oid) {
    let mono = clock::mono();
    let failed = shmem::read(|shared| shared.database(database).and_then(|line| line.drop_failed));
    if failed.is_some_and(|then| mono < then.plus(AUDIT)) {
        return;
    }
    let mut is_done = true;
    for (parted, retention) in
        [(Partitioned::History, settings::history_retention()), (Partitioned::Attempts, settings::attempt_retention())]
    {
        let older = |now: Time| retention.and_then(|retention| now.checked_sub_signed(retention));
        let kept = task(database, |now| older(now).map(|than| partition::drop_older(parted, than)));
        is_done &= kept.is_some();
        kept.flatten().unwrap_or_default().iter().for_each(|failure| trouble(database, failure));
    }
    shmem::write(|shared| {
        if let Some(line) = shared.database_mut(database) {
            line.drop_failed = (!is_done).then_some(mono);
        }
    });
}

/// Returns two flags: whether to do maintenance now, and whether to VACUUM now.
///
/// If a VACUUM is due, maintenance waits until `AUDIT` has passed since the last maintenance, because clients may have
/// to wait for maintenance's locks.
fn tasks(database: pg_sys::Oid) -> (bool, bool) {
    let mono = clock::mono();
    shmem::write(|shared| {
        let Some(line) = shared.database_mut(database) else { return (true, false) };
        let vacuums = line.dead_rows.take(mono);
        let is_time = line.looked_after.is_none_or(|then| mono >= then.plus(AUDIT));
        let looks_after = is_time || !vacuums;
        if looks_after {
            line.looked_after = Some(mono);
        }
        (looks_after, vacuums)
    })
}

fn vacuum(database: pg_sys::Oid) {
    process::report(Some(c"awty: vacuuming awty.future_job"));
    timer::arm(VACUUM_TIMEOUT);
    let done = transaction_for_vacuum(|| {
        if relations::lock(Purpose::Read) {
            pg_vacuum::future_job();
        }
        // Locks awty's tables again, because VACUUM has ended the transaction.
        Verdict::Commit(if relations::lock(Purpose::Read) { pg_vacuum::pages_of_future_job() } else { 0 })
    });
    timer::disarm();
    match done {
        Ok(pages) => shmem::write(|shared| {
            if let Some(line) = shared.database_mut(database) {
                line.dead_rows.vacuumed(pages, clock::mono());
            }
        }),
        Err(failure) => pgrx::log!(
            "awty: vacuuming awty.future_job in database {} failed, and is left to autovacuum for a minute: {} ({})",
            database.to_u32(),
            failure.message,
            failure.sqlstate
        ),
    }
}
