//! Invariant: if PostgreSQL does not know a calendar's zone, all time counts as open.

mod api;
pub mod statements;

use self::statements::calendar::{self, Stored};
use crate::error::{CalendarError, Result};
use crate::pg::subtransaction::unless_locked;
use crate::pg::text::Text;
use crate::pg::zone::{self, Local};
use crate::pg::{catalog, changes};
use awty_core::calendar::{Calendar, Hours, hash};
use awty_core::{Time, nearest};
use pgrx::pg_sys;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

const MAX_LISTED: i64 = 1000;

thread_local! {
    static KNOWN: RefCell<(u64, HashMap<Text, Rc<Known>>)> = RefCell::default();
}

pub struct Known {
    role: pg_sys::Oid,
    pub zone: String,
    pub calendar: Rc<Calendar<Local>>,
}

impl Known {
    pub fn is_usable_by(&self, role: pg_sys::Oid) -> bool {
        may_use(role, self.role)
    }

    /// Returns whether a change of the calendar by a role moves the checks of another role's rule that may have asked
    /// `awty.due()` for the calendar.
    ///
    /// A superuser can use each calendar, but its rules follow only calendars of roles that it is a member of or
    /// trusts. Otherwise, each role could restart the walks of these rules.
    pub fn moves_rules_of(&self, role: pg_sys::Oid, by: pg_sys::Oid) -> bool {
        let is_trusted = || catalog::is_superuser(self.role) || Some(self.role) == catalog::database_owner();
        self.is_usable_by(role)
            && (!catalog::is_superuser(role)
                || is_trusted()
                || catalog::is_granted(role, self.role)
                || catalog::can_become(by, role))
    }
}

pub fn may_use(role: pg_sys::Oid, owner: pg_sys::Oid) -> bool {
    role == owner || Some(owner) == catalog::database_owner() || catalog::can_become(role, owner)
}

pub fn usable(name: &Text) -> Result<Rc<Known>> {
    let caller = catalog::current_role();
    find(name).filter(|known| known.is_usable_by(caller)).ok_or_else(|| unknown(name).into())
}

/// Locks the calendar until the transaction ends, so that it is neither replaced nor dropped.
pub fn for_use(name: &Text, runs_as: pg_sys::Oid) -> Result<Rc<Known>> {
    let judge = || {
        let known = usable(name)?;
        if !known.is_usable_by(runs_as) {
            let (calendar, role) = (name.to_string(), catalog::role_label(runs_as));
            return Err(CalendarError::NotUsable { calendar, role }.into());
        }
        Ok(known)
    };
    // Refuses a caller without the rights before taking the lock, because PostgreSQL may keep the lock until the caller
    // reads the error.
    judge()?;
    calendar::lock_for_use(name);
    judge()
}

pub fn unknown(name: &Text) -> CalendarError {
    let caller = catalog::current_role();
    let names: Vec<String> = calendar::all(MAX_LISTED)
        .into_iter()
        .filter(|(_, role)| may_use(caller, *role))
        .map(|(name, _)| name.to_string())
        .collect();
    let calendar = name.to_string();
    let nearest = nearest(&calendar, names.iter().map(String::as_str)).map(str::to_owned);
    CalendarError::Unknown { calendar, nearest }
}

pub fn forget() {
    KNOWN.take();
}

pub fn find(name: &Text) -> Option<Rc<Known>> {
    changes::listen();
    let epoch = changes::of_rows();
    let known = KNOWN.with_borrow_mut(|(then, known)| {
        if *then != epoch {
            (*then, *known) = (epoch, HashMap::new());
        }
        known.get(name).cloned()
    });
    if known.is_some() {
        return known;
    }
    let found = Rc::new(read(calendar::find(name)?)?);
    // Does not cache calendars in parallel mode, because a parallel query's snapshot may be older than the calendar's
    // last change.
    // SAFETY: the function only reads this process's transaction state.
    if !unsafe { pg_sys::IsInParallelMode() } {
        KNOWN.with_borrow_mut(|(then, known)| {
            if *then == epoch {
                known.insert(name.clone(), Rc::clone(&found));
            }
        });
    }
    Some(found)
}

fn read(stored: Stored) -> Option<Known> {
    let hours = Hours::new(stored.hours.iter().map(String::as_str)).ok();
    let calendar = match (hours, zone::find(&stored.zone)) {
        (Some(hours), Some(zone)) => Calendar::new(hours, stored.closed, zone),
        // An invalid calendar is always open, in the time zone GMT. PostgreSQL knows GMT even without time zone files.
        _ => Calendar::new(Hours::always(), Vec::new(), zone::find("GMT")?),
    };
    Some(Known { role: stored.role, zone: stored.zone, calendar: Rc::new(calendar) })
}

/// Calls `follow` for each calendar whose zone data differ from the stored hash. Skips a calendar if another session
/// has locked a row that must be changed.
pub fn follow_zone_data(now: Time, follow: impl Fn(&Text)) {
    for stored in calendar::hashed(now) {
        let Some(zone) = zone::find(&stored.zone.to_string()) else { continue };
        let differs = stored.at.is_none_or(|at| stored.hash != Some(hash(&zone, at)));
        unless_locked(|| {
            if calendar::set_hash(&stored.name, hash(&zone, now), now) && differs {
                follow(&stored.name);
            }
        });
    }
}
