//! Usage: `bench soak|skew|speed|page|page-twin|rest [--schedules N] [--minutes M] [--rounds R]`. `AWTY_GATEWAY` is the
//! path of awty-gateway. `AWTY_CALLER` is the path of a program that makes the gateway's calls without a database.
//!
//! The program fails if a call is lost or doubled, but not if calls are slow.

mod page;
mod place;
mod receiver;
mod skew;
mod soak;
mod speed;

use crate::report::{self, Page};
use crate::results::{Outcome, save};
use crate::stats::percentile;

pub struct Options {
    pub schedules: u32,
    pub minutes: u32,
    pub rounds: u32,
    pub is_try: bool,
}

impl Options {
    fn parse(usual: [u32; 3], arguments: &[String]) -> Result<Self, String> {
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
}

type Measurement = (&'static str, [u32; 3], fn(&Options) -> Result<Outcome, String>, Page);

pub static MEASUREMENTS: [Measurement; 7] = [
    ("deadlines", [100_000, 1, 5], crate::deadlines::deadlines, Page::of("deadlines")),
    ("soak", [100_000, 60, 1], soak::soak, Page::of("soak")),
    ("skew", [3_000, 1, 3], skew::skew, Page::of("gateway-skew")),
    ("speed", [20_000, 1, 3], speed::speed, Page::of("gateway-performance")),
    ("page", [100_000, 1, 1], page::page, Page::of("gateway-page")),
    ("page-twin", [3_000, 1, 3], page::twin, Page::of("gateway-page")),
    ("rest", [20_000, 1, 1], speed::rest, Page::of("gateway-rest")),
];

pub fn run(arguments: &[String]) -> Option<Result<(), String>> {
    let name = arguments.first()?;
    let (_, usual, measure, page) = MEASUREMENTS.iter().find(|(known, ..)| known == name)?;
    Some(Options::parse(*usual, &arguments[1..]).and_then(|options| {
        let began = std::time::Instant::now();
        let run = crate::machine::now(if options.is_try { "a try" } else { "the usual ones" }.into());
        let mut outcome = measure(&options)?;
        outcome.seconds = began.elapsed().as_secs_f64();
        outcome.run = Some(run);
        println!("{}", report::table(std::slice::from_ref(&outcome)));
        save(&page.results(options.is_try)?, &outcome)?;
        page.write(options.is_try)?;
        outcome.failure.map_or(Ok(()), Err)
    }))
}

fn lateness(arrivals: &[receiver::Arrival]) -> [f64; 3] {
    let lateness: Vec<f64> = arrivals.iter().map(|arrival| arrival.lateness).collect();
    [50.0, 99.0, 100.0].map(|percent| percentile(&lateness, percent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_run_is_a_try() {
        let read =
            |text: &str| Options::parse([100, 60, 1], &text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert!(
            !read("").unwrap().is_try
                && !read("--schedules 200").unwrap().is_try
                && read("--minutes 3").unwrap().is_try
        );
        assert!(read("--minutes").is_err() && read("--minutes 0").is_err() && read("--hours 1").is_err());
    }
}
