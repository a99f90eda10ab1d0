mod strategies;

use awty_core::backoff::{self, MAX_RETRY_WAIT};
use awty_core::limits::{KeepHistory, Limits, OnMissed};
use awty_core::policy::{after, before, failed, schedule};
use awty_core::{After, Answer, Before, Check, Outcome, Time};
use chrono::TimeDelta;
use proptest::prelude::*;
use strategies::{any_time, any_width};

fn seconds(range: std::ops::Range<i64>) -> impl Strategy<Value = TimeDelta> {
    range.prop_map(TimeDelta::seconds)
}

fn any_limits() -> impl Strategy<Value = Limits> {
    let counts = (0_u32..6, 0_u32..5);
    let times = (seconds(1..4_000_000), seconds(1..100_000), prop::option::of(seconds(1..100_000)));
    let on_missed = prop::sample::select(OnMissed::ALL);
    (any_width(), counts, times, on_missed).prop_map(|(width, counts, times, on_missed)| Limits {
        width,
        timeout: TimeDelta::seconds(30),
        max_checks: counts.0,
        max_attempts: counts.1,
        max_horizon: times.0,
        retry_after: times.1,
        max_lateness: times.2,
        on_missed,
        keep_history: KeepHistory::All,
    })
}

fn any_check() -> impl Strategy<Value = (Check, Limits, Time)> {
    (any_time(), any_limits(), 0_u32..6, 0_u32..5, -200_000_i64..200_000).prop_map(
        |(t, limits, checks, attempt, off)| {
            let slot = limits.width.round_up(t);
            (Check { slot, check_count: checks, attempt }, limits, slot + TimeDelta::seconds(off))
        },
    )
}

fn near(base: Time, offset: i64) -> Time {
    base + TimeDelta::seconds(offset)
}

proptest! {
    #[test]
    fn limits_within_their_ranges_pass((_, limits, _) in any_check()) {
        prop_assert_eq!(limits.check(), Ok(()));
    }

    #[test]
    fn a_new_check_is_never_early_and_never_beyond_the_horizon(
        (_, limits, now) in any_check(), offset in -5_000_000_i64..5_000_000,
    ) {
        let t = near(now, offset);
        match schedule(t, &limits, now) {
            Ok(slot) => {
                prop_assert!(slot >= t && slot >= now && t <= now + limits.max_horizon);
                prop_assert!(slot - t.max(now) <= limits.width.delta());
            }
            Err(error) => {
                prop_assert!(t > now + limits.max_horizon);
                prop_assert_eq!(error.0, limits.max_horizon);
            }
        }
    }

    #[test]
    fn before_its_slot_a_check_is_left_alone((check, limits, now) in any_check(), able in any_time()) {
        let decision = before(&check, &limits, able, now);
        prop_assert_eq!(decision == Before::NotYet, now < check.slot);
    }

    #[test]
    fn only_an_outage_over_the_whole_slot_makes_a_miss(
        (check, limits, now) in any_check(), ago in -10_000_i64..200_000,
    ) {
        let able = now - TimeDelta::seconds(ago);
        let decision = before(&check, &limits, able, now);
        let missed = check.slot + limits.width.delta() <= able && able <= now;
        let late = limits.max_lateness.is_some_and(|most| now - check.slot > most);
        let expected = match (now >= check.slot, missed, limits.on_missed) {
            (false, ..) => Before::NotYet,
            (true, true, OnMissed::NextSlot) => Before::Move(limits.width.after(now)),
            (true, true, OnMissed::Skip) => Before::End(Outcome::Missed),
            _ if late => Before::End(Outcome::Expired),
            _ => Before::Run,
        };
        prop_assert_eq!(decision, expected);
        if let Before::Move(slot) = decision {
            prop_assert!(slot > now && slot > check.slot);
            let moved = Check { slot, ..check };
            prop_assert!(!matches!(before(&moved, &limits, able, slot), Before::Move(_) | Before::NotYet));
        }
    }

    #[test]
    fn every_next_check_is_progress_and_never_early(
        (check, limits, now) in any_check(), offset in -300_000_i64..5_000_000,
    ) {
        let t = near(check.slot, offset);
        match after(&check, &limits, Answer::Again(t), now) {
            After::Again(slot) => {
                prop_assert!(slot > check.slot && slot >= t && slot >= now);
                prop_assert!(t <= now + limits.max_horizon);
                prop_assert!(limits.max_checks == 0 || check.check_count + 1 < limits.max_checks);
                prop_assert_eq!(slot, limits.width.floor(slot));
            }
            After::End(Outcome::Past) => prop_assert!(t <= check.slot),
            After::End(Outcome::BeyondHorizon) => prop_assert!(t > now + limits.max_horizon),
            After::End(Outcome::Exhausted) => {
                prop_assert!(limits.max_checks > 0 && check.check_count + 1 >= limits.max_checks);
            }
            After::End(other) => prop_assert!(false, "ended as {other}"),
        }
    }

    #[test]
    fn a_failed_run_is_tried_again_later_or_ends_the_check((check, limits, now) in any_check(), timed_out: bool) {
        match failed(&check, &limits, timed_out, now) {
            After::Again(slot) => {
                prop_assert!(limits.max_attempts == 0 || check.attempt + 1 < limits.max_attempts);
                prop_assert!(slot > check.slot);
                prop_assert!(slot >= now + backoff::failed_run(limits.retry_after, check.attempt + 1));
                prop_assert_eq!(slot, limits.width.floor(slot));
            }
            After::End(outcome) => {
                prop_assert!(limits.max_attempts > 0 && check.attempt + 1 >= limits.max_attempts);
                prop_assert_eq!(outcome, if timed_out { Outcome::TimedOut } else { Outcome::Failed });
            }
        }
    }

    #[test]
    fn the_wait_between_attempts_never_shrinks(ms in 1_i64..31_622_400_000, failures in 1_u32..2000) {
        let retry_after = TimeDelta::milliseconds(ms);
        let wait = backoff::failed_run(retry_after, failures);
        prop_assert!(wait >= retry_after && wait <= MAX_RETRY_WAIT);
        prop_assert!(backoff::failed_run(retry_after, failures + 1) >= wait);
    }

    #[test]
    fn a_check_ends_within_max_checks_times_max_attempts_runs(
        (start, limits, _) in any_check(), answers in prop::collection::vec((0_u8..4, 1_i64..4000), 40),
    ) {
        let mut check = Check { check_count: 0, attempt: 0, ..start };
        let most = limits.max_checks * limits.max_attempts;
        let mut ended = None;
        let mut runs = 0;
        for (answer, offset) in answers {
            let now = check.slot + TimeDelta::seconds(offset);
            runs += 1;
            let next = match answer {
                0 => after(&check, &limits, Answer::Again(near(check.slot, offset)), now),
                _ => failed(&check, &limits, answer == 1, now),
            };
            match next {
                After::Again(slot) if answer == 0 => check = Check { slot, check_count: check.check_count + 1, attempt: 0 },
                After::Again(slot) => check = Check { slot, attempt: check.attempt + 1, ..check },
                After::End(outcome) => {
                    ended = Some(outcome);
                    break;
                }
            }
        }
        prop_assert!(most == 0 || runs <= most && ended.is_some());
        prop_assert!(!matches!(ended, Some(Outcome::Exhausted)) || limits.max_checks > 0);
    }
}
