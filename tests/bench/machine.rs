use crate::options::Options;
use crate::results::Run;
use crate::shop::{SETTINGS, Shop};
use std::fs;

pub fn describe(options: &Options) -> Run {
    let shop = Shop::with_orders(&[], 1);
    let sql = "SELECT string_agg(name || ' = ' || current_setting(name), E'\\n' ORDER BY name) FROM pg_settings \
               WHERE name LIKE 'awty.%' OR name IN ('synchronous_commit', 'fsync', 'full_page_writes', 'wal_level', 'autovacuum')";
    let known: String = shop.cluster.value("postgres", sql);
    let ours = SETTINGS.iter().map(|(name, value)| format!("{name} = {value}"));
    let server: String = shop.cluster.value("postgres", "SELECT version()");
    let sizes = match (options.full, options.is_try()) {
        (_, true) => format!("a try, {} of the sizes", options.scale),
        (true, false) => "full".into(),
        (false, false) => "the usual ones".into(),
    };
    Run {
        server: server.split(" on ").next().unwrap_or("unknown").to_owned(),
        settings: known.lines().map(str::to_owned).chain(ours).collect(),
        ..now(sizes)
    }
}

pub fn now(sizes: String) -> Run {
    Run {
        began: chrono::Utc::now().format("%Y-%m-%d %H:%M UTC").to_string(),
        commit: std::env::var("AWTY_COMMIT").unwrap_or_else(|_| "unknown".into()),
        sizes,
        machine: machine(),
        load_before: line("/proc/loadavg"),
        server: std::env::var("PG_CONFIG")
            .map_or_else(|_| "PostgreSQL of the stage".into(), |path| format!("PostgreSQL of {path}")),
        settings: Vec::new(),
    }
}

fn machine() -> String {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("unknown", |(_, m)| m);
    let cores = std::thread::available_parallelism().map_or_else(|_| "unknown".into(), |cores| cores.to_string());
    let memory = line("/proc/meminfo").split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse::<f64>().ok());
    let memory = memory.map_or("unknown".into(), |kilobytes| format!("{:.0} GiB", kilobytes / 1024.0 / 1024.0));
    format!("{model}, {cores} cores, {memory}, Linux {}", line("/proc/sys/kernel/osrelease"))
}

fn line(file: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().next().filter(|line| !line.is_empty()).unwrap_or("unknown").to_owned()
}
