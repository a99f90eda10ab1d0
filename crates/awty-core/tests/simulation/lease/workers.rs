//! Simulates workers that do not notice when their leases become invalid.

use super::World;
use super::ledger::Ledger;
use super::server::{Hand, Server};
use awty_core::Answer;

#[derive(Default)]
pub struct Worker {
    pub hands: Vec<Hand>,
}

impl Worker {
    pub fn finish_all(&mut self, server: &mut Server, ledger: &mut Ledger) {
        for hand in std::mem::take(&mut self.hands) {
            server.complete(&hand, Answer::Done, ledger);
        }
    }
}

impl World {
    pub fn claim(&mut self) {
        let worker = self.dice.below(self.workers.len());
        let max = 1 + self.dice.below(4);
        let dice = &mut self.dice;
        let mut number = || (dice.below(1 << 31) as u64) << 22 | dice.below(1 << 22) as u64;
        let hands = self.server.claim(max, &mut number, &mut self.ledger);
        let once = hands.iter().any(|hand| {
            let job = self.server.rows.get(&hand.check).map(|row| self.server.jobs[row.job].terms.delivery);
            job == Some(awty_core::lease::Delivery::AtMostOnce)
        });
        if once {
            // A claim is flushed to disk before the worker gets the work.
            self.flushed = self.server.clone();
        }
        self.workers[worker].hands.extend(hands);
    }

    fn any_hand(&mut self, keep: bool) -> Option<Hand> {
        let worker = self.dice.below(self.workers.len());
        let hands = &mut self.workers[worker].hands;
        if hands.is_empty() {
            return None;
        }
        let index = self.dice.below(hands.len());
        Some(if keep { hands[index] } else { hands.swap_remove(index) })
    }

    pub fn answer(&mut self) {
        let keep = self.dice.one_in(20);
        let Some(hand) = self.any_hand(keep) else { return };
        let chance = self.dice.below(1 << 30) as u64;
        match self.dice.below(8) {
            0 => self.server.report(&hand, true, chance, &mut self.ledger),
            1 | 2 => self.server.report(&hand, false, chance, &mut self.ledger),
            3 => {
                let again = self.server.now + self.dice.millis(-10_000, 30_000);
                self.server.complete(&hand, Answer::Again(again), &mut self.ledger);
            }
            _ => self.server.complete(&hand, Answer::Done, &mut self.ledger),
        }
    }

    pub fn beat(&mut self) {
        if let Some(hand) = self.any_hand(true) {
            self.server.beat(&hand, &mut self.ledger);
        }
    }

    pub fn give_back(&mut self) {
        if let Some(hand) = self.any_hand(false) {
            self.server.give_back(&hand, &mut self.ledger);
        }
    }
}
