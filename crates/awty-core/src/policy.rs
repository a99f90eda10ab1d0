//! Decides what happens to a check before and after a run.
//!
//! Invariant: every answer ends the check or moves the check to a later time. A check ends after at most `max_checks` ×
//! `max_attempts` runs, unless one of these limits is 0 (no limit).

use crate::backoff;
use crate::lateness::lateness;
use crate::{Limits, OnMissed, Outcome, Time, later};
use chrono::TimeDelta;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// Stored in the column `next_check_at`.
    pub slot: Time,
    pub check_count: u32,
    /// Number of failed runs in a row.
    pub attempt: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    NotYet,
    Run,
    Move(Time),
    End(Outcome),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Done,
    Met,
    /// [`Time::MAX_UTC`] means `infinity`. [`Time::MIN_UTC`] means `-infinity`.
    Again(Time),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failed {
    pub timed_out: bool,
    pub is_final: bool,
    pub retry_at: Option<Time>,
    /// Random change of the wait before the next attempt, in thousandths of the wait.
    pub spread: i32,
}

impl From<bool> for Failed {
    fn from(timed_out: bool) -> Self {
        Self { timed_out, ..Self::default() }
    }
}

impl Failed {
    pub(crate) fn wanted(&self, limits: &Limits, now: Time) -> Option<Time> {
        self.retry_at.map(|t| t.min(later(now, limits.max_lateness.unwrap_or(FURTHEST_RETRY))))
    }

    pub(crate) fn outcome(&self) -> Outcome {
        if self.timed_out { Outcome::TimedOut } else { Outcome::Failed }
    }
}

const FURTHEST_RETRY: TimeDelta = TimeDelta::days(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    Again(Time),
    End(Outcome),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFar(pub TimeDelta);

/// Returns the first slot at or after `t`, or after `now` if `t` has passed. Refuses a time beyond `max_horizon`.
pub fn schedule(t: Time, limits: &Limits, now: Time) -> Result<Time, TooFar> {
    if t > limits.horizon(now) {
        return Err(TooFar(limits.max_horizon));
    }
    Ok(limits.width.due(t, now))
}

pub fn is_surprising(after: TimeDelta, slot: Time, now: Time) -> bool {
    slot > later(later(now, after), TimeDelta::minutes(1))
}

/// Decides whether a due check runs. The job's checks can run since `able_since`, for example because the server
/// started or a pause ended then.
///
/// If the clock is set back before `able_since`, the caller must store `now` as `able_since`.
pub fn before(check: &Check, limits: &Limits, able_since: Time, now: Time) -> Before {
    if now < check.slot {
        return Before::NotYet;
    }
    if missed(check.slot, limits, able_since, now) {
        match limits.on_missed {
            OnMissed::NextSlot => return Before::Move(limits.width.after(now)),
            OnMissed::Skip => return Before::End(Outcome::Missed),
            OnMissed::Run => {}
        }
    }
    match limits.max_lateness {
        Some(most) if lateness(now, check.slot) > most => Before::End(Outcome::Expired),
        _ => Before::Run,
    }
}

/// A check was missed if the job's checks could run only after the check's slot had passed. A check that only waited
/// for other runs was not missed.
fn missed(slot: Time, limits: &Limits, able_since: Time, now: Time) -> bool {
    able_since <= now && later(slot, limits.width.delta()) <= able_since
}

pub fn after(check: &Check, limits: &Limits, answer: Answer, now: Time) -> After {
    let t = match answer {
        Answer::Done => return After::End(Outcome::Done),
        Answer::Met => return After::End(Outcome::Met),
        Answer::Again(t) => t,
    };
    if t <= check.slot {
        return After::End(Outcome::Past);
    }
    if t > limits.horizon(now) {
        return After::End(Outcome::BeyondHorizon);
    }
    if is_reached(limits.max_checks, check.check_count.saturating_add(1)) {
        return After::End(Outcome::Exhausted);
    }
    After::Again(limits.width.due(t, now))
}

/// If `how` is a `bool`, `true` means that the time limit ended the run.
pub fn failed(check: &Check, limits: &Limits, how: impl Into<Failed>, now: Time) -> After {
    let how = how.into();
    let failures = check.attempt.saturating_add(1);
    if how.is_final || is_reached(limits.max_attempts, failures) {
        return After::End(how.outcome());
    }
    let usual = || later(now, spread(backoff::failed_run(limits.retry_after, failures), how.spread));
    let retry = limits.width.due(how.wanted(limits, now).unwrap_or_else(usual), now);
    // Even if the clock was set back, the check must move to a later time.
    After::Again(retry.max(limits.width.after(check.slot)))
}

fn spread(wait: TimeDelta, thousandths: i32) -> TimeDelta {
    let more = (wait / 1000).checked_mul(thousandths).unwrap_or_default();
    wait.checked_add(&more).unwrap_or(wait)
}

fn is_reached(limit: u32, count: u32) -> bool {
    limit > 0 && count >= limit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{clock, limits};

    fn check() -> Check {
        Check { slot: clock("10:00:00"), check_count: 0, attempt: 0 }
    }

    #[test]
    fn a_check_never_runs_before_its_slot() {
        let able = clock("08:00:00");
        assert_eq!(before(&check(), &limits(), able, clock("09:59:59.999999")), Before::NotYet);
        assert_eq!(before(&check(), &limits(), able, clock("10:00:00")), Before::Run);
    }

    #[test]
    fn a_slot_that_passed_while_nothing_could_run_follows_on_missed() {
        let (able, now) = (clock("10:01:00"), clock("10:05:30"));
        let decide = |on_missed| before(&check(), &Limits { on_missed, ..limits() }, able, now);
        assert_eq!(decide(OnMissed::Run), Before::Run);
        assert_eq!(decide(OnMissed::NextSlot), Before::Move(clock("10:06:00")));
        assert_eq!(decide(OnMissed::Skip), Before::End(Outcome::Missed));
    }

    #[test]
    fn a_slot_is_not_missed_while_it_lasts_or_because_earlier_work_took_long() {
        let limits = Limits { on_missed: OnMissed::Skip, ..limits() };
        assert_eq!(before(&check(), &limits, clock("10:00:59"), clock("10:00:59")), Before::Run);
        assert_eq!(before(&check(), &limits, clock("09:00:00"), clock("15:00:00")), Before::Run);
    }

    #[test]
    fn nothing_is_missed_by_a_clock_that_was_set_back() {
        let limits = Limits { on_missed: OnMissed::Skip, ..limits() };
        assert_eq!(before(&check(), &limits, clock("12:00:00"), clock("10:00:00")), Before::Run);
    }

    #[test]
    fn a_check_that_is_too_late_expires_unless_it_moved_on() {
        let now = clock("10:10:00");
        let mut limits = Limits { max_lateness: Some(TimeDelta::minutes(10)), ..limits() };
        assert_eq!(before(&check(), &limits, clock("08:00:00"), now), Before::Run);
        let now = clock("10:10:00.000001");
        assert_eq!(before(&check(), &limits, clock("08:00:00"), now), Before::End(Outcome::Expired));
        assert_eq!(before(&check(), &limits, now, now), Before::End(Outcome::Expired));
        limits.on_missed = OnMissed::NextSlot;
        assert_eq!(before(&check(), &limits, now, now), Before::Move(clock("10:11:00")));
    }

    #[test]
    fn null_is_done_and_a_time_is_rounded_up_to_a_slot() {
        let now = clock("10:00:05");
        assert_eq!(after(&check(), &limits(), Answer::Done, now), After::End(Outcome::Done));
        assert_eq!(after(&check(), &limits(), Answer::Met, now), After::End(Outcome::Met));
        let again = |t| after(&check(), &limits(), Answer::Again(t), now);
        assert_eq!(again(clock("13:00:30")), After::Again(clock("13:01:00")));
        assert_eq!(again(clock("10:00:01")), After::Again(clock("10:01:00")));
    }

    #[test]
    fn a_time_not_after_its_own_slot_is_no_progress() {
        let again = |t| after(&check(), &limits(), Answer::Again(t), clock("10:00:05"));
        assert_eq!(again(clock("10:00:00")), After::End(Outcome::Past));
        assert_eq!(again(Time::MIN_UTC), After::End(Outcome::Past));
    }

    #[test]
    fn a_time_beyond_the_horizon_ends_the_check() {
        let now = clock("10:00:05");
        let edge = now + limits().max_horizon;
        let again = |t| after(&check(), &limits(), Answer::Again(t), now);
        assert_eq!(again(edge), After::Again(limits().width.round_up(edge)));
        assert_eq!(again(edge + TimeDelta::microseconds(1)), After::End(Outcome::BeyondHorizon));
        assert_eq!(again(Time::MAX_UTC), After::End(Outcome::BeyondHorizon));
    }

    #[test]
    fn asking_for_more_checks_than_max_checks_exhausts_it() {
        let again = |check_count| {
            let check = Check { check_count, ..check() };
            after(&check, &limits(), Answer::Again(clock("11:00:00")), clock("10:00:00"))
        };
        assert_eq!(again(3), After::Again(clock("11:00:00")));
        assert_eq!(again(4), After::End(Outcome::Exhausted));
        assert_eq!(again(u32::MAX), After::End(Outcome::Exhausted));
    }

    #[test]
    fn a_failed_run_is_tried_again_at_slots_until_max_attempts() {
        let now = clock("10:00:05");
        let fail = |attempt, timed_out| failed(&Check { attempt, ..check() }, &limits(), timed_out, now);
        assert_eq!(fail(0, false), After::Again(clock("10:02:00")));
        assert_eq!(fail(1, true), After::Again(clock("10:03:00")));
        assert_eq!(fail(2, false), After::End(Outcome::Failed));
        assert_eq!(fail(2, true), After::End(Outcome::TimedOut));
    }

    #[test]
    fn a_report_may_say_when_to_try_again_or_never() {
        let (now, second) = (clock("10:00:05"), TimeDelta::seconds(1));
        let fail = |limits: &Limits, how: Failed| failed(&check(), limits, how, now);
        let at = |t| Failed { retry_at: Some(t), ..Failed::default() };
        assert_eq!(fail(&limits(), Failed { is_final: true, ..at(now) }), After::End(Outcome::Failed));
        assert_eq!(fail(&limits(), at(clock("12:00:00") + second)), After::Again(clock("12:01:00")));
        assert_eq!(fail(&limits(), at(Time::MIN_UTC)), After::Again(clock("10:01:00")));
        assert_eq!(fail(&limits(), at(Time::MAX_UTC)), After::Again(limits().width.round_up(now + FURTHEST_RETRY)));
        let late = Limits { max_lateness: Some(TimeDelta::hours(1)), ..limits() };
        assert_eq!(fail(&late, at(Time::MAX_UTC)), After::Again(clock("11:01:00")));
    }

    #[test]
    fn waits_are_spread_so_that_not_all_come_at_once() {
        let limits = Limits { retry_after: TimeDelta::minutes(10), ..limits() };
        let fail = |spread| failed(&check(), &limits, Failed { spread, ..Failed::default() }, clock("10:00:00"));
        assert_eq!(fail(-200), After::Again(clock("10:08:00")));
        assert_eq!(fail(0), After::Again(clock("10:10:00")));
        assert_eq!(fail(200), After::Again(clock("10:12:00")));
    }

    #[test]
    fn without_a_limit_a_check_is_asked_and_tried_for_ever() {
        let limits = Limits { max_checks: 0, max_attempts: 0, ..limits() };
        let check = Check { check_count: u32::MAX, attempt: u32::MAX, ..check() };
        let now = clock("10:00:05");
        let again = after(&check, &limits, Answer::Again(clock("11:00:00")), now);
        assert_eq!(again, After::Again(clock("11:00:00")));
        assert!(matches!(failed(&check, &limits, true, now), After::Again(slot) if slot > check.slot));
    }

    #[test]
    fn a_retry_comes_after_its_own_slot_even_if_the_clock_was_set_back() {
        assert_eq!(failed(&check(), &limits(), false, clock("09:00:00")), After::Again(clock("10:01:00")));
    }

    #[test]
    fn a_slot_is_surprising_when_rounding_adds_more_than_a_minute() {
        let (now, second) = (clock("10:00:00"), TimeDelta::seconds(1));
        assert!(!is_surprising(second, clock("10:01:01"), now));
        assert!(is_surprising(second, clock("10:01:02"), now));
        assert!(!is_surprising(TimeDelta::hours(1), clock("11:00:00"), now));
    }

    #[test]
    fn a_client_may_not_schedule_beyond_the_horizon() {
        let now = clock("10:00:00");
        assert_eq!(schedule(clock("09:00:00"), &limits(), now), Ok(clock("10:01:00")));
        assert_eq!(schedule(clock("10:30:01"), &limits(), now), Ok(clock("10:31:00")));
        let error = schedule(now + TimeDelta::days(367), &limits(), now).unwrap_err();
        assert_eq!(error, TooFar(TimeDelta::days(366)));
    }
}
