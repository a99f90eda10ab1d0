//! Keeps its own record of the simulated leases and answers, and fails if the code under test breaks a rule.

use super::server::Server;
use awty_core::{Outcome, Time};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub outcomes: [u64; Outcome::ALL.len()],
    pub handed_out: u64,
    pub again: u64,
    pub late_answers: u64,
    pub void: u64,
    pub crashes: u64,
    pub held: u64,
    pub given_back: u64,
    pub crashes_of_server: u64,
}

impl Tally {
    pub fn events(&self) -> [(&'static str, u64); 8] {
        [
            ("handed out", self.handed_out),
            ("handed out once more", self.again),
            ("answer after the expiry", self.late_answers),
            ("void answer", self.void),
            ("crash of a worker", self.crashes),
            ("held", self.held),
            ("given back", self.given_back),
            ("crash of the server", self.crashes_of_server),
        ]
    }

    pub fn add(&mut self, other: &Tally) {
        for (sum, count) in self.outcomes.iter_mut().zip(other.outcomes) {
            *sum += count;
        }
        self.handed_out += other.handed_out;
        self.again += other.again;
        self.late_answers += other.late_answers;
        self.void += other.void;
        self.crashes += other.crashes;
        self.held += other.held;
        self.given_back += other.given_back;
        self.crashes_of_server += other.crashes_of_server;
    }
}

#[derive(Default)]
pub struct Ledger {
    holders: HashMap<i64, (u64, Time)>,
    keys: BTreeMap<(i64, u32), String>,
    all_keys: HashSet<String>,
    /// Handed-out checks with `at_most_once`, which must not be handed out again.
    gone_out: BTreeSet<(i64, u32)>,
    pending: BTreeSet<i64>,
    ended: BTreeMap<i64, Outcome>,
    pub tally: Tally,
}

impl Ledger {
    pub fn created(&mut self, check: i64) {
        assert!(self.pending.insert(check) && !self.ended.contains_key(&check), "check {check} is there twice");
    }

    pub fn handed_out(
        &mut self,
        (check, count): (i64, u32),
        key: &str,
        lease: u64,
        until: Time,
        once: bool,
        now: Time,
    ) {
        assert!(self.pending.contains(&check), "check {check} was handed out after its end");
        if let Some((other, until)) = self.holders.get(&check) {
            assert!(now >= *until, "check {check} is leased twice at {now}: {other} until {until}, and {lease}");
        }
        match self.keys.get(&(check, count)) {
            Some(known) => {
                self.tally.again += 1;
                assert_eq!(known, key, "check {check} has got another key");
            }
            None => {
                assert!(self.all_keys.insert(key.to_owned()), "two pieces of work have the key {key}");
                self.keys.insert((check, count), key.to_owned());
            }
        }
        assert!(!once || self.gone_out.insert((check, count)), "check {check} has gone out twice");
        self.holders.insert(check, (lease, until));
        self.tally.handed_out += 1;
    }

    pub fn beaten(&mut self, check: i64, lease: u64, until: Time) {
        self.holders.insert(check, (lease, until));
    }

    pub fn answered(&mut self, check: i64, lease: u64, now: Time) {
        let holder = self.holders.remove(&check).unwrap_or_else(|| panic!("nobody had check {check}"));
        assert_eq!(holder.0, lease, "an answer by an old lease of check {check} was booked");
        self.tally.late_answers += u64::from(now >= holder.1);
    }

    pub fn over(&mut self, check: i64, lease: u64, now: Time) {
        if let Some((other, until)) = self.holders.remove(&check) {
            assert!(
                other == lease && now >= until,
                "lease {lease} of check {check} was taken away at {now}, before {until}"
            );
        }
    }

    pub fn not_started(&mut self, work: (i64, u32)) {
        self.gone_out.remove(&work);
    }

    pub fn ended(&mut self, check: i64, outcome: Outcome) {
        assert!(self.pending.remove(&check), "check {check} ended, and was not pending");
        assert_eq!(self.ended.insert(check, outcome), None, "check {check} ended twice");
        self.holders.remove(&check);
        self.tally.outcomes[outcome as usize] += 1;
    }

    pub fn goes_back(&mut self, server: &Server) {
        self.pending = server.rows.keys().copied().collect();
        // After a crash, a new check may get the id of a lost check, so the ledger forgets lost checks.
        let lost = server.last_id + 1;
        self.ended.split_off(&lost);
        for check in &self.pending {
            self.ended.remove(check);
        }
        self.gone_out.split_off(&(lost, 0));
        for key in self.keys.split_off(&(lost, 0)).values() {
            self.all_keys.remove(key);
        }
        self.holders =
            server.leases.iter().map(|(check, held)| (*check, (held.number, held.lease.expires_at))).collect();
    }

    pub fn audit(&self) {
        assert!(self.pending.is_empty(), "lost: {:?}", self.pending);
    }
}
