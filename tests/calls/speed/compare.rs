//! The gateway's figures divided by those of alternatives: the alternatives' best settings, and a row of the page.

use crate::percentile;

/// Returns the best setting after one try each, without those that fail.
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

#[derive(Clone, Copy)]
pub enum Goal {
    None,
    AtLeast(f64),
    AtMost(f64),
}

impl Goal {
    fn verdict(self, ratio: f64) -> String {
        let (word, goal, kept) = match self {
            Goal::None => return String::new(),
            Goal::AtLeast(goal) => ("least", goal, ratio >= goal),
            Goal::AtMost(goal) => ("most", goal, ratio <= goal),
        };
        format!("; goal: at {word} {goal} ×: {}", if kept { "kept" } else { "**missed**" })
    }
}

pub fn per_second(value: f64) -> String {
    format!("{value:.0}/s")
}

pub fn milliseconds(value: f64) -> String {
    format!("{:.0} ms", value * 1e3)
}

fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    percentile(&sorted, 50.0)
}

/// Returns the ratio over the rounds: median, minimum, maximum, the goal, and the medians of both.
pub fn row(ours: &[f64], theirs: &[f64], goal: Goal, show: fn(f64) -> String) -> String {
    if theirs.is_empty() {
        return format!("not measured: missing here; {} alone", show(middle(ours)));
    }
    let mut ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
    ratios.sort_by(f64::total_cmp);
    let median = percentile(&ratios, 50.0);
    format!(
        "{median:.2} × ({:.2} to {:.2}){}; {} against {}",
        ratios[0],
        ratios[ratios.len() - 1],
        goal.verdict(median),
        show(middle(ours)),
        show(middle(theirs))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_whether_the_goal_is_kept() {
        let kept = row(&[30.0, 20.0, 40.0], &[10.0; 3], Goal::AtLeast(3.0), per_second);
        assert_eq!(kept, "3.00 × (2.00 to 4.00); goal: at least 3 ×: kept; 30/s against 10/s");
        assert!(row(&[29.0], &[10.0], Goal::AtLeast(3.0), per_second).contains("**missed**"));
        assert!(row(&[0.6], &[1.0], Goal::AtMost(0.5), milliseconds).ends_with("**missed**; 600 ms against 1000 ms"));
        assert!(row(&[0.5], &[1.0], Goal::AtMost(0.5), milliseconds).contains(": kept"));
        assert!(row(&[29.0], &[], Goal::AtLeast(3.0), per_second).contains("not measured"));
    }

    #[test]
    fn the_best_setting_is_the_fastest_that_works() {
        let run = |n: u32| if n == 3 { Err("no".to_owned()) } else { Ok(f64::from(n)) };
        assert_eq!(best("a try", &[1, 2, 3], run), Some(2));
        assert_eq!(best("a try", &[3], run), None);
    }
}
