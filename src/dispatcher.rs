//! The dispatcher: a short visit to one database. It finds out whether awty is there and may run, what is due by role,
//! looks after the tables, and has what is dead in them vacuumed away.
//!
//! Visits happen after a start, on request, and as an audit at most once a minute; the audit finds what no hint told of.
//!
//! Invariant: a visit that finds nothing to do writes nothing. Runs no code of any user.
//! Does not: run checks.

use crate::board::{self, Database, Occupancy, State, Trouble};
use crate::error::{self, Error};
use crate::extension::{self, Purpose};
use crate::failpoint::failpoint;
use crate::launcher::AUDIT;
use crate::run::transaction::{Verdict, transaction};
use crate::run::{session, timer};
use crate::store::history::{self, Failure};
use crate::store::tally::{self, Blame};
use crate::store::{self, future_job, intent, origin, partition};
use crate::{catalog, clock, executor, owner, process, settings};
use awty_core::{Outcome, Time};
use pgrx::{pg_guard, pg_sys};
use std::collections::HashSet;
use std::ffi::CStr;
use std::time::Duration;

/// At most so many stray checks are dealt with in one visit.
const STRAYS: i64 = 1000;
/// How long a visit waits for anybody, and what a client may have to wait for a change of partitions.
const LOCK_TIMEOUT: &CStr = c"200ms";
/// The longest vacuum. A reader can hold it up by keeping a page of an index to himself. The next visit waits for
/// it, and so does DROP EXTENSION; DROP DATABASE would for five seconds, and then fail.
const VACUUM_TIMEOUT: Duration = Duration::from_secs(4);

/// The process's main function; `Assignment::database` says where to go.
#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn awty_dispatcher_main(_argument: pg_sys::Datum) {
    process::listen_to_signals();
    let database = process::assignment().database;
    // SAFETY: connects as no role in particular, as the server's own processes do.
    unsafe { pg_sys::BackgroundWorkerInitializeConnectionByOid(database, pg_sys::InvalidOid, 0) };
    timer::register();
    session::override_settings();
    failpoint!("dispatcher.connected");
    process::report(Some(c"awty: looking for what is due"));
    visit(database);
    process::exit(0);
}

fn visit(database: pg_sys::Oid) {
    let before = board::read(|board| board.database(database).copied());
    match inspect(before) {
        Ok(None) => board::write(|board| {
            // Unless awty has been installed meanwhile, and somebody asks for the next visit.
            if board.database(database).is_none_or(|line| !line.visit_wanted) {
                board.forget_database(database);
            }
        }),
        Ok(Some(found)) => {
            tell(before, found);
            failpoint!("dispatcher.inspected");
            if found == State::Ready {
                let (looks_after, vacuums) = tasks(database);
                if looks_after {
                    look_after(database);
                }
                if vacuums {
                    vacuum(database);
                }
            }
        }
        Err(failure) => trouble(database, &failure),
    }
}

/// Is awty here, and may it run? `None` if it is not here.
fn inspect(before: Option<Database>) -> Result<Option<State>, Failure> {
    let here = catalog::database();
    let mut gone = Vec::new();
    let inspected = transaction(|| {
        if !extension::lock(Purpose::Write) {
            return Verdict::Commit(None);
        }
        failpoint!("dispatcher.locked");
        let state = if !origin::is_library_version() {
            State::OtherVersion
        } else if origin::is_foreign() && !settings::auto_adopt() {
            State::Held
        } else {
            State::Ready
        };
        if state == State::Ready {
            // Before any worker can start here: their intents must not be taken for left-overs.
            gone = take_up_intents(before.is_none_or(|line| line.state == State::Unknown));
            failpoint!("dispatcher.intents_taken");
            let first = future_job::first_per_role();
            board::write(|board| {
                for (role, due) in first {
                    board.note_due(here, role, due);
                }
            });
        }
        failpoint!("dispatcher.noted");
        Verdict::Commit(Some(state))
    });
    inspected.inspect(|found| {
        // By a commit that was flushed.
        board::write(|board| board.forget_names(&gone));
        if let Some(state) = found {
            let now = clock::to_timestamp(clock::now());
            board::write(|board| {
                if let Some(line) = board.database_or_new(here) {
                    if *state == State::Ready && line.state != State::Ready {
                        line.able_since = now;
                    }
                    line.state = *state;
                    line.trouble = match (*state, line.trouble) {
                        (State::OtherVersion, _) => Trouble::OtherVersion,
                        (_, Trouble::OtherVersion | Trouble::Maintenance | Trouble::Reading) => Trouble::None,
                        (_, trouble) => trouble,
                    };
                }
            });
        }
    })
}

/// Takes away the intents of workers that are gone. After a crash, the checks that they name are suspects. Returns the abandoned seats,
/// with their generations, that were looked at.
fn take_up_intents(first_visit: bool) -> Vec<(usize, u64)> {
    let here = catalog::database();
    // In this order: whoever has written one and is not there any more by then is gone.
    let mut intents = intent::all();
    let (alive, gone, clean, blamed) = board::read(|board| {
        // A worker of another database may by now have the seat of one that crashed here.
        let seats = || (0_i32..).zip(&board.seats).filter(|(_, seat)| seat.database == here);
        let alive: Vec<i32> = seats().filter(|(_, seat)| seat.is_occupied()).map(|(number, _)| number).collect();
        let gone = seats().filter(|(_, seat)| seat.occupancy == Occupancy::Abandoned);
        let gone: Vec<(usize, u64)> = gone.map(|(number, seat)| (number as usize, seat.generation)).collect();
        (alive, gone, board.clean_start, board.blamed)
    });
    intents.retain(|intent| !alive.contains(&intent.worker));
    let mut left = intent::take(&intents);
    if left.is_empty() || !first_visit || clean {
        return gone;
    }
    // Two workers may name the same check, where one helps the other; the crash counts once. What a client has locked so soon
    // after it goes uncounted this time.
    left.sort_unstable_by_key(|(_, ids)| ids.len());
    let mut counted = HashSet::new();
    for (worker, ids) in left {
        let alone = ids.len() == 1;
        let mut ids: Vec<i64> = ids.into_iter().filter(|id| counted.insert(*id)).collect();
        if blamed.is_some_and(|place| place != (here.to_u32(), worker)) {
            // Suspects whose runs outlasted their time in quarantine.
            ids = tally::without_suspects(&ids);
        }
        executor::blame(&ids, Blame::Crash, alone);
    }
    gone
}

/// Says once, in the log, what keeps awty from running here.
fn tell(before: Option<Database>, found: State) {
    if before.is_some_and(|line| line.state == found) {
        return;
    }
    let _ = transaction(|| {
        match found {
            State::Held => error::log::database_held(&catalog::database_name()),
            State::OtherVersion => {
                Error::OtherVersion { installed: origin::installed_version().unwrap_or_default() }.warn();
            }
            State::Ready | State::Unknown => {}
        }
        Verdict::Commit(())
    });
}

/// Looks after the tables: what has to be done, each in a transaction of its own, so that one does not wait for another.
fn look_after(database: pg_sys::Oid) {
    let now = clock::now();
    for task in [end_strays, make_partitions, drop_partitions] {
        let done = transaction(|| {
            if !extension::lock(Purpose::Write) {
                return Verdict::Rollback(());
            }
            // Nobody is to hold up the visits by holding a lock.
            owner::set_local(c"lock_timeout", LOCK_TIMEOUT);
            failpoint!("dispatcher.looks_after");
            task(now);
            Verdict::Commit(())
        });
        if let Err(failure) = done {
            trouble(database, &failure);
        }
    }
}

/// Ends checks that can never run: their job was unregistered while they were being committed, or their job's role has
/// been dropped.
fn end_strays(now: Time) {
    history::end(&future_job::lock_orphans(STRAYS), Outcome::Cancelled, now, None);
    let gone =
        Failure { sqlstate: error::state::UNDEFINED_OBJECT.into(), message: "the job's role no longer exists".into() };
    history::end(&future_job::lock_roleless(now, STRAYS), Outcome::Failed, now, Some(&gone));
    let here = catalog::database();
    let after = board::read(|board| board.database(here).map_or(i64::MIN, |line| line.swept));
    let swept = tally::remove_orphans(after, STRAYS);
    board::write(|board| {
        if let Some(line) = board.database_mut(here) {
            line.swept = swept;
        }
    });
}

fn make_partitions(now: Time) {
    if future_job::any_job() {
        partition::make(now);
    }
}

fn drop_partitions(now: Time) {
    if let Some(than) = settings::history_retention().and_then(|retention| now.checked_sub_signed(retention)) {
        partition::drop_older(than);
    }
}

/// What the visit is for: looking after the tables, a vacuum of them, or both. On a busy server there is a visit every few
/// seconds for the second, and clients may have to wait for the first.
fn tasks(database: pg_sys::Oid) -> (bool, bool) {
    let mono = clock::mono();
    board::write(|board| {
        let Some(line) = board.database_mut(database) else { return (true, false) };
        let vacuums = line.dead_rows.take(mono);
        let is_time = line.looked_after.is_none_or(|then| mono.since(then) >= AUDIT.as_micros() as i64);
        let looks_after = is_time || !vacuums;
        if looks_after {
            line.looked_after = Some(mono);
        }
        (looks_after, vacuums)
    })
}

/// Has the dead rows vacuumed away.
fn vacuum(database: pg_sys::Oid) {
    process::report(Some(c"awty: vacuuming awty.future_job"));
    timer::arm(VACUUM_TIMEOUT);
    let done = transaction(|| {
        if extension::lock(Purpose::Read) {
            store::vacuum::future_job();
        }
        // In another transaction by now, which has nothing locked.
        Verdict::Commit(if extension::lock(Purpose::Read) { store::vacuum::pages_of_future_job() } else { 0 })
    });
    timer::disarm();
    match done {
        Ok(pages) => board::write(|board| {
            if let Some(line) = board.database_mut(database) {
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

fn trouble(database: pg_sys::Oid, failure: &Failure) {
    pgrx::log!(
        "awty: looking after database {} failed and is tried again: {} ({})",
        database.to_u32(),
        failure.message,
        failure.sqlstate
    );
    board::write(|board| {
        // It keeps no check from running: what does is worth more.
        if let Some(line) = board.database_mut(database).filter(|line| line.trouble == Trouble::None) {
            line.trouble = Trouble::Maintenance;
        }
    });
}
