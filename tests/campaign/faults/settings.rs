//! What an administrator changes while the server works: its settings, its clock.

use crate::random::Random;
use awty_testkit::Cluster;

pub fn change_slot(cluster: &Cluster, random: &mut Random) -> bool {
    cluster.configure(&format!("awty.slot = '{}'", random.pick(&["1s", "2s", "3s"])));
    cluster.reload();
    true
}

/// Sets the clock ahead or back, by a second, an hour, days, or to just before the end of 32 bits.
pub fn set_clock(cluster: &Cluster, random: &mut Random) -> bool {
    const HOUR: i64 = 3600;
    let end_of_32_bits = i64::from(i32::MAX) - chrono::Utc::now().timestamp() - 5;
    let offsets = [0, 1, -1, 2, -2, 30, -30, HOUR, -HOUR, 24 * HOUR, -24 * HOUR, 48 * HOUR, -48 * HOUR, end_of_32_bits];
    cluster.set_clock(*random.pick(&offsets));
    true
}
