use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub const OF_PEER: usize = 100;

#[derive(Clone, Default)]
pub(super) struct Peers(Arc<Mutex<HashMap<IpAddr, usize>>>);

pub(super) struct Place {
    peers: Peers,
    peer: IpAddr,
}

impl Peers {
    pub fn place(&self, address: IpAddr, most: usize) -> Option<Place> {
        let peer = peer(address);
        let mut counts = self.counts();
        let count = counts.entry(peer).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Place { peers: self.clone(), peer })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.peers.counts();
        if let Some(count) = counts.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.peer);
            }
        }
    }
}

/// All addresses of an IPv6 network of 64 bits count as one peer, because one client may use all addresses.
fn peer(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a panic fails the test

    use super::*;

    #[test]
    fn a_peer_has_its_places_and_is_forgotten_after_the_last() {
        let peers = Peers::default();
        let place = |address: &str| peers.place(address.parse().unwrap(), 2);
        let held = [place("2001:db8::1"), place("2001:db8::ffff:1")];
        assert!(held.iter().all(Option::is_some) && place("2001:db8::2").is_none());
        assert!(place("2001:db8:0:1::1").is_some(), "another network");
        drop(held);
        assert!(peers.counts().is_empty());
        let held = [place("::ffff:192.0.2.1"), place("192.0.2.1")];
        assert!(held.iter().all(Option::is_some) && place("192.0.2.1").is_none());
        assert!(place("192.0.2.2").is_some());
    }
}
