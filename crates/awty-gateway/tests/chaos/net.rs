//! Gives each gateway a network namespace, with a virtual cable that the test can unplug.
//!
//! Invariant: a test removes the networks that killed tests have left.
//!
//! Without root or `ip`, the gateways run on this machine, and no cable is unplugged.

use std::process::Command;

const NAME: &str = "awty-chaos-";

pub struct Nets {
    pub home: String,
    pub all: String,
    pub nets: Vec<Net>,
}

pub struct Net {
    name: String,
    cable: String,
}

fn ip(arguments: &str) -> Result<String, String> {
    let run = Command::new("ip").args(arguments.split(' ')).output();
    let run = run.map_err(|error| format!("ip is missing: {error}; apt-get install iproute2"))?;
    match run.status.success() {
        true => Ok(String::from_utf8_lossy(&run.stdout).into_owned()),
        false => Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&run.stderr).trim())),
    }
}

fn must(arguments: &str) {
    ip(arguments).unwrap_or_else(|error| panic!("{error}"));
}

fn sweep() {
    let all = ip("netns list").unwrap_or_default();
    for name in all.lines().filter_map(|line| line.split(' ').next()).filter(|name| name.starts_with(NAME)) {
        let pid = name.trim_start_matches(NAME).split('-').next().unwrap_or_default();
        if !std::path::Path::new("/proc").join(pid).exists() {
            drop(ip(&format!("netns del {name}")));
        }
    }
}

impl Nets {
    pub fn new(count: usize) -> Result<Self, String> {
        sweep();
        let pid = std::process::id();
        let prefix = format!("10.213.{}", pid % 250);
        let home = format!("{prefix}.254");
        let nets = (0..count).map(|number| Net::new(pid, number, &prefix)).collect::<Result<_, _>>()?;
        drop(ip(&format!("addr add {home}/32 dev lo")));
        Ok(Nets { home, all: format!("{prefix}.0/24"), nets })
    }
}

impl Drop for Nets {
    fn drop(&mut self) {
        drop(ip(&format!("addr del {}/32 dev lo", self.home)));
    }
}

impl Net {
    fn new(pid: u32, number: usize, prefix: &str) -> Result<Self, String> {
        let cable = |end: &str| format!("ac{}{end}{number}", pid % 1_000_000);
        let (near, far) = (format!("{prefix}.{}", 4 * number + 1), format!("{prefix}.{}", 4 * number + 2));
        let net = Net { name: format!("{NAME}{pid}-{number}"), cable: cable("n") };
        let (name, near_end, far_end) = (&net.name, &net.cable, cable("f"));
        ip(&format!("netns add {name}"))?;
        ip(&format!("link add {near_end} type veth peer name {far_end} netns {name}"))?;
        ip(&format!("addr add {near}/30 dev {near_end}"))?;
        ip(&format!("link set {near_end} up"))?;
        ip(&format!("-n {name} addr add {far}/30 dev {far_end}"))?;
        ip(&format!("-n {name} link set {far_end} up"))?;
        ip(&format!("-n {name} link set lo up"))?;
        ip(&format!("-n {name} route add default via {near}"))?;
        Ok(net)
    }

    pub fn connect(&self, connected: bool) {
        must(&format!("link set {} {}", self.cable, if connected { "up" } else { "down" }));
    }

    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        drop(ip(&format!("netns del {}", self.name)));
    }
}
