//! Each entity has its own delay, so that many entities are not due at once.
//!
//! Invariant: a job and an entity have the same delay in all versions of awty.

use chrono::TimeDelta;

/// Computes FNV-1a and then `fmix64` of MurmurHash3, because FNV-1a alone mixes the high bits badly.
pub fn hash(job: &str, entity_name: &str, entity_key: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for text in [job, entity_name, entity_key] {
        for byte in (text.len() as u64).to_le_bytes().iter().chain(text.as_bytes()) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    finish(hash)
}

fn finish(mut hash: u64) -> u64 {
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jitter {
    pub hash: u64,
    pub at_most: TimeDelta,
}

impl Jitter {
    /// The delay is shorter than `distance`, the time until the next planned time.
    pub fn delay(self, distance: TimeDelta) -> TimeDelta {
        delay(self.hash, self.at_most.min(distance))
    }
}

pub fn delay(hash: u64, jitter: TimeDelta) -> TimeDelta {
    let micros = jitter.num_microseconds().unwrap_or(i64::MAX).max(0);
    let part = (u128::from(hash) * u128::from(micros.unsigned_abs())) >> 64;
    TimeDelta::microseconds(i64::try_from(part).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_today_is_the_hash_for_ever() {
        assert_eq!(hash("", "", ""), 0x716e_2a0d_c793_f89f);
        assert_eq!(hash("digest", "job", "digest"), 0x9de9_533e_e2a7_f448);
        assert_eq!(hash("digest", "tenant", "1"), 0x9bfc_dd67_39a2_137d);
        assert_eq!(hash("digest", "tenant", "2"), 0x4fce_4ae6_6cbf_babb);
        assert_eq!(hash("überfällig", "bestellung", "Größe 7"), 0x3574_372d_b3de_36be);
    }

    #[test]
    fn the_mixing_is_that_of_murmurhash3() {
        assert_eq!(finish(0), 0);
        assert_eq!(finish(1), 0xb456_bcfc_34c2_cb2c);
        assert_eq!(finish(0x1234_5678_9abc_def0), 0x18b8_c062_f6f4_2398);
    }

    #[test]
    fn where_one_text_ends_and_the_next_begins_counts() {
        assert_ne!(hash("a", "bc", ""), hash("ab", "c", ""));
        assert_ne!(hash("a", "", "b"), hash("a", "b", ""));
        assert_ne!(hash("", "a", "b"), hash("a", "", "b"));
    }

    #[test]
    fn a_delay_is_a_part_of_the_jitter() {
        let hour = TimeDelta::hours(1);
        assert_eq!(delay(0, hour), TimeDelta::zero());
        assert_eq!(delay(1 << 63, hour), TimeDelta::minutes(30));
        assert_eq!(delay(u64::MAX, hour), hour - TimeDelta::microseconds(1));
        assert_eq!(delay(u64::MAX, TimeDelta::zero()), TimeDelta::zero());
        assert_eq!(delay(u64::MAX, -hour), TimeDelta::zero());
        assert!(delay(u64::MAX, TimeDelta::MAX) <= TimeDelta::MAX);
        let half = Jitter { hash: 1 << 63, at_most: hour };
        assert_eq!(half.delay(TimeDelta::days(1)), TimeDelta::minutes(30));
        assert_eq!(half.delay(TimeDelta::seconds(10)), TimeDelta::seconds(5));
    }

    #[test]
    fn the_delays_of_numbered_entities_fill_the_jitter_evenly() {
        let mut minutes = [0; 60];
        for key in 0..60_000 {
            let delay = delay(hash("digest", "tenant", &key.to_string()), TimeDelta::hours(1));
            minutes[delay.num_minutes() as usize] += 1;
        }
        // 60,000 entities in an hour are about 1,000 per minute. The allowed difference is five standard deviations.
        assert!(minutes.iter().all(|&count| (843..=1157).contains(&count)), "{minutes:?}");
    }
}
