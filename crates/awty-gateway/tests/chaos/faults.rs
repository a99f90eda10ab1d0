use crate::world::{GATEWAYS, World};
use awty_testkit::{Signal, Stop};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::time::Duration;

#[derive(Debug, Default)]
pub struct Counts {
    pub gateways: usize,
    pub frozen: usize,
    pub server: usize,
    pub cables: usize,
}

impl Counts {
    pub fn all(&self) -> usize {
        self.gateways + self.frozen + self.server + self.cables
    }
}

pub struct Faults {
    random: StdRng,
    pub counts: Counts,
}

impl Faults {
    pub fn new(seed: u64) -> Self {
        Faults { random: StdRng::seed_from_u64(seed), counts: Counts::default() }
    }

    fn pass(&mut self, milliseconds: std::ops::Range<u64>) {
        let until = std::time::Instant::now() + Duration::from_millis(self.random.random_range(milliseconds));
        while let Some(left) = until.checked_duration_since(std::time::Instant::now()) {
            std::thread::park_timeout(left);
        }
    }

    fn some(&mut self) -> Vec<usize> {
        let one = self.random.random_range(0..GATEWAYS);
        if self.random.random_bool(0.25) { (0..GATEWAYS).collect() } else { vec![one] }
    }

    pub fn next(&mut self, world: &mut World) {
        let kinds = if world.nets.is_some() { 3 } else { 2 };
        match self.counts.all() % kinds {
            0 if self.random.random_bool(0.25) => self.freeze(world),
            0 => self.kill_gateways(world),
            1 => self.crash_the_server(world),
            _ => self.pull_cables(world),
        }
        self.pass(300..1_200);
        world.assert_gateways_run();
    }

    fn kill_gateways(&mut self, world: &mut World) {
        let some = self.some();
        some.iter().for_each(|number| world.kill_gateway(*number));
        self.pass(0..800);
        some.iter().for_each(|number| world.start_gateway(*number));
        self.counts.gateways += 1;
    }

    fn freeze(&mut self, world: &mut World) {
        let number = self.random.random_range(0..GATEWAYS);
        world.signal(number, Signal::STOP);
        self.pass(2_200..3_500);
        world.signal(number, Signal::CONT);
        self.counts.frozen += 1;
    }

    fn crash_the_server(&mut self, world: &mut World) {
        if self.random.random_bool(0.5) {
            world.cluster.stop(Stop::Immediate);
        } else {
            world.cluster.kill_server();
        }
        self.pass(0..500);
        world.cluster.start();
        self.counts.server += 1;
    }

    fn pull_cables(&mut self, world: &World) {
        let Some(nets) = &world.nets else { return };
        let some = self.some();
        some.iter().for_each(|number| nets.nets[*number].connect(false));
        self.pass(100..3_500);
        some.iter().for_each(|number| nets.nets[*number].connect(true));
        self.counts.cables += 1;
    }
}
