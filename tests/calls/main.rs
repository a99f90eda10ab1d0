//! The gateway under many calls: an hour (`soak`), with hanging endpoints (`skew`), compared with alternatives
//! (`speed`), and idle (`rest`).
//!
//! `calls soak|skew|speed|rest [--schedules N] [--minutes M] [--rounds R]`, called by `make soak`, `skew`,
//! `gateway-speed` and `gateway-rest`. `AWTY_GATEWAY` is the program awty-gateway, `AWTY_CALLER` makes its calls
//! without a database, and `AWTY_PG_NET` says that the stage has pg_net. A run smaller than usual is a try: its results
//! go to `target/calls`, and no page in docs/ is written.
//!
//! Invariant: compared ways are measured in turn in the same run.
//! Does not: fail because of slowness. It fails if a call was lost or doubled.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)] // a program for developers: the panic is the report

mod chart;
mod page;
mod place;
mod receiver;
mod skew;
mod soak;
mod speed;

use std::process::ExitCode;

pub struct Options {
    pub schedules: u32,
    pub minutes: u32,
    pub rounds: u32,
    /// Whether the run is smaller than usual.
    pub is_try: bool,
}

fn options(usual: [u32; 3], arguments: &[String]) -> Result<Options, String> {
    let mut values = usual;
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return Err(format!("{} has no value", pair[0])) };
        let place = ["--schedules", "--minutes", "--rounds"].iter().position(|known| known == name);
        let place = place.ok_or_else(|| format!("{name} is not known"))?;
        values[place] = value.parse().ok().filter(|value| *value > 0).ok_or_else(|| format!("{name} {value}"))?;
    }
    let is_try = values.iter().zip(usual).any(|(value, usual)| *value < usual);
    Ok(Options { schedules: values[0], minutes: values[1], rounds: values[2], is_try })
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some("soak") => options([100_000, 60, 1], &arguments[1..]).and_then(|options| soak::soak(&options)),
        Some("skew") => options([3_000, 1, 3], &arguments[1..]).and_then(|options| skew::skew(&options)),
        Some("speed") => options([20_000, 1, 3], &arguments[1..]).and_then(|options| speed::speed(&options)),
        Some("rest") => options([20_000, 1, 1], &arguments[1..]).and_then(|options| speed::rest(&options)),
        _ => Err("usage: calls soak|skew|speed|rest [--schedules N] [--minutes M] [--rounds R]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

pub fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let place = (percent / 100.0 * (sorted.len().saturating_sub(1)) as f64).round() as usize;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_run_is_a_try() {
        let read = |text: &str| options([100, 60, 1], &text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert!(
            !read("").unwrap().is_try
                && !read("--schedules 200").unwrap().is_try
                && read("--minutes 3").unwrap().is_try
        );
        assert!(read("--minutes").is_err() && read("--minutes 0").is_err() && read("--hours 1").is_err());
    }

    #[test]
    fn percentiles_are_values_that_were_seen() {
        assert_eq!((percentile(&[1.0, 2.0, 3.0], 50.0), percentile(&[1.0, 2.0, 3.0], 99.0)), (2.0, 3.0));
        assert!(percentile(&[], 50.0).is_nan());
    }
}
