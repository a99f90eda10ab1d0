use crate::calls::receiver::Arrival;
use crate::stats::percentile;

pub struct Calls {
    pub count: u32,
    pub a_second: Option<u32>,
}

impl Calls {
    pub fn at_once(count: u32) -> Self {
        Calls { count, a_second: None }
    }

    pub fn each_second(&self) -> u32 {
        self.a_second.unwrap_or(self.count)
    }
}

pub struct Run {
    pub begin: i64,
    pub arrivals: Vec<Arrival>,
}

impl Run {
    pub fn rate(&self) -> f64 {
        let last = self.arrivals.iter().map(|arrival| arrival.at).max().unwrap_or(self.begin);
        self.arrivals.len() as f64 / ((last - self.begin) as f64 / 1e6)
    }

    /// Returns the 99th percentile of the lateness in seconds, and the number of early calls.
    pub fn lateness(&self, each_second: u32) -> (f64, usize) {
        let late = |arrival: &Arrival| {
            let due = self.begin + i64::from(arrival.schedule.saturating_sub(1) / each_second) * 1_000_000;
            (arrival.at - due) as f64 / 1e6
        };
        let mut sorted: Vec<f64> = self.arrivals.iter().map(late).collect();
        sorted.sort_by(f64::total_cmp);
        (percentile(&sorted, 99.0), sorted.iter().filter(|late| **late < 0.0).count())
    }
}

pub fn each_once(arrivals: &[Arrival], calls: u32) -> Result<(), String> {
    let mut numbers: Vec<u32> = arrivals.iter().map(|arrival| arrival.schedule).collect();
    numbers.sort_unstable();
    if numbers.iter().copied().eq(1..=calls) {
        return Ok(());
    }
    let arrived = numbers.len();
    numbers.dedup();
    Err(format!(
        "{arrived} arrived, {} different ones, of {calls}: a call was lost, doubled or invented",
        numbers.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(schedule: u32, at: i64) -> Arrival {
        Arrival { schedule, at, slot: 0, key: 0, lateness: 0.0 }
    }

    #[test]
    fn a_call_that_is_lost_or_doubled_is_seen() {
        let arrivals = |numbers: &[u32]| numbers.iter().map(|number| arrival(*number, 0)).collect::<Vec<_>>();
        assert!(each_once(&arrivals(&[3, 1, 2]), 3).is_ok());
        for bad in [&[1, 2][..], &[1, 2, 2], &[1, 2, 3, 3], &[0, 1, 2, 3]] {
            assert!(each_once(&arrivals(bad), 3).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn lateness_counts_from_the_second_of_a_call() {
        let arrivals = vec![arrival(1, 5_500_000), arrival(2, 5_500_000), arrival(3, 6_500_000)];
        let run = Run { begin: 5_000_000, arrivals };
        assert_eq!((run.lateness(2), run.lateness(3).1, run.rate()), ((0.5, 0), 0, 2.0));
        assert!(run.lateness(3).0 > 1.4, "the third call is late if all are due in one second");
        assert_eq!(run.lateness(1).1, 2, "two calls came before their seconds");
    }
}
