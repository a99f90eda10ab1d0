//! A run's page and charts: in docs/, or for a try in target/calls.

use crate::Options;
use crate::chart::{Chart, draw};
use awty_testkit::checkout;
use std::fs;
use std::path::PathBuf;

pub struct Page {
    pub name: &'static str,
    pub title: &'static str,
    /// The measurement.
    pub what: String,
    /// Name and value.
    pub figures: Vec<(&'static str, String)>,
    pub charts: Vec<Chart>,
}

fn line(file: &str) -> String {
    fs::read_to_string(file).unwrap_or_default().lines().next().unwrap_or("unknown").to_owned()
}

fn machine() -> String {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "{}, {cores} cores, Linux {}",
        model.map_or("unknown", |(_, name)| name),
        line("/proc/sys/kernel/osrelease")
    )
}

impl Page {
    /// Writes the page and prints it.
    pub fn write(&self, options: &Options) -> Result<(), String> {
        let root = checkout().canonicalize().map_err(|error| error.to_string())?;
        let folder: PathBuf = root.join(if options.is_try { "target/calls" } else { "docs" });
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut text = format!("# {}\n\n{}\n\n| figure | value |\n|---|---|\n", self.title, self.what);
        self.figures.iter().for_each(|(name, value)| text.push_str(&format!("| {name} | {value} |\n")));
        for chart in &self.charts {
            draw(&folder, chart).map_err(|error| error.to_string())?;
            text.push_str(&format!("\n![{}]({}.svg)\n", chart.title, chart.name));
        }
        let commit = std::env::var("AWTY_COMMIT").unwrap_or_else(|_| "unknown".into());
        let now = chrono::Utc::now().format("%Y-%m-%d %H:%M UTC");
        text.push_str(&format!(
            "\nMeasured until {now} at commit {commit}, on {}, with the PostgreSQL of {}; load before it ended: {}.\n",
            machine(),
            std::env::var("PG_CONFIG").unwrap_or_else(|_| "the stage".into()),
            line("/proc/loadavg")
        ));
        let file = folder.join(format!("{}.md", self.name));
        fs::write(&file, &text).map_err(|error| format!("{}: {error}", file.display()))?;
        println!("{text}\n(in {})", file.display());
        Ok(())
    }
}
