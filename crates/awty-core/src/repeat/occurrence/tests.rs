use super::*;
use crate::OnMissed;
use crate::repeat::jitter::Jitter;
use crate::repeat::{Change, Changes, Every, Fixed, Plan, Rhythm};
use crate::testing::{clock, limits, width};

fn quarters() -> Repetition<Fixed> {
    by(Rhythm::Every(Every::Clock(900_000_000)))
}

fn by(rhythm: Rhythm) -> Repetition<Fixed> {
    let plan = Plan::new(rhythm, Fixed::UTC, None, None);
    Repetition { plan, jitter: Jitter::default(), width: width(60), catch_up: TimeDelta::zero() }
}

fn daily(minutes: i64) -> Repetition<Fixed> {
    let rhythm = Rhythm::new(None, Some("0 9 * * *")).unwrap();
    let jitter = Jitter { hash: 1 << 63, at_most: TimeDelta::minutes(2 * minutes) };
    Repetition { jitter, ..by(rhythm) }
}

fn until_ten() -> Repetition<Fixed> {
    let every = Rhythm::Every(Every::Clock(900_000_000));
    Repetition { plan: Plan::new(every, Fixed::UTC, None, Some(clock("10:00:00"))), ..quarters() }
}

fn catching_up(minutes: i64) -> Repetition<Fixed> {
    Repetition { catch_up: TimeDelta::minutes(minutes), ..quarters() }
}

fn ten() -> Occurrence {
    Occurrence::new(clock("10:00:00"))
}

fn tomorrow(time: &str) -> Time {
    clock(time) + TimeDelta::days(1)
}

#[test]
fn a_new_repetition_begins_with_the_first_slot_after_now() {
    assert_eq!(quarters().begin(clock("10:00:00")), Some(clock("10:15:00")));
    assert_eq!(quarters().begin(clock("09:59:59")), Some(clock("10:00:00")));
    assert_eq!(until_ten().begin(clock("10:00:00")), None);
}

#[test]
fn slots_that_passed_during_the_run_are_left_out() {
    assert_eq!(quarters().next(&ten(), clock("10:00:01")), Some(clock("10:15:00")));
    assert_eq!(quarters().next(&ten(), clock("10:40:00")), Some(clock("10:45:00")));
    assert_eq!(quarters().next(&ten(), clock("10:45:00")), Some(clock("11:00:00")));
}

#[test]
fn with_catch_up_they_follow_one_after_the_other() {
    assert_eq!(catching_up(60).next(&ten(), clock("10:40:00")), Some(clock("10:15:00")));
    assert_eq!(catching_up(30).next(&ten(), clock("12:05:00")), Some(clock("11:45:00")));
    assert_eq!(catching_up(30).next(&ten(), clock("12:15:00")), Some(clock("12:00:00")));
}

#[test]
fn a_clock_that_was_set_back_repeats_no_slot() {
    assert_eq!(quarters().next(&ten(), clock("08:00:00")), Some(clock("10:15:00")));
    assert_eq!(catching_up(60).next(&ten(), clock("08:00:00")), Some(clock("10:15:00")));
    let extra = ten().replaced_at(clock("08:05:00"));
    assert_eq!(quarters().next(&extra, clock("08:05:01")), Some(clock("10:00:00")));
    let extra = ten().now(clock("08:05:00")).now(clock("07:00:00")).replaced_at(clock("06:00:00"));
    assert_eq!(quarters().next(&extra, clock("06:00:01")), Some(clock("10:00:00")));
    let extra = ten().followed_at(clock("08:05:00"));
    assert_eq!(quarters().next(&extra, clock("08:05:01")), Some(clock("10:15:00")));
    // The replaced check has already run, so its planned time (10:00) gets no second check.
    let begun = Occurrence { check: Check { slot: clock("10:05:00"), check_count: 1, attempt: 0 }, ..ten() };
    let extra = begun.replaced_at(clock("08:05:00"));
    assert_eq!(quarters().next(&extra, clock("08:05:01")), Some(clock("10:15:00")));
}

#[test]
fn a_slot_that_grows_repeats_no_moment() {
    let hours = Repetition { width: width(3600), ..quarters() };
    let quarter_past = Occurrence::new(clock("10:15:00"));
    assert_eq!(hours.next(&quarter_past, clock("10:15:01")), Some(clock("11:00:00")));
    let nine = Repetition { width: width(3600), ..by(Rhythm::new(None, Some("5 9 * * *")).unwrap()) };
    assert_eq!(nine.next(&Occurrence::new(clock("09:05:00")), clock("09:05:01")), Some(tomorrow("10:00:00")));
}

#[test]
fn a_slot_that_changes_loses_no_moment_to_check_now() {
    let nine = by(Rhythm::new(None, Some("5 9 * * *")).unwrap());
    let extra = Occurrence::new(clock("10:00:00")).now(clock("09:01:00"));
    for seconds in [60, 900, 3600] {
        let repetition = Repetition { width: width(seconds), ..nine.clone() };
        let slot = repetition.width.round_up(clock("09:05:00"));
        assert_eq!(repetition.next(&extra, clock("09:01:01")), Some(slot), "{seconds}");
    }
}

#[test]
fn a_missed_occurrence_follows_on_missed() {
    let (able, now) = (clock("10:20:00"), clock("10:50:00"));
    let before = |repetition: Repetition<Fixed>, on_missed| {
        repetition.before(&ten(), &Limits { on_missed, ..limits() }, able, now)
    };
    assert_eq!(before(catching_up(60), OnMissed::Run), Before::Run);
    let next = Some(clock("11:00:00"));
    assert_eq!(before(catching_up(60), OnMissed::Skip), Before::End { outcome: Outcome::Missed, next });
    assert_eq!(before(catching_up(60), OnMissed::NextSlot), Before::Replace(clock("11:00:00")));
    let over = Before::End { outcome: Outcome::Missed, next: None };
    assert_eq!(before(until_ten(), OnMissed::NextSlot), over);
    assert_eq!(before(until_ten(), OnMissed::Skip), over);
}

#[test]
fn an_occurrence_that_is_not_missed_runs_or_expires() {
    let able = clock("08:00:00");
    let late = Limits { max_lateness: Some(TimeDelta::minutes(5)), ..limits() };
    let before = |now| catching_up(60).before(&ten(), &late, able, now);
    assert_eq!(before(clock("09:59:59")), Before::NotYet);
    assert_eq!(before(clock("10:05:00")), Before::Run);
    let expired = Before::End { outcome: Outcome::Expired, next: Some(clock("10:15:00")) };
    assert_eq!(before(clock("10:40:00")), expired);
}

#[test]
fn a_time_before_the_next_occurrence_is_asked_for_within_this_one() {
    let (now, next) = (clock("10:00:05"), Some(clock("10:15:00")));
    let again = |t| quarters().after(&ten(), &limits(), Answer::Again(t), now);
    assert_eq!(again(clock("10:05:30")), After::Again(clock("10:06:00")));
    assert_eq!(again(clock("10:14:00")), After::Again(clock("10:14:00")));
    assert_eq!(quarters().after(&ten(), &limits(), Answer::Done, now), After::End { outcome: Outcome::Done, next });
    for t in [clock("10:14:01"), clock("10:15:00"), clock("23:00:00"), Time::MAX_UTC] {
        assert_eq!(again(t), After::End { outcome: Outcome::Done, next }, "{t}");
    }
}

#[test]
fn what_ends_an_occurrence_does_not_end_the_repetition() {
    let now = clock("10:00:05");
    let next = Some(clock("10:15:00"));
    let past = quarters().after(&ten(), &limits(), Answer::Again(clock("10:00:00")), now);
    assert_eq!(past, After::End { outcome: Outcome::Past, next });
    let last = Occurrence { check: Check { check_count: 4, ..ten().check }, ..ten() };
    let exhausted = quarters().after(&last, &limits(), Answer::Again(clock("10:05:00")), now);
    assert_eq!(exhausted, After::End { outcome: Outcome::Exhausted, next });
    let near = Limits { max_horizon: TimeDelta::minutes(2), ..limits() };
    let beyond = quarters().after(&ten(), &near, Answer::Again(clock("10:05:00")), now);
    assert_eq!(beyond, After::End { outcome: Outcome::BeyondHorizon, next });
}

#[test]
fn a_retry_that_would_not_come_before_the_next_occurrence_does_not_come() {
    let failed = |repetition: Repetition<Fixed>, attempt, timed_out| {
        let occurrence = Occurrence { check: Check { attempt, ..ten().check }, ..ten() };
        repetition.failed(&occurrence, &Limits { max_attempts: 9, ..limits() }, timed_out, clock("10:00:05"))
    };
    let next = Some(clock("10:15:00"));
    assert_eq!(failed(quarters(), 0, false), After::Again(clock("10:02:00")));
    assert_eq!(failed(quarters(), 3, true), After::Again(clock("10:09:00")));
    assert_eq!(failed(quarters(), 4, false), After::End { outcome: Outcome::Failed, next });
    assert_eq!(failed(quarters(), 4, true), After::End { outcome: Outcome::TimedOut, next });
    assert_eq!(failed(quarters(), 8, true), After::End { outcome: Outcome::TimedOut, next });
    let wait = Limits { retry_after: TimeDelta::seconds(870), ..limits() };
    let failed_once = quarters().failed(&ten(), &wait, false, clock("10:00:05"));
    assert_eq!(failed_once, After::End { outcome: Outcome::Failed, next });
    let minutes = by(Rhythm::Every(Every::Clock(60_000_000)));
    let next = Some(clock("10:01:00"));
    assert_eq!(failed(minutes, 0, false), After::End { outcome: Outcome::Failed, next });
}

#[test]
fn the_last_occurrence_is_tried_and_asked_again_as_any_check() {
    let now = clock("10:00:05");
    assert_eq!(until_ten().failed(&ten(), &limits(), false, now), After::Again(clock("10:02:00")));
    let again = until_ten().after(&ten(), &limits(), Answer::Again(clock("13:00:00")), now);
    assert_eq!(again, After::Again(clock("13:00:00")));
    let infinity = until_ten().after(&ten(), &limits(), Answer::Again(Time::MAX_UTC), now);
    assert_eq!(infinity, After::End { outcome: Outcome::BeyondHorizon, next: None });
    let done = until_ten().after(&ten(), &limits(), Answer::Done, now);
    assert_eq!(done, After::End { outcome: Outcome::Done, next: None });
}

#[test]
fn a_scheduled_check_before_the_slot_is_an_extra_run_and_one_after_it_postpones() {
    let extra = ten().replaced_at(clock("09:50:00"));
    assert_eq!(quarters().next(&extra, clock("09:50:01")), Some(clock("10:00:00")));
    let later = ten().replaced_at(clock("10:20:00"));
    assert_eq!(quarters().next(&later, clock("10:20:01")), Some(clock("10:30:00")));
}

#[test]
fn check_now_uses_no_slot_up() {
    let (now, counted) = (clock("09:50:07"), Check { check_count: 0, attempt: 0, slot: clock("10:00:00") });
    let extra = ten().now(now);
    assert_eq!((extra.first, extra.check), (now, Check { slot: now, ..counted }));
    assert_eq!(quarters().next(&extra, clock("09:50:08")), Some(clock("10:00:00")));
    assert_eq!(quarters().next(&extra, clock("10:00:00")), Some(clock("10:15:00")));
}

#[test]
fn check_now_of_what_is_due_moves_only_the_next_time() {
    let retried = Occurrence { check: Check { slot: clock("10:08:00"), check_count: 1, attempt: 2 }, ..ten() };
    let moved = retried.now(clock("10:03:00"));
    let check = Check { slot: clock("10:03:00"), ..retried.check };
    assert_eq!(moved, Occurrence { check, ..retried });
    assert_eq!(quarters().next(&moved, clock("10:03:01")), Some(clock("10:15:00")));
}

#[test]
fn another_plan_begins_with_its_first_slot_after_now() {
    let pending = Occurrence::new(clock("09:00:00"));
    let change = daily(0).replaced_by(&quarters(), &pending, clock("08:20:00"));
    assert_eq!(change, Change::Moves(Some(clock("08:30:00"))));
    let change = quarters().replaced_by(&daily(0), &ten(), clock("09:50:00"));
    assert_eq!(change, Change::Moves(Some(tomorrow("09:00:00"))));
    let change = quarters().replaced_by(&until_ten(), &Occurrence::new(clock("10:15:00")), clock("10:10:00"));
    assert_eq!(change, Change::Moves(None));
}

#[test]
fn an_occurrence_that_is_due_stays_when_the_plan_changes() {
    let change = daily(0).replaced_by(&quarters(), &Occurrence::new(clock("09:00:00")), clock("09:00:00"));
    assert_eq!(change, Change::Stays { passed: None });
    let begun = Occurrence { check: Check { slot: clock("10:08:00"), check_count: 0, attempt: 1 }, ..ten() };
    let change = quarters().replaced_by(&daily(0), &begun, clock("09:00:00"));
    assert_eq!(change, Change::Stays { passed: None });
}

#[test]
fn a_longer_jitter_does_not_double_what_has_ended() {
    let change = daily(5).replaced_by(&daily(30), &Occurrence::new(tomorrow("09:05:00")), clock("09:10:00"));
    assert_eq!(change, Change::Moves(Some(tomorrow("09:30:00"))));
}

#[test]
fn a_longer_jitter_does_not_double_what_is_due() {
    let pending = Occurrence::new(clock("09:05:00"));
    let change = daily(5).replaced_by(&daily(30), &pending, clock("09:06:00"));
    assert_eq!(change, Change::Stays { passed: Some(Passed::Through(clock("09:30:00"))) });
    let stays = Occurrence { passed: Some(Passed::Through(clock("09:30:00"))), ..pending };
    assert_eq!(daily(30).next(&stays, clock("09:07:00")), Some(tomorrow("09:30:00")));
    let change = daily(5).replaced_by(&daily(30), &pending, clock("10:40:00"));
    assert_eq!(change, Change::Stays { passed: Some(Passed::Through(clock("09:30:00"))) });
    let catching_up = Repetition { catch_up: TimeDelta::hours(2), ..daily(30) };
    assert_eq!(catching_up.next(&stays, clock("10:41:00")), Some(tomorrow("09:30:00")));
}

#[test]
fn a_shorter_jitter_does_not_lose_what_is_pending() {
    let pending = Occurrence::new(clock("09:30:00"));
    let change = daily(30).replaced_by(&daily(5), &pending, clock("09:10:10"));
    assert_eq!(change, Change::Moves(Some(clock("09:11:00"))));
    let change = daily(30).replaced_by(&daily(5), &pending, clock("09:02:00"));
    assert_eq!(change, Change::Moves(Some(clock("09:05:00"))));
    let eight = Repetition { ..by(Rhythm::new(None, Some("0 8 * * *")).unwrap()) };
    assert_eq!(daily(30).replaced_by(&eight, &pending, clock("09:10:00")), Change::Moves(Some(tomorrow("08:00:00"))));
}

#[test]
fn a_check_that_a_client_has_put_there_gives_way_to_another_plan_too() {
    let postponed = ten().replaced_at(clock("10:50:00"));
    let change = quarters().replaced_by(&daily(0), &postponed, clock("10:20:00"));
    assert_eq!(change, Change::Moves(Some(tomorrow("09:00:00"))));
}

#[test]
fn with_new_zone_data_a_pending_occurrence_moves_to_the_nearest_slot() {
    let plan = |offset| {
        let rhythm = Rhythm::new(None, Some("0 9 * * *")).unwrap();
        let plan = Plan::new(rhythm, Changes::new(offset, vec![]), None, None);
        Repetition { plan, jitter: Jitter::default(), width: width(60), catch_up: TimeDelta::zero() }
    };
    let pending = Occurrence::new(clock("09:00:00"));
    let moved = |offset, now| plan(offset).with_new_zone_data(&pending, clock(now));
    assert_eq!(moved(0, "06:00:00"), clock("09:00:00"));
    assert_eq!(moved(3600, "06:00:00"), clock("08:00:00"));
    assert_eq!(moved(-3600, "06:00:00"), clock("10:00:00"));
    assert_eq!(moved(3600, "08:30:10"), clock("08:31:00"));
    assert_eq!(moved(3600, "09:00:00"), clock("09:00:00"));
    let extra = Occurrence::new(clock("12:00:00")).replaced_at(clock("09:00:00"));
    assert_eq!(plan(3600).with_new_zone_data(&extra, clock("06:00:00")), clock("09:00:00"));
    let over = Repetition {
        plan: Plan::new(
            Rhythm::new(None, Some("0 9 1 1 *")).unwrap(),
            Changes::new(0, vec![]),
            None,
            Some(clock("00:00:00")),
        ),
        ..plan(0)
    };
    assert_eq!(over.with_new_zone_data(&pending, clock("06:00:00")), clock("09:00:00"));
}
