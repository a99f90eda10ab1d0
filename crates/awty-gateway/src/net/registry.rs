//! The longest prefix that contains an address decides whether the address is globally reachable.
//!
//! <https://www.iana.org/assignments/iana-ipv4-special-registry>,
//! <https://www.iana.org/assignments/iana-ipv6-special-registry>.

/// A prefix, whether its addresses are globally reachable, and its name.
pub type Row = (&'static str, bool, &'static str);

/// An address is globally reachable if no prefix in the table contains it.
pub const IPV4: &[Row] = &[
    ("0.0.0.0/8", false, "this network"),
    ("10.0.0.0/8", false, "private use"),
    ("100.64.0.0/10", false, "shared address space"),
    ("127.0.0.0/8", false, "loopback"),
    // IANA's registry lacks this address. In Azure, a virtual machine reaches a service of its host at this address.
    ("168.63.129.16/32", false, "the host of a virtual machine"),
    ("169.254.0.0/16", false, "link local"),
    ("172.16.0.0/12", false, "private use"),
    ("192.0.0.0/24", false, "IETF protocol assignments"),
    ("192.0.0.9/32", true, "Port Control Protocol anycast"),
    ("192.0.0.10/32", true, "TURN anycast"),
    ("192.0.2.0/24", false, "documentation"),
    ("192.31.196.0/24", true, "AS112-v4"),
    ("192.52.193.0/24", true, "AMT"),
    ("192.88.99.0/24", false, "6to4 relay anycast"),
    ("192.168.0.0/16", false, "private use"),
    ("192.175.48.0/24", true, "direct delegation AS112"),
    ("198.18.0.0/15", false, "benchmarking"),
    ("198.51.100.0/24", false, "documentation"),
    ("203.0.113.0/24", false, "documentation"),
    ("224.0.0.0/4", false, "multicast"),
    ("240.0.0.0/4", false, "reserved"),
    ("255.255.255.255/32", false, "limited broadcast"),
];

/// Only `2000::/3` is assigned as global unicast, so all other addresses are not globally reachable.
pub const IPV6: &[Row] = &[
    ("::/0", false, "not global unicast"),
    ("::/96", false, "IPv4-compatible"),
    ("::/128", false, "unspecified"),
    ("::1/128", false, "loopback"),
    ("::ffff:0:0/96", false, "IPv4-mapped"),
    ("64:ff9b::/96", false, "NAT64"),
    ("64:ff9b:1::/48", false, "local NAT64"),
    ("100::/64", false, "discard only"),
    ("100:0:0:1::/64", false, "dummy prefix"),
    ("2000::/3", true, "global unicast"),
    ("2001::/23", false, "IETF protocol assignments"),
    ("2001::/32", false, "Teredo"),
    ("2001:1::1/128", true, "Port Control Protocol anycast"),
    ("2001:1::2/128", true, "TURN anycast"),
    ("2001:1::3/128", true, "DNS-SD anycast"),
    ("2001:2::/48", false, "benchmarking"),
    ("2001:3::/32", true, "AMT"),
    ("2001:4:112::/48", true, "AS112-v6"),
    ("2001:10::/28", false, "ORCHID"),
    ("2001:20::/28", true, "ORCHIDv2"),
    ("2001:30::/28", true, "drone remote identification"),
    ("2001:db8::/32", false, "documentation"),
    ("2002::/16", false, "6to4"),
    ("2620:4f:8000::/48", true, "direct delegation AS112"),
    ("3fff::/20", false, "documentation"),
    ("5f00::/16", false, "SRv6 SIDs"),
    ("fc00::/7", false, "unique local"),
    ("fe80::/10", false, "link local"),
    ("fec0::/10", false, "site local"),
    ("ff00::/8", false, "multicast"),
];
