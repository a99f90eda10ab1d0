use super::*;
use proptest::prelude::*;

fn values() -> impl Strategy<Value = Vec<Option<f64>>> {
    prop::collection::vec(prop::option::of(0.0..1e9), 0..=MOST)
}

fn covered(path: &str) -> Vec<usize> {
    let mut buckets = Vec::new();
    let number = |text: &str| text.split(['V', 'H', ' ']).next().unwrap().parse::<usize>().unwrap();
    for part in path.split('M').filter(|part| !part.is_empty()) {
        let last = part.rsplit('H').next().unwrap();
        buckets.extend(number(part)..number(last));
    }
    buckets
}

proptest! {
    #[test]
    fn a_range_has_at_most_360_buckets_and_ends_with_now(now in -1e10 as i64..1e10 as i64, step in 0_i64..100_000, count in 0_usize..10_000) {
        let range = Range::until(now, step, count);
        prop_assert!(range.count >= 1 && range.count <= MOST);
        prop_assert!(range.from % range.step == 0 && range.from <= now && now < range.end());
        prop_assert_eq!(range.bucket(now), Some(range.count - 1));
        prop_assert_eq!((range.bucket(range.from - 1), range.bucket(range.end())), (None, None));
    }

    #[test]
    fn no_value_is_lost_and_none_is_made_up(times in prop::collection::vec(0_i64..10_000, 0..500), step in 1_i64..100) {
        let range = Range { from: 1_000 - 1_000 % step, step, count: 60 };
        let placed = range.place(times.iter().map(|at| (*at, 1_i64)), |a, b| a + b);
        let inside = times.iter().filter(|at| **at >= range.from && **at < range.end()).count();
        prop_assert_eq!(placed.iter().flatten().sum::<i64>(), i64::try_from(inside).unwrap());
        for (bucket, value) in placed.iter().enumerate() {
            let there = times.iter().any(|at| *at >= range.at(bucket) && *at < range.at(bucket + 1));
            prop_assert_eq!(there, value.is_some());
        }
    }

    #[test]
    fn a_line_covers_its_numbers_and_leaves_its_gaps(values in values()) {
        let top = top(values.iter().flatten().copied().fold(0.0, f64::max));
        let wanted: Vec<usize> = (0..values.len()).filter(|x| values[*x].is_some()).collect();
        prop_assert_eq!(covered(&line(&values, top)), wanted);
    }

    #[test]
    fn the_top_is_round_and_high_enough(highest in 1e-6_f64..1e12) {
        let top = top(highest);
        prop_assert!(top >= highest && top <= highest * 2.5 * (1.0 + 1e-9), "{highest} {top}");
    }

    #[test]
    fn a_stack_stays_within_the_chart_and_keeps_its_sum(a in values(), b in values()) {
        let count = a.len().min(b.len());
        let series = [a[..count].to_vec(), b[..count].to_vec()];
        let sum = |x: usize| series.iter().filter_map(|values| values[x]).sum::<f64>();
        let top = top((0..count).map(sum).fold(0.0, f64::max));
        let blocks = stack(&series, top);
        for block in blocks.iter().flatten() {
            prop_assert!(block.y >= -1e-9 && block.high >= 0.0 && block.y + block.high <= HIGH + 1e-9);
        }
        for x in 0..count {
            let high: f64 = blocks.iter().flatten().filter(|block| block.x == x).map(|block| block.high).sum();
            prop_assert!((high - sum(x) / top * HIGH).abs() < 1e-6, "{high}");
        }
    }
}

#[test]
fn a_number_that_is_no_number_breaks_no_chart() {
    assert_eq!((top(f64::NAN), top(f64::INFINITY), top(-1.0), top(0.0)), (1.0, 1.0, 1.0, 1.0));
    assert_eq!(line(&[Some(f64::NAN), None, Some(f64::INFINITY)], 1.0), "M0 100.0H1M2 100.0H3");
    assert_eq!(line(&[], 1.0), "");
}
