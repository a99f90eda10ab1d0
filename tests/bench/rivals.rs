//! Compares awty with other queues. Each queue is measured with several settings, and its best result counts.

use crate::options::Options;
use crate::progress::say;
use crate::results::{Outcome, Wanted, readable};
use crate::shop::Shop;
use crate::stats::Pairs;
use crate::work::{rates, speeds};
use awty_testkit::target;
use std::path::PathBuf;
use std::process::Command;

struct Rival {
    name: &'static str,
    at_least: f64,
    settings: &'static [[u32; 2]],
    forget: &'static str,
}

const RIVALS: [Rival; 2] = [
    Rival {
        name: "graphile-worker",
        at_least: 4.0,
        settings: &[[1, 500], [4, 500], [12, 500], [24, 1000]],
        forget: "DROP SCHEMA IF EXISTS graphile_worker CASCADE",
    },
    Rival {
        name: "pg-boss",
        at_least: 4.5,
        settings: &[[4, 100], [4, 500], [12, 500], [12, 2000]],
        forget: "DROP SCHEMA IF EXISTS pgboss CASCADE",
    },
];

fn packages() -> PathBuf {
    target().join("bench/npm")
}

fn version(name: &str) -> Result<String, String> {
    let file = packages().join("node_modules").join(name).join("package.json");
    let text = std::fs::read_to_string(&file).map_err(|_| "not installed".to_owned())?;
    let package: serde_json::Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    Ok(package["version"].as_str().unwrap_or("of an unknown version").to_owned())
}

impl Rival {
    fn run(&self, shop: &Shop, n: u32, [at_once, fetched]: [u32; 2], commit: &str) -> Result<f64, String> {
        shop.cluster.execute("postgres", &["TRUNCATE shop.alert"]);
        let seconds = self.work(shop, n, [at_once, fetched], commit, "SELECT shop.look_at($1, 0)")?;
        let alerts: i64 = shop.cluster.value("postgres", "SELECT count(*) FROM shop.alert");
        if alerts == i64::from(n / 10) { Ok(seconds) } else { Err(format!("{alerts} alerts instead of {}", n / 10)) }
    }

    /// `each` is the SQL statement that each job executes.
    fn work(&self, shop: &Shop, n: u32, [at_once, fetched]: [u32; 2], commit: &str, each: &str) -> Result<f64, String> {
        shop.cluster.execute("postgres", &[self.forget]);
        let mut node = Command::new("node");
        node.current_dir(packages())
            .arg(format!("{}.mjs", self.name))
            .args([n, at_once, fetched].map(|n| n.to_string()))
            .arg(each);
        node.envs(shop.cluster.environment()).env("PGDATABASE", "postgres");
        node.env("PGOPTIONS", format!("-c synchronous_commit={commit}"));
        let output = node.output().map_err(|error| format!("node: {error}"))?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let seconds = printed.lines().last().and_then(|line| line.parse().ok());
        seconds.ok_or_else(|| String::from_utf8_lossy(&output.stderr).lines().take(20).collect::<Vec<_>>().join("\n"))
    }

    fn best(&self, shop: &Shop, n: u32) -> Result<[u32; 2], String> {
        let mut best = None;
        for settings in self.settings {
            let seconds = self.run(shop, n, *settings, "on")?;
            let [at_once, fetched] = settings;
            say(&format!(
                "{}: {at_once} at once, {fetched} fetched at a time: {}/s",
                self.name,
                readable(f64::from(n) / seconds)
            ));
            if best.is_none_or(|(least, _)| seconds < least) {
                best = Some((seconds, *settings));
            }
        }
        best.map(|(_, settings)| settings).ok_or_else(|| "no settings".into())
    }

    fn compare(&self, options: &Options, shop: &Shop, outcome: &mut Outcome) -> Result<(), String> {
        let n = options.size(5_000, 50_000);
        let version = version(self.name)?;
        let settings = self.best(shop, n)?;
        let wanted = Wanted::AtLeast(self.at_least);
        let ways =
            [("one worker", "on", wanted), ("two workers", "on", wanted), ("one worker", "off", Wanted::Nothing)];
        for (workers, commit, wanted) in ways.into_iter().take(if options.full { 3 } else { 2 }) {
            shop.set("awty.max_workers_per_role", if workers == "two workers" { "2" } else { "1" });
            let times = Pairs::measure(
                &format!("{workers}, {} with synchronous_commit {commit}", self.name),
                options.rounds(),
                || shop.run_due("postgres", &["one"], n).spent.clock,
                || self.run(shop, n, settings, commit).unwrap_or_else(|error| panic!("{}: {error}", self.name)),
            );
            let [at_once, fetched] = settings;
            let detail =
                format!("{}; {at_once} at once, {fetched} fetched at a time", rates(n, ["awty", self.name], &times));
            let against = format!("{} {version}, synchronous_commit {commit}", self.name);
            let [times] = speeds([times]);
            outcome.ratio([&format!("due checks/s, {workers}"), &against], &times, wanted, detail);
        }
        Ok(())
    }
}

pub fn hand_out(shop: &Shop, n: u32) -> Result<(f64, String), String> {
    let graphile = &RIVALS[0];
    let version = version(graphile.name)?;
    Ok((graphile.work(shop, n, [24, 1000], "off", "")?, version))
}

pub fn rivals(options: &Options) -> Outcome {
    let mut outcome = Outcome::new("rivals");
    let shop = Shop::open(&[("awty.max_workers_per_role", "1")]);
    for rival in &RIVALS {
        if let Err(error) = rival.compare(options, &shop, &mut outcome) {
            say(&format!("{}: {error}", rival.name));
            outcome.note(format!("{} is missing here and was not measured: {error}", rival.name));
        }
    }
    outcome.note(
        "the queues run on Node.js beside the server; each job is one round trip that calls a function of the shop. pg-boss by fetch() and \
         complete() without a pause, which is never slower than its work().",
    );
    outcome
}
