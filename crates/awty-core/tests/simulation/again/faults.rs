use super::{WIDTHS, World};

impl World {
    pub fn something_goes_wrong(&mut self) {
        match self.dice.below(10) {
            0..3 => {
                if let Some(row) = self.rows.values_mut().find(|row| row.run.is_some()) {
                    row.run = None;
                    self.ledger.tally.count("killed");
                }
            }
            3..6 => self.clock_jumps(),
            6 | 7 => self.server_restarts(),
            _ => {
                self.width = crate::world::width(self.dice.pick(&WIDTHS));
                self.jobs.iter_mut().for_each(|job| job.limits.width = self.width);
                self.ledger.tally.count("slot changed");
            }
        }
    }

    fn clock_jumps(&mut self) {
        let longest = self.dice.pick(&[10_000, 600_000, 7_200_000]);
        self.now += self.dice.millis(-longest, longest);
        for job in &mut self.jobs {
            job.able_since = job.able_since.min(self.now);
        }
        for row in self.rows.values_mut() {
            row.able_since = row.able_since.min(self.now);
        }
        self.ledger.tally.count("clock jump");
    }

    fn server_restarts(&mut self) {
        let longest = self.dice.pick(&[5_000, 600_000, 14_400_000]);
        let outage = self.dice.millis(0, longest);
        self.pass(outage);
        self.jobs.iter_mut().for_each(|job| job.able_since = self.now);
        self.rows.values_mut().for_each(|row| row.run = None);
        self.ledger.tally.count("restart");
    }
}
