use awty_core::plan::{MAX_SLEEP, MIN_SLEEP, Plan, plan};
use awty_core::{Caps, Mono, Role, Time, TokenBucket};
use chrono::TimeDelta;
use proptest::prelude::*;
use std::time::Duration;

const MONO: Mono = Mono(1_000_000_000);
const NOW: Time = Time::UNIX_EPOCH;

fn around() -> std::ops::Range<i64> {
    -2500..2500
}

fn any_role() -> impl Strategy<Value = Role> {
    let hints = (prop::option::of(around()), prop::option::of(-2500_i64..=0), prop::option::of(around()));
    let workers = (prop_oneof![Just(0_u32), 0_u32..4], prop_oneof![3 => Just(0_u32), 1 => 0_u32..4], any::<bool>());
    (hints, workers, 0_u64..6).prop_map(|((due, behind, parked), (workers, stuck, asks), last_served)| Role {
        wants_help: asks && workers > 0,
        due: due.map(|ms| NOW + TimeDelta::milliseconds(ms)),
        behind_since: behind.filter(|_| workers > 0).map(|ms| Mono(MONO.0 + ms * 1000)),
        workers,
        stuck,
        parked_until: parked.map(|ms| Mono(MONO.0 + ms * 1000)),
        last_served,
    })
}

fn any_launcher() -> impl Strategy<Value = (Vec<Role>, Caps)> {
    let caps =
        (0_u32..20, 1_u32..4, 0_u32..4, 0_i64..500).prop_map(|(max_workers, max_workers_per_role, elsewhere, lead)| {
            Caps { max_workers, max_workers_per_role, elsewhere, lead: TimeDelta::milliseconds(lead) }
        });
    (prop::collection::vec(any_role(), 0..12), caps)
}

fn wants_worker(role: &Role, caps: &Caps, micros: i64) -> bool {
    let (now, mono) = (NOW + TimeDelta::microseconds(micros), Mono(MONO.0 + micros));
    let due = role.due.is_some_and(|due| due - caps.lead <= now);
    let parked = role.parked_until.is_some_and(|end| end > mono);
    let behind = role.behind_since.is_some_and(|since| mono.since(since) >= Duration::from_secs(1));
    let has_room = role.workers + role.stuck < caps.max_workers_per_role;
    due && !parked && has_room && (role.workers == 0 || behind || role.wants_help)
}

fn planned((roles, caps): &(Vec<Role>, Caps)) -> Plan {
    plan(NOW, MONO, roles, caps)
}

proptest! {
    #[test]
    fn no_cap_is_ever_exceeded(launcher in any_launcher()) {
        let (roles, caps) = &launcher;
        let start = planned(&launcher).start;
        let busy: u32 = caps.elsewhere + roles.iter().map(|role| role.workers).sum::<u32>();
        prop_assert!(start.is_empty() || busy as usize + start.len() <= caps.max_workers as usize);
        for index in &start {
            prop_assert!(roles[*index].workers + roles[*index].stuck < caps.max_workers_per_role);
            prop_assert_eq!(start.iter().filter(|other| *other == index).count(), 1);
        }
    }

    #[test]
    fn exactly_those_start_that_want_a_worker_and_for_whom_there_is_one(launcher in any_launcher()) {
        let (roles, caps) = &launcher;
        let start = planned(&launcher).start;
        for index in &start {
            prop_assert!(wants_worker(&roles[*index], caps, 0));
        }
        let (helped, alone): (Vec<&Role>, Vec<&Role>) =
            roles.iter().filter(|role| wants_worker(role, caps, 0)).partition(|role| role.workers > 0);
        let busy: u32 = caps.elsewhere + roles.iter().map(|role| role.workers).sum::<u32>();
        let free = caps.max_workers.saturating_sub(busy) as usize;
        let kept = usize::from(caps.max_workers > caps.max_workers_per_role);
        let first = alone.len().min(free);
        prop_assert_eq!(start.len(), first + helped.len().min((free - first).saturating_sub(kept)));
    }

    #[test]
    fn a_parked_role_is_never_started(launcher in any_launcher()) {
        for index in planned(&launcher).start {
            prop_assert!(launcher.0[index].parked_until.is_none_or(|end| end <= MONO));
        }
    }

    #[test]
    fn the_longest_unserved_starts_first_and_helpers_last(launcher in any_launcher()) {
        let (roles, caps) = &launcher;
        let start = planned(&launcher).start;
        let rank = |index: usize| (roles[index].workers > 0, roles[index].last_served, roles[index].due);
        prop_assert!(start.is_sorted_by_key(|&index| rank(index)));
        for passed_over in (0..roles.len()).filter(|index| !start.contains(index)) {
            if wants_worker(&roles[passed_over], caps, 0) {
                prop_assert!(start.iter().all(|&index| rank(index) <= rank(passed_over)));
            }
        }
    }

    #[test]
    fn those_wait_that_are_due_and_got_no_worker(launcher in any_launcher()) {
        let (roles, caps) = &launcher;
        let plan = planned(&launcher);
        let without_lead = Caps { lead: TimeDelta::zero(), ..*caps };
        let waiting = roles.iter().enumerate().filter(|(index, role)| {
            role.workers == 0 && wants_worker(role, &without_lead, 0) && !plan.start.contains(index)
        });
        prop_assert_eq!(plan.waiting as usize, waiting.count());
    }

    #[test]
    fn it_wakes_within_a_second_and_before_anything_changes(launcher in any_launcher()) {
        let (roles, caps) = &launcher;
        let wake_in = planned(&launcher).wake_in;
        prop_assert!((MIN_SLEEP..=MAX_SLEEP).contains(&wake_in));
        let just_before = wake_in.as_micros() as i64 - 1;
        if wake_in > MIN_SLEEP {
            for role in roles {
                prop_assert_eq!(wants_worker(role, caps, just_before), wants_worker(role, caps, 0));
            }
        }
    }

    #[test]
    fn it_sleeps_until_something_changes(launcher in any_launcher()) {
        let (roles, caps) = &launcher;
        let wake_in = planned(&launcher).wake_in;
        let at_wake = wake_in.as_micros() as i64;
        let exactly = Caps { lead: TimeDelta::zero(), ..*caps };
        let changes = roles.iter().any(|role| {
            wants_worker(role, caps, at_wake) != wants_worker(role, caps, 0)
                || wants_worker(role, &exactly, at_wake) != wants_worker(role, &exactly, 0)
        });
        prop_assert!(changes || wake_in == MAX_SLEEP);
    }

    #[test]
    fn a_bucket_never_grants_more_than_its_rate_over_any_stretch(
        rate in 1_u32..2000, takes in prop::collection::vec((0_i64..1_500_000, 0_u32..3000), 1..40),
    ) {
        let mut bucket = TokenBucket::full(MONO);
        let mut mono = MONO;
        let mut granted = Vec::new();
        for (wait, want) in takes {
            mono = mono.plus(Duration::from_micros(wait.unsigned_abs()));
            let grant = bucket.take(rate, want, mono);
            prop_assert!(grant <= want);
            granted.push((mono, u64::from(grant)));
        }
        for (i, (from, _)) in granted.iter().enumerate() {
            let mut sum = 0;
            for (to, grant) in &granted[i..] {
                sum += grant;
                let worth = u64::from(rate) * (to.since(*from).as_micros() as u64 + 1_000_000) / 1_000_000;
                prop_assert!(sum <= worth, "{sum} granted, {worth} allowed");
            }
        }
    }

    #[test]
    fn a_bucket_that_is_always_emptied_grants_exactly_its_rate(
        // Each wait is shorter than a second, so that the bucket does not overflow and lose tokens.
        rate in 10_u32..2000, waits in prop::collection::vec(0_i64..900_000, 1..40),
    ) {
        let mut bucket = TokenBucket::full(MONO);
        let mut granted = u64::from(bucket.take(rate, u32::MAX, MONO));
        let mut mono = MONO;
        for wait in waits {
            mono = mono.plus(Duration::from_micros(wait.unsigned_abs()));
            granted += u64::from(bucket.take(rate, u32::MAX, mono));
            prop_assert_eq!(bucket.take(rate, 1, mono), 0);
        }
        let rate = u64::from(rate);
        prop_assert_eq!(granted, rate + rate * mono.since(MONO).as_micros() as u64 / 1_000_000);
    }

    #[test]
    fn a_bucket_says_exactly_when_it_grants_again(rate in 1_u32..2000, spent in 0_u32..4000) {
        let mut bucket = TokenBucket::full(MONO);
        bucket.take(rate, spent, MONO);
        let wait = bucket.ready_in(rate, MONO);
        let mut at_wait = bucket;
        prop_assert_eq!(at_wait.take(rate, 1, MONO.plus(wait)), 1);
        if wait > Duration::ZERO {
            prop_assert_eq!(bucket.take(rate, 1, Mono(MONO.plus(wait).0 - 1)), 0);
        }
    }
}
