use super::*;

fn at(second: i64) -> Time {
    DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
}

fn effect(check: i64, check_count: i32, xid: i64) -> Effect {
    let slot = at(i64::from(check_count) * 10);
    Effect {
        check,
        check_count,
        slot,
        began: slot,
        xid,
        act: "ok".into(),
        bad: false,
        own: false,
        committed: Some(slot),
    }
}

fn ended(check: i64, check_count: i32, outcome: &str, xmin: i64) -> Ended {
    let slot = at(i64::from(check_count.max(1) - 1) * 10);
    let outcome = outcome.to_owned();
    Ended {
        check,
        check_count,
        first_slot: at(0),
        slot,
        started: Some(slot),
        outcome,
        run_time: 0.2,
        attempts: check_count.max(1),
        timeout: Some(6.0),
        sqlstate: None,
        is_moved: false,
        message: None,
        xmin,
        committed: Some(at(100)),
    }
}

/// Check 1 is done, check 2 is pending, check 3 was cancelled, check 4 replaced itself, and check 5 failed.
fn truth() -> Evidence {
    let own = Effect { own: true, ..effect(4, 0, 104) };
    let next = Pending {
        check: 2,
        check_count: 1,
        attempt: 0,
        first_slot: at(0),
        held: false,
        is_handled: false,
        act: "ok".into(),
        xmin: 102,
    };
    Evidence {
        effects: vec![effect(1, 0, 90), effect(1, 1, 101), effect(2, 0, 102), effect(3, 0, 93), own],
        pending: vec![next],
        ended: vec![
            ended(1, 2, "done", 101),
            ended(3, 1, "cancelled", 103),
            ended(4, 1, "done", 104),
            ended(5, 0, "failed", 105),
        ],
        placed: (1..=5).map(|check| Placed { check, wanted: Some(at(0)) }).collect(),
        told: vec![Told::Placed { check: 1 }, Told::Cancelled { xid: 103, count: 1, at: at(101) }],
        struck: Vec::new(),
        overlaps: 0,
        early: 0,
        leaks: 0,
        fillers: [7, 7],
        ledger: Vec::new(),
        repeated: Repeated::default(),
        deadlines: Vec::new(),
        watched: Watched::default(),
        left: Some(Left { stats: Vec::new(), in_flight: 1, workers: 1, origins: 1, leases: 0 }),
        clock_was_set: false,
    }
}

fn broken(falsify: impl FnOnce(&mut Evidence)) -> Vec<&'static str> {
    let mut evidence = truth();
    falsify(&mut evidence);
    let mut promises: Vec<_> = judge(&evidence).into_iter().map(|violation| violation.promise).collect();
    promises.dedup();
    promises
}

#[test]
fn a_repetition_has_its_check_and_books_each_slot_once() {
    assert_eq!(broken(|evidence| evidence.repeated.alone.push("one".into())), ["P11"]);
    assert_eq!(broken(|evidence| evidence.repeated.doubled.push("two".into())), ["P11"]);
    let set_back = |evidence: &mut Evidence| {
        evidence.clock_was_set = true;
        evidence.repeated.doubled.push("two".into());
    };
    assert_eq!(broken(set_back), [""; 0]);
}

#[test]
fn an_alert_too_many_or_too_few_is_seen() {
    assert_eq!(broken(|evidence| evidence.watched.wrong.push("one".into())), ["P12"]);
    assert_eq!(broken(|evidence| evidence.watched.missed.push("two".into())), ["P12"]);
    for promise in PROMISES {
        assert_eq!(broken(|evidence| evidence.deadlines.push((promise.into(), "three".into()))), [promise]);
    }
    assert_eq!(broken(|evidence| evidence.repeated.closed.push("four".into())), ["P11"]);
}

#[test]
fn the_truth_is_believed() {
    assert_eq!(judge(&truth()), []);
}

#[test]
fn an_effect_too_many_or_too_few_is_seen() {
    assert_eq!(broken(|e| e.effects.push(effect(1, 1, 101))), ["P1"]);
    assert_eq!(broken(|e| drop(e.effects.remove(0))), ["P1"]);
    assert_eq!(broken(|e| e.effects.push(effect(2, 1, 110))), ["P1"]);
    assert_eq!(broken(|e| e.effects.push(effect(77, 0, 110))), ["P1"]);
    assert_eq!(broken(|e| e.effects.push(effect(5, 0, 110))), ["P1"]);
    assert_eq!(broken(|e| e.effects[0].bad = true), ["P1"]);
}

#[test]
fn two_transactions_for_one_run_are_seen() {
    assert_eq!(broken(|e| e.ended[0].xmin = 111), ["P1"]);
    assert_eq!(broken(|e| e.pending[0].xmin = 111), ["P1"]);
    assert_eq!(broken(|e| e.ended[2].xmin = 111), ["P1"]);
    assert_eq!(broken(|e| e.ended[2].outcome = "replaced".into()), ["P4"]);
}

#[test]
fn an_early_run_is_seen() {
    assert_eq!(broken(|e| e.effects[1].began -= chrono::TimeDelta::seconds(1)), ["P2"]);
    assert_eq!(broken(|e| e.ended[0].started = Some(at(9))), ["P2"]);
    assert_eq!(broken(|e| e.placed[0].wanted = Some(at(1))), ["P2"]);
    let before = |e: &mut Evidence, by| {
        e.effects[0].slot -= by;
        e.effects[0].began -= by;
    };
    assert_eq!(broken(|e| before(e, chrono::TimeDelta::seconds(1))), ["P2"]);
    assert_eq!(broken(|e| before(e, chrono::TimeDelta::milliseconds(1_500))), [""; 0]);
    assert_eq!(broken(|e| e.early = 1), ["P2"]);
}

#[test]
fn a_check_that_is_lost_or_doubled_is_seen() {
    assert_eq!(broken(|e| drop(e.ended.pop())), ["P3"]);
    assert_eq!(broken(|e| e.ended.push(ended(5, 0, "failed", 112))), ["P3"]);
    assert_eq!(broken(|e| e.placed.clear()).first(), Some(&"P3"));
    assert_eq!(broken(|e| e.told.push(Told::Placed { check: 8 })), ["P3"]);
    assert_eq!(broken(|e| e.told.push(Told::Cancelled { xid: 113, count: 1, at: at(0) })), ["P3"]);
}

#[test]
fn who_is_held_without_guilt_is_seen() {
    assert_eq!(broken(|e| e.pending[0].held = true), ["P7"]);
    let struck = |times| move |e: &mut Evidence| (e.pending[0].held, e.struck) = (true, vec![9; times]);
    assert_eq!((broken(struck(1)), broken(struck(2))), (vec!["P7"], vec![]));
    assert_eq!(broken(|e| (e.pending[0].held, e.pending[0].act) = (true, "crash".into())), [""; 0]);
}

#[test]
fn what_a_run_commits_after_its_check_was_cancelled_is_seen() {
    assert_eq!(broken(|e| e.effects.push(effect(3, 1, 110))), ["P4"]);
    assert_eq!(broken(|e| e.ended[1].committed = Some(at(-1))), ["P4"]);
    assert_eq!(broken(|e| e.told[1] = Told::Cancelled { xid: 103, count: 1, at: at(-1) }), ["P4"]);
    assert_eq!(broken(|e| e.overlaps = 1), ["P4"]);
}

#[test]
fn what_a_run_commits_after_its_check_was_replaced_is_seen() {
    assert_eq!(broken(|e| e.effects[0].committed = Some(at(101))), ["P4"]);
    let replaced = |e: &mut Evidence| e.ended[1].outcome = "replaced".into();
    assert_eq!(broken(|e| (replaced(e), e.told.pop()).0), [""; 0]);
    assert_eq!(broken(|e| (replaced(e), e.told.pop(), e.effects[3].committed = Some(at(101))).0), ["P4"]);
    assert_eq!(broken(|e| (replaced(e), e.told.pop(), e.effects.push(effect(3, 1, 110))).0), ["P4"]);
}

#[test]
fn a_run_that_begins_before_the_one_before_it_has_ended_is_seen() {
    assert_eq!(broken(|e| e.effects[0].committed = Some(at(11))), ["P4"]);
}

#[test]
fn what_a_run_leaves_to_the_next_is_seen() {
    assert_eq!(broken(|e| e.leaks = 1), ["P6"]);
}

#[test]
fn a_run_that_takes_too_long_is_seen() {
    assert_eq!(broken(|e| e.ended[3].run_time = 18.9), [""; 0]);
    assert_eq!(broken(|e| e.ended[3].run_time = 19.1), ["P8"]);
    assert_eq!(broken(|e| e.ended[3].message = Some("this run was not cancelled in time".into())), ["P8"]);
}

#[test]
fn where_the_clock_was_set_times_accuse_nobody() {
    let set = |e: &mut Evidence| e.clock_was_set = true;
    assert_eq!(broken(|e| (set(e), e.effects[0].committed = Some(at(101))).0), [""; 0]);
    assert_eq!(broken(|e| (set(e), e.effects.push(effect(3, 1, 110))).0), ["P4"]);
}

#[test]
fn a_filler_check_that_is_lost_or_comes_back_is_seen() {
    assert_eq!(broken(|e| e.fillers[1] = 6), ["P3"]);
    assert_eq!(broken(|e| e.fillers[1] = 8), ["P3"]);
}

#[test]
fn rows_that_are_left_over_in_awtys_own_tables_are_seen() {
    let left = |spoil: fn(&mut Left)| broken(move |e| spoil(e.left.as_mut().unwrap()));
    assert_eq!(left(|left| left.stats.push(1)), ["tidiness"]);
    assert_eq!(left(|left| left.workers = 0), ["tidiness"]);
    assert_eq!(left(|left| left.origins = 2), ["tidiness"]);
    assert_eq!(left(|left| left.leases = 1), ["tidiness"]);
    assert_eq!(left(|left| left.in_flight = 0), [""; 0]);
    assert_eq!(broken(|e| e.left = None), [""; 0]);
}

#[test]
fn a_check_that_ends_with_an_internal_error_is_seen() {
    let failed_with = |state: &'static str| broken(move |e| e.ended[3].sqlstate = Some(state.into()));
    assert_eq!((failed_with("XX001"), failed_with("P0001")), (vec!["integrity"], vec![]));
}
