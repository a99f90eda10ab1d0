use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::num::NonZeroU32;

pub const PER_SECOND: NonZeroU32 = NonZeroU32::new(50).unwrap();
const BURST: NonZeroU32 = NonZeroU32::new(100).unwrap();
const MANY: usize = 10_000;

pub struct Rates(DefaultKeyedRateLimiter<i64>);

impl Default for Rates {
    fn default() -> Self {
        Rates(RateLimiter::keyed(Quota::per_second(PER_SECOND).allow_burst(BURST)))
    }
}

impl Rates {
    pub fn allow(&self, token: i64) -> bool {
        if self.0.len() > MANY {
            self.0.retain_recent();
        }
        self.0.check_key(&token).is_ok()
    }
}
