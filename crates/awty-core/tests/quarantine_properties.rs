//! Property tests: roles take turns to run checks that may have crashed the server (promises P5 and P7 in
//! docs/promises.md).

#![allow(clippy::unwrap_used, clippy::expect_used)]

use awty_core::Mono;
use awty_core::quarantine::{ALONE, Quarantine, TURN};
use proptest::prelude::*;
use std::time::Duration;

const ASKS_EVERY: u64 = 250;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn nobody_enters_beside_one_who_has_just_entered(
        steps in prop::collection::vec((0_usize..6, 0_u64..3, 0_u64..400, any::<bool>()), 1..200)
    ) {
        let mut quarantine = Quarantine::EMPTY;
        let mut now = Mono(0);
        let mut last: Option<(usize, Mono)> = None;
        for (place, role, wait, leaves) in steps {
            now = now.plus(Duration::from_millis(wait));
            if leaves {
                quarantine.leave(place);
                last = last.filter(|(inside, _)| *inside != place);
            } else if quarantine.enter(place, role, now) {
                let beside = last.is_some_and(|(inside, since)| inside != place && now < since.plus(ALONE));
                prop_assert!(!beside, "{place} entered at {now:?} beside {last:?}");
                last = Some((place, now));
            }
        }
    }

    #[test]
    fn a_role_waits_for_another_one_no_longer_than_a_turn_and_a_beginning(
        lengths in prop::collection::vec(1_u64..5_000, 64), start in 0_u64..1_000
    ) {
        let mut quarantine = Quarantine::EMPTY;
        let mut busy_until = [0_u64; 2];
        let mut lengths = lengths.into_iter().cycle();
        let at = |ms: u64| Mono(0).plus(Duration::from_millis(ms));
        let bound = start + (TURN + ALONE).as_millis() as u64 + 2 * ASKS_EVERY;
        let mut entered = None;
        for ms in 0..=bound {
            for (place, until) in busy_until.iter_mut().enumerate() {
                if *until == ms {
                    quarantine.leave(place);
                }
                if *until <= ms && quarantine.enter(place, 1, at(ms)) {
                    *until = ms + lengths.next().unwrap();
                }
            }
            if ms >= start && (ms - start) % ASKS_EVERY == 0 && quarantine.enter(9, 2, at(ms)) {
                entered = Some(ms);
                break;
            }
        }
        prop_assert!(entered.is_some(), "asked since {start}, and not in by {bound}");
    }
}
