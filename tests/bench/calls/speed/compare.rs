use crate::results::{Outcome, Wanted};
use crate::stats::{Pairs, median};

pub fn best<T: Copy + std::fmt::Debug>(
    name: &str,
    all: &[T],
    mut run: impl FnMut(T) -> Result<f64, String>,
) -> Option<T> {
    let mut found: Option<(f64, T)> = None;
    for settings in all {
        match run(*settings) {
            Ok(rate) => {
                println!("{name}, {settings:?}: {rate:.0}/s");
                found = found.filter(|(best, _)| *best >= rate).or(Some((rate, *settings)));
            }
            Err(error) => println!("{name}, {settings:?}: {error}"),
        }
    }
    found.map(|(_, settings)| settings)
}

pub fn add(
    outcome: &mut Outcome,
    names: [&str; 2],
    [ours, theirs]: [&[f64]; 2],
    wanted: Wanted,
    show: fn(f64) -> String,
    more: &str,
) {
    if theirs.is_empty() {
        let [what, against] = names;
        outcome.note(format!("{what}: {against} is missing here; {} alone", show(median(ours))));
        return;
    }
    let detail = format!("{} against {}{more}", show(median(ours)), show(median(theirs)));
    outcome.ratio(names, &Pairs { ours: ours.to_vec(), theirs: theirs.to_vec() }, wanted, detail);
}

pub fn per_second(value: f64) -> String {
    format!("{value:.0}/s")
}

pub fn milliseconds(value: f64) -> String {
    format!("{:.0} ms", value * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_that_is_missing_is_said() {
        let mut outcome = Outcome::new("speed");
        let mut add = |theirs: &[f64]| {
            add(&mut outcome, ["a", "b"], [&[30.0, 20.0, 40.0], theirs], Wanted::Nothing, per_second, "")
        };
        add(&[10.0; 3]);
        add(&[]);
        assert_eq!((outcome.figures[0].value, outcome.figures[0].detail.as_str()), (3.0, "30/s against 10/s"));
        assert_eq!(outcome.notes, ["a: b is missing here; 30/s alone"]);
    }

    #[test]
    fn the_best_setting_is_the_fastest_that_works() {
        let run = |n: u32| if n == 3 { Err("no".to_owned()) } else { Ok(f64::from(n)) };
        assert_eq!(best("a try", &[1, 2, 3], run), Some(2));
        assert_eq!(best("a try", &[3], run), None);
    }
}
