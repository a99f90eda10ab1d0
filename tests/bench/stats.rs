pub fn median(values: &[f64]) -> f64 {
    percentile(values, 50.0)
}

pub fn percentile(values: &[f64], percent: f64) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = percent / 100.0 * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    low + (high - low) * place.fract()
}

pub fn spread(values: &[f64]) -> [f64; 2] {
    values.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], value| [low.min(*value), high.max(*value)])
}

/// In seconds.
#[derive(Debug, Clone, Copy)]
pub struct Spent {
    pub clock: f64,
    pub cpu: f64,
}

pub struct Pairs {
    pub ours: Vec<f64>,
    pub theirs: Vec<f64>,
}

impl Pairs {
    pub fn measure(what: &str, rounds: usize, mut ours: impl FnMut() -> f64, mut theirs: impl FnMut() -> f64) -> Self {
        let mut pairs = Pairs { ours: Vec::new(), theirs: Vec::new() };
        for round in 1..=rounds {
            let (our, their) = (ours(), theirs());
            crate::progress::say(&format!("{what}: {round} of {rounds}, {our:.4} against {their:.4}"));
            pairs.ours.push(our);
            pairs.theirs.push(their);
        }
        pairs
    }

    /// Returns the pairs by the clock, and the same pairs by CPU time.
    pub fn with_cpu(
        what: &str,
        rounds: usize,
        mut ours: impl FnMut() -> Spent,
        mut theirs: impl FnMut() -> Spent,
    ) -> [Self; 2] {
        fn clock(spent: Spent, cpu: &mut Vec<f64>) -> f64 {
            cpu.push(spent.cpu);
            spent.clock
        }
        let mut cpu = Pairs { ours: Vec::new(), theirs: Vec::new() };
        let by_clock =
            Self::measure(what, rounds, || clock(ours(), &mut cpu.ours), || clock(theirs(), &mut cpu.theirs));
        [by_clock, cpu]
    }

    pub fn ratios(&self) -> Vec<f64> {
        self.ours.iter().zip(&self.theirs).map(|(ours, theirs)| ours / theirs).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[7.0]), 7.0);
    }

    #[test]
    fn a_percentile_lies_between_its_neighbours() {
        let hundred_and_one: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&hundred_and_one, 99.0), 99.0);
        assert_eq!(percentile(&[0.0, 10.0], 25.0), 2.5);
        assert_eq!(percentile(&[0.0, 10.0], 100.0), 10.0);
        assert!(percentile(&[], 50.0).is_nan());
    }

    #[test]
    fn ratios_are_those_of_neighbours() {
        let pairs = Pairs { ours: vec![1.0, 20.0], theirs: vec![2.0, 10.0] };
        assert_eq!(pairs.ratios(), [0.5, 2.0]);
        assert_eq!(spread(&pairs.ratios()), [0.5, 2.0]);
    }
}
