#![allow(clippy::unwrap_used, clippy::expect_used)]

use awty_core::Mono;
use awty_core::log_rate::{APART, ENTRIES, LogRate, MINUTE, Passed};
use proptest::prelude::*;
use std::time::Duration;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn everything_is_told_once_and_seldom(
        steps in prop::collection::vec((0_u64..8_000, 1_u64..50, any::<bool>(), any::<bool>()), 1..300)
    ) {
        let mut rate = LogRate::QUIET;
        let mut now = Mono(0);
        let (mut happened, mut ended) = (0, 0);
        let (mut told, mut told_ends) = (0, 0);
        let mut entries: Vec<Mono> = Vec::new();
        for (wait, events, ends, asks) in steps {
            now = now.plus(Duration::from_millis(wait));
            if asks {
                if let Some(passed) = rate.summary(now) {
                    (told, told_ends) = (told + passed.events, told_ends + passed.ends);
                    entries.push(now);
                }
                continue;
            }
            let failed = Passed { events, ends: if ends { events } else { 0 } };
            (happened, ended) = (happened + events, ended + failed.ends);
            if let Some(passed) = rate.note(failed, now) {
                (told, told_ends) = (told + 1 + passed.events, told_ends + u64::from(ends) + passed.ends);
                entries.push(now);
            }
        }
        for pair in entries.windows(2) {
            prop_assert!(pair[1].since(pair[0]) >= APART, "{pair:?}");
        }
        // The rate limit counts each minute separately, so 60 seconds that overlap two minutes can have twice the
        // entries.
        for (place, first) in entries.iter().enumerate() {
            let within = entries[place..].iter().filter(|at| at.since(*first) < MINUTE).count();
            prop_assert!(within as u32 <= 2 * ENTRIES + 1, "{within} entries in a minute");
        }
        now = now.plus(MINUTE);
        if let Some(passed) = rate.summary(now) {
            (told, told_ends) = (told + passed.events, told_ends + passed.ends);
        }
        prop_assert_eq!((told, told_ends), (happened, ended));
    }
}
