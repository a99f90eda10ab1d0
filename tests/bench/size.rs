//! Rows 10 and 11: what stays behind: write-ahead log, the size of the tables, the memory of a worker.

use crate::options::Options;
use crate::results::{Outcome, Wanted, readable};
use crate::shop::Shop;
use crate::stats::{Pairs, median};

/// Row 11, first half: write-ahead log per check.
pub fn wal(options: &Options) -> Outcome {
    let mut outcome = Outcome::new("wal");
    let n = options.size(20_000, 100_000);
    let shop = Shop::open(&[("awty.max_workers_per_role", "1")]);
    let bytes = Pairs::measure(
        "WAL of one worker, of the ceiling",
        options.rounds(),
        || shop.run_due("postgres", &["one"], n).wal / f64::from(n),
        || shop.ceiling("postgres", n).wal / f64::from(n),
    );
    let (ours, theirs) = (readable(median(&bytes.ours)), readable(median(&bytes.theirs)));
    let detail = format!("awty {ours} bytes, ceiling {theirs}; {} checks", readable(f64::from(n)));
    outcome.ratio(["WAL bytes per check", "the ceiling"], &bytes, Wanted::AtMost(1.3), detail);
    outcome
}
