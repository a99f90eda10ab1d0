mod strategies;

use awty_core::Width;
use awty_core::slot::{DAY_SECONDS, effective};
use chrono::TimeDelta;
use proptest::prelude::*;
use strategies::{any_time, any_width};

proptest! {
    #[test]
    fn a_number_of_seconds_is_a_width_exactly_if_it_divides_a_day(seconds in -10_i64..100_000) {
        let divides = (1..=86_400).contains(&seconds) && 86_400 % seconds == 0;
        prop_assert_eq!(Width::new(seconds).is_ok(), divides);
    }

    #[test]
    fn rounding_is_never_early_and_less_than_one_slot_late(t in any_time(), width in any_width()) {
        let slot = width.round_up(t);
        prop_assert!(slot >= t);
        prop_assert!(slot - t < width.delta());
    }

    #[test]
    fn a_boundary_is_a_whole_number_of_widths_after_utc_midnight(t in any_time(), width in any_width()) {
        for boundary in [width.floor(t), width.round_up(t), width.after(t)] {
            let midnight = boundary.date_naive().and_time(chrono::NaiveTime::MIN).and_utc();
            let into_the_day = boundary - midnight;
            prop_assert_eq!(into_the_day.subsec_nanos(), 0);
            prop_assert_eq!(into_the_day.num_seconds() % i64::from(width.seconds()), 0);
        }
        prop_assert_eq!(DAY_SECONDS % width.seconds(), 0);
    }

    #[test]
    fn rounding_twice_is_rounding_once(t in any_time(), width in any_width()) {
        let slot = width.round_up(t);
        prop_assert_eq!(width.round_up(slot), slot);
        prop_assert_eq!(width.floor(slot), slot);
    }

    #[test]
    fn rounding_keeps_the_order(t in any_time(), later in 0_i64..200_000_000_000, width in any_width()) {
        let u = t + TimeDelta::microseconds(later);
        prop_assert!(width.floor(t) <= width.floor(u));
        prop_assert!(width.round_up(t) <= width.round_up(u));
        prop_assert!(width.after(t) <= width.after(u));
    }

    #[test]
    fn nothing_lies_between_a_boundary_and_the_next(t in any_time(), width in any_width()) {
        let (floor, after) = (width.floor(t), width.after(t));
        prop_assert!(floor <= t && t < after);
        prop_assert_eq!(after - floor, width.delta());
        prop_assert_eq!(width.round_up(t), if floor == t { floor } else { after });
    }

    #[test]
    fn a_due_slot_is_never_before_the_due_time_or_now(t in any_time(), now in any_time(), width in any_width()) {
        let slot = width.due(t, now);
        prop_assert!(slot >= t && slot >= now);
        prop_assert!(slot - t.max(now) <= width.delta());
        prop_assert!(t >= now || slot > now);
    }

    #[test]
    fn the_effective_width_is_never_finer_than_either(job in any_width(), server in any_width()) {
        let width = effective(Some(job), server);
        prop_assert!(width >= job && width >= server);
        prop_assert!(width == job || width == server);
        prop_assert_eq!(effective(None, server), server);
    }

    #[test]
    fn a_multiple_has_no_boundary_of_its_own(t in any_time(), coarse in any_width(), fine in any_width()) {
        if coarse.is_multiple_of(fine) {
            let slot = coarse.round_up(t);
            prop_assert_eq!(fine.round_up(slot), slot);
        }
    }
}
