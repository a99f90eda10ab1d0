use super::*;
use awty_core::uri::Uri;
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};

const ORIGIN: &str = "https://a.example";

fn judged(address: &str) -> Result<SocketAddr, Refusal> {
    Guard::default().judge(ORIGIN, address.parse().unwrap(), 443)
}

fn around(net: IpNet) -> Vec<IpAddr> {
    match net {
        IpNet::V4(net) => {
            let (first, last) = (u32::from(net.network()), u32::from(net.broadcast()));
            let sides = [first.checked_sub(1), last.checked_add(1)];
            sides.into_iter().flatten().map(|bits| Ipv4Addr::from(bits).into()).collect()
        }
        IpNet::V6(net) => {
            let (first, last) = (u128::from(net.network()), u128::from(net.broadcast()));
            let sides = [first.checked_sub(1), last.checked_add(1)];
            sides.into_iter().flatten().map(|bits| Ipv6Addr::from(bits).into()).collect()
        }
    }
}

fn by_hand(address: IpAddr) -> bool {
    let rows = if address.is_ipv4() { IPV4 } else { IPV6 };
    let nets = rows.iter().map(|(net, ok, _)| (net.parse::<IpNet>().unwrap(), *ok));
    let best = nets.filter(|(net, _)| net.contains(&address)).max_by_key(|(net, _)| net.prefix_len());
    best.is_none_or(|(_, reachable)| reachable)
}

#[test]
fn every_row_is_a_prefix() {
    for (net, ..) in IPV4.iter().chain(IPV6) {
        let parsed: IpNet = net.parse().unwrap_or_else(|_| panic!("{net}"));
        assert_eq!(parsed, parsed.trunc(), "{net} has bits after its prefix");
    }
    assert_eq!((REGISTRY_4.len(), REGISTRY_6.len()), (IPV4.len(), IPV6.len()));
}

#[test]
fn both_ends_of_every_prefix_are_judged_as_its_row_says() {
    for (text, ..) in IPV4.iter().chain(IPV6) {
        let net: IpNet = text.parse().unwrap();
        for address in [net.network(), net.broadcast()].into_iter().chain(around(net)) {
            let expected = by_hand(address.to_canonical());
            let found = Guard::default().judge(ORIGIN, address, 443).is_ok();
            assert_eq!(found, expected, "{address} beside {text}");
        }
    }
}

#[test]
fn what_attackers_try_is_refused() {
    let tried = [
        "127.0.0.1",
        "127.255.255.254",
        "0.0.0.0",
        "10.0.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "168.63.129.16",
        "::ffff:168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::7f00:1",
        "2002:7f00:1::",
        "2001:0:7f00:1::",
        "fe80::1",
        "fc00::1",
        "fd00:ec2::254",
        "fec0::1",
        "ff02::1",
        "5f00::1",
        "4000::1",
        "100::1",
        "3fff::1",
    ];
    for address in tried {
        assert!(matches!(judged(address), Err(Refusal::Special(..))), "{address}: {:?}", judged(address));
    }
    for address in ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "2a00:1450:4001::1", "::ffff:8.8.8.8", "192.0.0.9"] {
        assert!(judged(address).is_ok(), "{address}: {:?}", judged(address));
    }
    assert_eq!(judged("::ffff:8.8.8.8").unwrap(), "8.8.8.8:443".parse().unwrap());
}

#[test]
fn odd_spellings_of_loopback_are_loopback() {
    let odd = [
        "http://2130706433/",
        "http://0x7f.1/",
        "http://127.1/",
        "http://0177.0.0.1/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::1]/",
    ];
    for text in odd {
        let endpoint = Uri::parse(text).unwrap();
        let address = match endpoint.url().host().unwrap() {
            url::Host::Ipv4(address) => IpAddr::from(address),
            url::Host::Ipv6(address) => IpAddr::from(address),
            url::Host::Domain(name) => panic!("{text} became the name {name}"),
        };
        assert!(Guard::default().judge(ORIGIN, address, 80).is_err(), "{text}");
    }
}

#[test]
fn ports_of_other_services_are_refused() {
    let port = |port| Guard::default().judge(ORIGIN, "8.8.8.8".parse().unwrap(), port);
    for refused in [0, 1, 22, 25, 79, 81, 442, 444, 1023] {
        assert_eq!(port(refused), Err(Refusal::Port(refused)));
    }
    for allowed in [80, 443, 1024, 8080, 65_535] {
        assert!(port(allowed).is_ok(), "{allowed}");
    }
}

#[test]
fn a_network_is_opened_for_all_or_for_one_origin() {
    let network: IpNet = "10.1.0.0/16".parse().unwrap();
    let judge = |guard: &Guard, origin| guard.judge(origin, "10.1.2.3".parse().unwrap(), 443).is_ok();
    let all = Guard { allowed: vec![Allowed { origin: None, network }], ..Guard::default() };
    assert!(judge(&all, ORIGIN));
    assert!(all.judge(ORIGIN, "10.2.0.1".parse().unwrap(), 443).is_err());
    let one = Guard { allowed: vec![Allowed { origin: Some(ORIGIN.into()), network }], ..Guard::default() };
    assert!(judge(&one, ORIGIN) && !judge(&one, "https://b.example"));
    assert!(one.judge(ORIGIN, "10.1.2.3".parse().unwrap(), 22).is_err());
}

#[test]
fn a_denied_network_is_stronger_than_what_opens_it() {
    let network = |text: &str| -> IpNet { text.parse().unwrap() };
    let allowed = ["127.0.0.0/8", "10.0.0.0/8"].map(|text| Allowed { origin: None, network: network(text) }).to_vec();
    let denied = ["127.0.0.1/32", "10.1.0.0/16", "8.8.8.0/24", "2001:4860::/32"].map(network).to_vec();
    let guard = Guard { allowed, denied, allow_localhost: true, ..Guard::default() };
    let judge = |address: &str| guard.judge(ORIGIN, address.parse().unwrap(), 443);
    for refused in ["127.0.0.1", "10.1.2.3", "8.8.8.8", "::ffff:8.8.8.8", "2001:4860::1"] {
        assert!(matches!(judge(refused), Err(Refusal::Denied(_))), "{refused}: {:?}", judge(refused));
    }
    for open in ["127.0.0.2", "10.2.0.1", "8.8.4.4", "2606:4700:4700::1111"] {
        assert!(judge(open).is_ok(), "{open}: {:?}", judge(open));
    }
}

#[test]
fn a_refusal_names_the_setting_that_opens_the_address() {
    let said = |address| judged(address).unwrap_err().to_string();
    assert!(said("127.0.0.1").ends_with("allow_localhost can open it"));
    assert!(said("10.1.2.3").ends_with("allow_networks can open it"));
}

#[test]
fn its_own_listeners_and_the_database_stay_closed() {
    let own = vec!["127.0.0.1:8470".parse().unwrap(), "10.0.0.5:5432".parse().unwrap(), "[::]:9000".parse().unwrap()];
    let network: IpNet = "10.0.0.0/8".parse().unwrap();
    let allowed = vec![Allowed { origin: None, network }];
    let guard = Guard { allowed, allow_localhost: true, own, here: addresses(), ..Guard::default() };
    let judge = |address: &str| {
        let socket: SocketAddr = address.parse().unwrap();
        guard.judge(ORIGIN, socket.ip(), socket.port())
    };
    let mut refused = ["127.0.0.1:8470", "[::ffff:127.0.0.1]:8470", "127.0.0.2:8470", "10.0.0.5:5432", "[::1]:9000"]
        .map(str::to_owned)
        .to_vec();
    // A machine may have several addresses, and a listener on all of them answers on each.
    let here = if_addrs::get_if_addrs().unwrap().into_iter().map(|interface| interface.ip());
    refused.extend(here.flat_map(|ip| [8470, 9000].map(|port| SocketAddr::new(ip, port).to_string())));
    for refused in refused {
        assert!(matches!(judge(&refused), Err(Refusal::Own(_))), "{refused}");
    }
    assert!(judge("127.0.0.1:8471").is_ok() && judge("10.0.0.6:5432").is_ok() && judge("10.9.9.9:9000").is_ok());
    let there = |judged: &str, peer: &str| guard.is_as_judged(judged.parse().unwrap(), peer.parse().unwrap());
    assert!(there("10.9.9.9:9000", "10.9.9.9:9000") && !there("127.0.0.2:9000", "127.0.0.2:9000"));
    assert!(!there("8.8.8.8:443", "8.8.4.4:443"));
    let without_list = Guard { here: None, ..guard };
    assert!(matches!(without_list.judge(ORIGIN, "8.8.8.8".parse().unwrap(), 9000), Err(Refusal::Own(_))));
}

proptest! {
    #[test]
    fn any_ipv4_address_is_judged_alike_in_each_spelling(bits: u32) {
        let plain = Ipv4Addr::from(bits);
        let mapped = IpAddr::from(plain.to_ipv6_mapped());
        let guard = Guard::default();
        prop_assert_eq!(guard.judge(ORIGIN, plain.into(), 443), guard.judge(ORIGIN, mapped, 443));
        prop_assert_eq!(guard.judge(ORIGIN, plain.into(), 443).is_ok(), by_hand(plain.into()));
    }

    #[test]
    fn no_ipv6_address_outside_of_global_unicast_is_reached(bits: u128) {
        let address = Ipv6Addr::from(bits);
        let reached = Guard::default().judge(ORIGIN, address.into(), 443).is_ok();
        prop_assert!(!reached || bits >> 125 == 1);
    }
}

#[test]
fn a_shared_guard_is_replaced_for_all() {
    let shared = Shared::from(Guard::default());
    let other = shared.clone();
    let own: SocketAddr = "198.51.100.7:5432".parse().unwrap();
    shared.set(Guard { own: vec![own], ..Guard::default() });
    assert_eq!(other.get().own, [own]);
}
