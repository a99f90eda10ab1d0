//! Computes the key of a lease. All leases of a check have the same key until a worker reports success.
//!
//! Invariant: a key has 26 characters: the first 130 bits of a SHA-256 hash in base32 (RFC 4648).

use crate::Time;
use sha2::{Digest, Sha256};

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const LENGTH: usize = 26;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// Random number that identifies an installation of awty.
    pub identity: i64,
    pub database: u32,
}

pub fn key(home: Home, check: i64, scheduled_at: Time, check_count: u32) -> String {
    let mut hash = Sha256::new();
    hash.update(home.identity.to_be_bytes());
    hash.update(home.database.to_be_bytes());
    hash.update(check.to_be_bytes());
    hash.update(scheduled_at.timestamp_micros().to_be_bytes());
    hash.update(check_count.to_be_bytes());
    base32(&hash.finalize())
}

fn base32(bytes: &[u8]) -> String {
    let bit = |n: usize| (bytes[n / 8] >> (7 - n % 8)) & 1;
    let letter = |n: usize| (0..5).fold(0, |value, k| value << 1 | bit(n * 5 + k));
    (0..LENGTH).map(|n| char::from(ALPHABET[usize::from(letter(n))])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::clock;

    const HOME: Home = Home { identity: 1, database: 5 };

    #[test]
    fn base32_is_that_of_the_rfc() {
        // From RFC 4648: BASE32("foobar") = "MZXW6YTBOI======"
        assert!(base32(b"foobar+++++++++++").starts_with("MZXW6YTBOI"));
    }

    #[test]
    fn each_part_makes_another_key() {
        let (t, key_of) = (clock("10:00:00"), key(HOME, 7, clock("10:00:00"), 0));
        assert_eq!(key_of, key(HOME, 7, t, 0));
        assert_eq!(key_of.len(), LENGTH);
        assert!(key_of.bytes().all(|letter| ALPHABET.contains(&letter)));
        let others = [
            key(Home { identity: 2, ..HOME }, 7, t, 0),
            key(Home { database: 6, ..HOME }, 7, t, 0),
            key(HOME, 8, t, 0),
            key(HOME, 7, t + chrono::TimeDelta::microseconds(1), 0),
            key(HOME, 7, t, 1),
        ];
        assert!(others.iter().all(|other| *other != key_of));
    }
}
