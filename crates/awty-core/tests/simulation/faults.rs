use crate::scheduler::Doing;
use crate::world::{JOBS, WIDTHS, World, width};
use awty_core::slot::effective;

impl World {
    pub fn something_goes_wrong(&mut self) {
        match self.dice.below(17) {
            0..6 => self.worker_dies(),
            6 | 7 => self.pause(),
            8..11 => self.resume(),
            11 | 12 => self.clock_jumps(),
            13 => self.server_restarts(),
            14 => self.release(),
            15 => self.hold(),
            _ => self.slot_is_changed(),
        }
    }

    fn worker_dies(&mut self) {
        if self.workers.is_empty() {
            return;
        }
        let worker = self.dice.below(self.workers.len());
        if let Doing::Running(run) = &self.workers[worker].doing {
            self.ledger.discarded(run.id);
            self.ledger.tally.killed += 1;
        }
        self.leave(worker);
    }

    fn pause(&mut self) {
        let job = self.dice.below(JOBS);
        self.jobs[job].paused = true;
    }

    fn resume(&mut self) {
        let job = self.dice.below(JOBS);
        self.resume_job(job);
    }

    fn resume_job(&mut self, job: usize) {
        if self.jobs[job].paused {
            self.jobs[job].paused = false;
            self.able(job);
            self.hint(self.jobs[job].role);
            self.latch = true;
        }
    }

    fn able(&mut self, job: usize) {
        self.jobs[job].able_since = self.now;
        self.ledger.able(job, self.mono);
    }

    pub fn resume_everything(&mut self) {
        (0..JOBS).for_each(|job| self.resume_job(job));
        while self.table.rows.values().any(|row| row.held) {
            self.release();
        }
    }

    fn hold(&mut self) {
        let running = self.workers.iter().find_map(|worker| match &worker.doing {
            Doing::Running(run) => Some(run.id),
            _ => None,
        });
        let Some(id) = running.or(self.table.rows.keys().next().copied()) else { return };
        if let Some(row) = self.table.rows.get_mut(&id).filter(|row| !row.held && !row.locked) {
            (row.held, row.version) = (true, row.version + 1);
            self.ledger.hold(id, true);
        }
    }

    fn release(&mut self) {
        let Some((id, row)) = self.table.rows.iter_mut().find(|(_, row)| row.held && !row.locked) else { return };
        (row.held, row.version) = (false, row.version + 1);
        let (id, role) = (*id, row.role);
        self.ledger.hold(id, false);
        self.hint(role);
        self.latch = true;
    }

    fn clock_jumps(&mut self) {
        if self.clock_jumped {
            return;
        }
        let longest = self.dice.pick(&[100, 10_000, 3_600_000]);
        let jump = self.dice.millis(-longest, longest);
        self.now += jump;
        self.clock_jumped = true;
        self.ledger.tally.clock_jumps += 1;
        self.ledger.log("jump", jump.num_milliseconds(), 0);
    }

    fn server_restarts(&mut self) {
        let crashed = self.dice.one_in(2);
        for worker in std::mem::take(&mut self.workers) {
            let Doing::Running(run) = worker.doing else { continue };
            self.ledger.discarded(run.id);
            let Some(row) = self.table.rows.get_mut(&run.id).filter(|row| crashed && !row.held) else { continue };
            (row.held, row.version) = (true, row.version + 1);
            self.ledger.hold(run.id, true);
        }
        self.server_aborts_transactions();
        let longest = self.dice.pick(&[1000, 60_000, 600_000]);
        let outage = self.dice.millis(1, longest);
        self.pass(outage.num_microseconds().unwrap_or_default());
        (0..JOBS).for_each(|job| self.able(job));
        for role in 0..self.roles.len() {
            let state = &mut self.roles[role];
            (state.workers, state.behind_since, state.parked_until, state.last_served) = (0, None, None, 0);
            self.hint(role);
        }
        self.ledger.tally.restarts += 1;
        self.ledger.log("restart", outage.num_milliseconds(), i64::from(crashed));
        self.launcher_acts();
    }

    fn slot_is_changed(&mut self) {
        self.server_width = width(self.dice.pick(&WIDTHS));
        for job in &mut self.jobs {
            job.limits.width = effective(job.own_width, self.server_width);
        }
    }
}
