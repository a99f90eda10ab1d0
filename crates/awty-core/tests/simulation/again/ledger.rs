//! Compares the checks that the simulation runs with a full list of the planned times.

use super::plans::Terms;
use awty_core::{Outcome, Time, Width};
use std::collections::BTreeMap;

pub type Key = (usize, usize);

struct Account {
    gone: Time,
    booked: Time,
}

#[derive(Default)]
pub struct Tally(BTreeMap<&'static str, u64>);

impl Tally {
    pub fn count(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    pub fn add(&mut self, other: &Tally) {
        for (what, count) in &other.0 {
            *self.0.entry(what).or_default() += count;
        }
    }

    pub fn of(&self, what: &'static str) -> u64 {
        self.0.get(what).copied().unwrap_or_default()
    }
}

impl std::fmt::Debug for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Default)]
pub struct Ledger {
    accounts: BTreeMap<Key, Account>,
    pub tally: Tally,
}

fn expected(terms: &Terms, width: Width, gone: Time, now: Time) -> Option<Time> {
    terms.open(gone, now, width).map(|(_, slot)| slot).next()
}

impl Ledger {
    pub fn begins(&mut self, key: Key, terms: &Terms, width: Width, now: Time, slot: Time) {
        assert_eq!(Some(slot), expected(terms, width, Time::MIN_UTC, now), "{key:?} begins: {terms:?} {width:?} {now}");
        let gone = terms.last_delayed_by(width.floor(slot - width.delta()));
        let before = self.accounts.insert(key, Account { gone, booked: Time::MIN_UTC });
        assert!(before.is_none(), "{key:?} was repeated already");
    }

    pub fn is_over(&mut self, key: Key) {
        assert!(self.accounts.remove(&key).is_some(), "{key:?} was not repeated");
    }

    /// Fails if the same planned time gets two checks that no client asked for (promise P11 in docs/promises.md).
    pub fn booked(&mut self, key: Key, last: Time, outcome: Outcome) {
        let Some(account) = self.accounts.get_mut(&key) else { panic!("{key:?} is not repeated") };
        assert!(account.booked < last, "{key:?}: {last} was booked twice, now as {outcome}");
        account.booked = last;
    }

    pub fn gone(&mut self, key: Key, last: Time) {
        if let Some(account) = self.accounts.get_mut(&key) {
            account.gone = account.gone.max(last);
        }
    }

    pub fn forget(&mut self, key: Key, gone: Option<Time>) {
        let gone = gone.unwrap_or(Time::MIN_UTC);
        self.accounts.insert(key, Account { gone, booked: Time::MIN_UTC });
    }

    pub fn next(&self, key: Key, own: Time, terms: &Terms, width: Width, now: Time) -> Option<Time> {
        expected(terms, width, self.accounts[&key].gone.max(own), now)
    }

    pub fn goes_on(&mut self, key: Key, own: Time, terms: &Terms, width: Width, now: Time, next: Option<Time>) {
        assert_eq!(next, self.next(key, own, terms, width, now), "{key:?} goes on after {own}, at {now}");
        self.gone(key, own);
        if let Some(next) = next {
            self.gone(key, terms.last_delayed_by(width.floor(next - width.delta())));
        }
    }

    pub fn changed(
        &mut self,
        key: Key,
        new: &Terms,
        width: Width,
        now: Time,
        next: Option<Time>,
        pending: Option<Time>,
    ) {
        let gone = self.accounts[&key].gone;
        let open = || new.open(gone, Time::MIN_UTC, width);
        if let Some(next) = next {
            assert!(next >= now, "{key:?}: the new plan begins in the past");
            assert!(open().next().is_some_and(|(_, slot)| slot <= next), "{key:?}: {next} is over, as {gone}");
        }
        if let Some(pending) = pending {
            let slot = open().find(|&(moment, _)| moment == pending).map(|(_, slot)| slot);
            let latest = slot.map(|slot| slot.max(width.after(now)));
            assert!(next.is_some() && next <= latest, "{key:?}: {next:?} comes after {latest:?}");
            self.tally.count("jitter changed");
            if slot <= Some(now) {
                self.tally.count("moment kept by another jitter");
            }
        }
        // The new check at `next` is the check of the last planned slot up to `next`. Earlier slots get no check of
        // their own.
        let stands_for = open().map(|(_, slot)| slot).take_while(|&slot| next.is_some_and(|next| slot <= next)).last();
        let left_out = open().take_while(|&(_, slot)| stands_for.is_some_and(|own| slot < own)).last();
        self.gone(key, left_out.map_or(gone, |(moment, _)| moment));
    }
}
