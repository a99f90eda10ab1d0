use crate::random::Random;
use awty_testkit::Cluster;

pub fn change_slot(cluster: &Cluster, random: &mut Random) -> bool {
    cluster.configure(&format!("awty.slot = '{}'", random.pick(&["1s", "2s", "3s"])));
    cluster.reload();
    true
}
