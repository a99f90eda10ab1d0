use chrono::TimeDelta;
use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

pub struct Dice(ChaCha8Rng);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    pub fn below(&mut self, n: usize) -> usize {
        ((u64::from(self.0.next_u32()) * n as u64) >> 32) as usize
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub fn millis(&mut self, low: i64, high: i64) -> TimeDelta {
        TimeDelta::milliseconds(low + self.below((high - low + 1) as usize) as i64)
    }
}
