#![allow(clippy::unwrap_used)] // a panic is how a test fails

use awty_core::repeat::jitter::{self, Jitter};
use awty_core::repeat::{Fixed, Plan, Repetition, Rhythm};
use awty_core::{Time, Width};
use chrono::TimeDelta;
use proptest::prelude::*;

const BEGIN: i64 = 1_790_000_000;

fn second(number: i64) -> Time {
    Time::from_timestamp(BEGIN + number, 0).unwrap()
}

const CRONS: [&str; 7] =
    ["* * * * *", "7 * * * *", "0,1,30 * * * *", "*/5 3,4 * * *", "0 0 * * *", "*/20 * * * * *", "0 0 29 2 *"];

fn any_rhythm() -> impl Strategy<Value = Rhythm> {
    prop_oneof![
        (1_i64..20_000).prop_map(|seconds| Rhythm::new(Some((0, 0, seconds * 1_000_000)), None).unwrap()),
        prop::sample::select(&CRONS[..]).prop_map(|text| Rhythm::new(None, Some(text)).unwrap()),
    ]
}

fn any_repetition() -> impl Strategy<Value = Repetition<Fixed>> {
    let at_most = prop_oneof![Just(0), 0_i64..100_000_000, 0_i64..20_000_000_000];
    let jitter = (any::<u64>(), at_most.prop_map(TimeDelta::microseconds));
    let widths = prop::sample::select(&[1, 10, 60, 60, 900, 3600, 86_400][..]);
    let width = widths.prop_map(|seconds| Width::new(seconds).unwrap());
    (any_rhythm(), jitter, width, prop::option::of(-5000_i64..5000), prop::option::of(3000_i64..90_000)).prop_map(
        |(rhythm, (hash, at_most), width, starts, ends)| Repetition {
            plan: Plan::new(rhythm, Fixed::UTC, starts.map(second), ends.map(second)),
            jitter: Jitter { hash, at_most },
            width,
            catch_up: TimeDelta::zero(),
        },
    )
}

fn slots(repetition: &Repetition<Fixed>, t: Time) -> impl Iterator<Item = (Time, Time)> {
    let moments = repetition.plan.moments(t - repetition.jitter.at_most - TimeDelta::days(2));
    moments.map(|moment| {
        let next = repetition.plan.next(moment).unwrap_or(Time::MAX_UTC);
        let Jitter { hash, at_most } = repetition.jitter;
        (moment, repetition.width.round_up(moment + jitter::delay(hash, at_most.min(next - moment))))
    })
}

#[test]
fn a_jitter_above_the_distance_spreads_entities_over_the_distance() {
    let mut counts = [0; 10];
    for key in 0..1_000 {
        let jitter = Jitter { hash: jitter::hash("http", "a", &key.to_string()), at_most: TimeDelta::minutes(1) };
        let plan = Plan::new(Rhythm::new(Some((0, 0, 10_000_000)), None).unwrap(), Fixed::UTC, None, None);
        let (width, catch_up) = (Width::new(1).unwrap(), TimeDelta::zero());
        let slot = Repetition { plan, jitter, width, catch_up }.slot_after(second(0)).unwrap();
        counts[usize::try_from((slot - second(0)).num_seconds() - 1).unwrap()] += 1;
    }
    // Each slot gets about 100 entities. The allowed difference of 47 is five standard deviations.
    assert!(counts.iter().all(|count| (53..=147).contains(count)), "{counts:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_next_slot_is_the_first_in_the_list(repetition in any_repetition(), t in 0_i64..90_000_000_000) {
        let t = second(0) + TimeDelta::microseconds(t);
        let expected = slots(&repetition, t).map(|(_, slot)| slot).find(|&slot| slot > t);
        prop_assert_eq!(repetition.slot_after(t), expected);
    }

    #[test]
    fn a_slot_is_never_before_its_moment_and_at_most_delay_and_width_after_it(
        repetition in any_repetition(), t in 0_i64..90_000,
    ) {
        let mut last = Time::MIN_UTC;
        for (moment, slot) in slots(&repetition, second(t)).take(50) {
            prop_assert_eq!(repetition.slot(moment), slot);
            prop_assert!(slot >= moment && slot - moment < repetition.jitter.at_most + repetition.width.delta());
            prop_assert_eq!(repetition.width.round_up(slot), slot);
            prop_assert!(slot >= last, "the order of slots is not that of moments");
            last = slot;
        }
    }

    #[test]
    fn the_last_moment_is_the_one_before_the_next(
        repetition in any_repetition(), since in -3_000_000_i64..90_000, length in 0_i64..3_000_000,
    ) {
        let (since, until) = (second(since), second(since + length));
        let plan = &repetition.plan;
        match plan.last(since, until) {
            Some(last) => {
                prop_assert!(since < last && last <= until && plan.contains(last));
                prop_assert!(plan.next(last).is_none_or(|next| next > until));
            }
            None => prop_assert!(plan.next(since).is_none_or(|next| next > until)),
        }
    }
}
