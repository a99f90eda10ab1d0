use super::ledger::Key;
use super::plans::{Terms, shapes};
use super::{ENTITIES, JOBS, World};
use awty_core::policy;
use awty_core::repeat::jitter::Jitter;
use awty_core::repeat::{Change, Occurrence, Passed};
use chrono::TimeDelta;

impl World {
    pub fn a_client_acts(&mut self) {
        let key = (self.dice.below(JOBS), self.dice.below(ENTITIES));
        match (self.dice.below(20), self.id_of(key)) {
            (_, None) => self.repeat(key),
            (0..4, Some(id)) => self.repeat_again(id),
            (4..7, Some(id)) => self.schedule(id),
            (7..10, Some(id)) => self.check_now(id),
            (10..14, Some(id)) => self.hold_or_release(id),
            (14..17, _) => self.pause_or_resume(key.0),
            (17, Some(_)) => self.cancel(key),
            _ => self.ledger.tally.count("nothing"),
        }
    }

    fn any_terms(&mut self) -> Terms {
        let at_most = self.dice.pick(&[0, 0, 1_000, 90_000, 2_000_000, 30_000_000]);
        let hash = self.dice.pick(&[0, 1, 1 << 62, 1 << 63, u64::MAX]);
        Terms {
            shape: self.dice.below(shapes().len()),
            jitter: Jitter { hash, at_most: self.dice.millis(0, at_most) },
            catch_up: TimeDelta::seconds(self.dice.pick(&[0, 0, 600, 7200])),
        }
    }

    fn repeat(&mut self, key: Key) {
        let terms = self.any_terms();
        if let Some(slot) = terms.repetition(self.width).begin(self.now) {
            self.ledger.begins(key, &terms, self.width, self.now, slot);
            self.terms.insert(key, terms);
            self.insert(key, Occurrence::new(slot), true, false);
            self.ledger.tally.count("repeated");
        }
    }

    fn repeat_again(&mut self, id: u64) {
        let old = self.terms[&self.rows[&id].key];
        let any = self.any_terms();
        match self.dice.below(4) {
            0 => self.ledger.tally.count("repeated the same"),
            1 => self.change(id, any),
            _ => self.change(id, Terms { jitter: any.jitter, ..old }),
        }
    }

    fn schedule(&mut self, id: u64) {
        let row = &self.rows[&id];
        let (key, occurrence, held) = (row.key, row.occurrence, row.held);
        let t = self.now + self.dice.millis(-10_000, 3_000_000);
        let Ok(slot) = policy::schedule(t, &self.jobs[key.0].limits, self.now) else { return };
        self.gives_way(id);
        self.remove(id);
        self.insert(key, occurrence.replaced_at(slot), false, held);
        self.ledger.tally.count("replaced");
    }

    fn remove(&mut self, id: u64) {
        if self.rows.remove(&id).is_some_and(|row| row.run.is_some()) {
            self.ledger.tally.count("discarded");
        }
    }

    /// Records that a client replaces a check. If the replaced check has not run, its planned time still needs a check.
    fn gives_way(&mut self, id: u64) {
        let row = &self.rows[&id];
        let Some(last) = row.last else { return };
        let has_run = row.occurrence.check.check_count > 0 || row.occurrence.check.attempt > 0;
        let over = if has_run { self.used_up(row) } else { self.terms[&row.key].last_before(last) };
        let key = row.key;
        self.ledger.gone(key, over);
    }

    fn check_now(&mut self, id: u64) {
        let now = self.now;
        let Some(row) = self.rows.get(&id).filter(|row| !row.held && row.run.is_none()) else { return };
        let ahead = row.occurrence.first > now;
        if ahead {
            self.gives_way(id);
        }
        let Some(row) = self.rows.get_mut(&id) else { return };
        row.occurrence = row.occurrence.now(now);
        if ahead {
            row.last = None;
        }
        self.ledger.tally.count(if ahead { "checked now" } else { "checked now while due" });
    }

    fn hold_or_release(&mut self, id: u64) {
        let now = self.now;
        if let Some(row) = self.rows.get_mut(&id) {
            row.held = !row.held && self.dice.one_in(2);
            if row.held {
                self.ledger.tally.count("held");
            } else {
                row.able_since = now;
            }
        }
    }

    fn pause_or_resume(&mut self, job: usize) {
        let job = &mut self.jobs[job];
        job.paused = !job.paused && self.dice.one_in(3);
        if job.paused {
            self.ledger.tally.count("paused");
        } else {
            job.able_since = self.now;
        }
    }

    fn cancel(&mut self, key: Key) {
        if let Some(id) = self.id_of(key) {
            self.remove(id);
            self.terms.remove(&key);
            self.ledger.is_over(key);
            self.ledger.tally.count("cancelled");
        }
    }

    fn change(&mut self, id: u64, new: Terms) {
        let row = &self.rows[&id];
        let (key, occurrence, last, stayed, held) = (row.key, row.occurrence, row.last, row.stayed, row.held);
        let old = self.terms[&key];
        match old.repetition(self.width).replaced_by(&new.repetition(self.width), &occurrence, self.now) {
            Change::Stays { passed } => {
                self.ledger.tally.count("stayed");
                if passed.is_some() {
                    let own = self.used_up(&self.rows[&id]);
                    self.ledger.gone(key, own);
                }
                self.terms.insert(key, new);
                if let Some(row) = self.rows.get_mut(&id) {
                    (row.occurrence.passed, row.stayed) = (passed, true);
                    let own = new.last_delayed_by(occurrence.first);
                    row.last = last.map(|last| if old.shape == new.shape { last.max(own) } else { own });
                    if old.shape != new.shape {
                        let gone = passed.map(|(Passed::Through(t) | Passed::Before(t))| new.last_delayed_by(t));
                        self.ledger.forget(key, gone);
                    }
                }
            }
            Change::Moves(next) => {
                let pending = last.filter(|_| old.shape == new.shape && !stayed);
                if old.shape != new.shape {
                    self.ledger.forget(key, None);
                }
                self.ledger.changed(key, &new, self.width, self.now, next, pending);
                self.ledger.tally.count("moved");
                self.rows.remove(&id);
                self.terms.insert(key, new);
                match next {
                    Some(slot) => self.insert(key, Occurrence::new(slot), true, held),
                    None => self.is_over(key),
                }
            }
        }
    }
}
