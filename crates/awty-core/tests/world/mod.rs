use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

#[rustfmt::skip]
pub const ZONES: [&str; 60] = [
    "Africa/Abidjan", "Africa/Cairo", "Africa/Casablanca", "Africa/El_Aaiun", "Africa/Juba", "Africa/Monrovia",
    "Africa/Windhoek", "America/Adak", "America/Anchorage", "America/Argentina/San_Luis", "America/Asuncion",
    "America/Caracas", "America/Chicago", "America/Godthab", "America/Havana", "America/Los_Angeles", "America/Mexico_City",
    "America/New_York", "America/Noronha", "America/Port-au-Prince", "America/Santiago", "America/Sao_Paulo",
    "America/Scoresbysund", "America/St_Johns", "Antarctica/Casey", "Antarctica/Davis", "Antarctica/Macquarie",
    "Antarctica/Troll", "Antarctica/Vostok", "Asia/Amman", "Asia/Beirut", "Asia/Colombo", "Asia/Dhaka", "Asia/Gaza",
    "Asia/Hovd", "Asia/Kathmandu", "Asia/Kolkata", "Asia/Magadan", "Asia/Pyongyang", "Asia/Seoul", "Asia/Tehran",
    "Asia/Tokyo", "Atlantic/Azores", "Atlantic/Stanley", "Australia/Eucla", "Australia/Lord_Howe", "Australia/Sydney",
    "Europe/Berlin", "Europe/Dublin", "Europe/Istanbul", "Europe/London", "Europe/Moscow", "Pacific/Apia",
    "Pacific/Auckland", "Pacific/Chatham", "Pacific/Easter", "Pacific/Kiritimati", "Pacific/Kwajalein", "Pacific/Norfolk",
    "UTC",
];

pub struct Dice(ChaCha8Rng);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    pub fn below(&mut self, n: i64) -> i64 {
        ((i128::from(self.0.next_u64()) * i128::from(n)) >> 64) as i64
    }

    pub fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as i64) as usize]
    }
}
