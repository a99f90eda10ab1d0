use super::*;
use crate::backoff::spread;
use crate::testing::clock;
use proptest::prelude::*;

const BEAT: TimeDelta = TimeDelta::seconds(15);
const TIMEOUT: TimeDelta = TimeDelta::minutes(1);

fn begun(heartbeat: Option<TimeDelta>) -> Lease {
    Lease::begin(clock("10:00:00"), TIMEOUT, heartbeat)
}

#[test]
fn a_lease_without_a_heartbeat_ends_at_its_deadline_as_a_failure() {
    let lease = begun(None);
    assert_eq!(lease.state(clock("10:00:59.999999")), State::Live);
    assert_eq!(lease.state(clock("10:01:00")), State::Overdue);
    let Unanswered::Failure(how) = lease.unanswered(Delivery::AtLeastOnce, clock("10:01:00")) else { panic!() };
    assert!(how.timed_out && !how.is_final);
    assert_eq!(lease.beat(clock("10:00:30"), None), Some(lease));
    assert_eq!(lease.beat(clock("10:01:00"), None), None);
}

#[test]
fn a_heartbeat_that_stops_is_a_crash_and_an_answer_counts_until_the_deadline() {
    let lease = begun(Some(BEAT));
    assert_eq!(lease.unanswered(Delivery::AtLeastOnce, clock("10:00:14")), Unanswered::Wait);
    assert_eq!(lease.state(clock("10:00:15")), State::Expired);
    assert_eq!(lease.unanswered(Delivery::AtLeastOnce, clock("10:00:15")), Unanswered::Crash);
    assert!(lease.counts(clock("10:00:59")) && !lease.counts(clock("10:01:00")));
    assert_eq!(lease.state(clock("10:01:00")), State::Lost);
    assert_eq!(lease.unanswered(Delivery::AtLeastOnce, clock("10:05:00")), Unanswered::Crash);
    let beaten = lease.beat(clock("10:00:50"), Some(BEAT)).unwrap();
    assert_eq!((beaten.expires_at, beaten.deadline), (clock("10:01:00"), lease.deadline));
    assert_eq!(beaten.state(clock("10:01:00")), State::Overdue);
}

#[test]
fn what_may_go_out_once_only_ends() {
    for (heartbeat, at) in [(Some(BEAT), "10:00:15"), (Some(BEAT), "10:02:00"), (None, "10:01:00")] {
        let Unanswered::Failure(how) = begun(heartbeat).unanswered(Delivery::AtMostOnce, clock(at)) else { panic!() };
        assert!(how.timed_out && how.is_final);
    }
    let terms = LeaseOptions { delivery: Delivery::AtMostOnce, ..LeaseOptions::DEFAULTS };
    assert!(terms.reported(None, false, false, 0).is_final);
    assert!(!terms.reported(None, false, true, 0).is_final);
    assert!(terms.reported(None, true, true, 0).is_final);
    let at = Time::UNIX_EPOCH;
    let wanted = [(false, false), (false, true), (true, false)]
        .map(|(is_final, not_started)| terms.reported(Some(at), is_final, not_started, 0).retry_at);
    assert_eq!(wanted, [None, Some(at), Some(at)]);
}

#[test]
fn a_heartbeat_has_its_range() {
    let check =
        |heartbeat| LeaseOptions { heartbeat, ..LeaseOptions::DEFAULTS }.check().map_err(|error| error.to_string());
    assert_eq!(check(None), Ok(()));
    assert_eq!(check(Some(BEAT)), Ok(()));
    let refused = "option \"heartbeat\" must be between 1 s and 1 day";
    assert_eq!(check(Some(TimeDelta::milliseconds(999))), Err(refused.to_owned()));
}

proptest! {
    #[test]
    fn waits_are_spread_within_a_fifth(chance: u64) {
        prop_assert!((-200..=200).contains(&spread(chance)));
    }

    #[test]
    fn heartbeats_keep_a_lease_in_order(beats in prop::collection::vec(-100_000_i64..100_000, 0..20), with: bool) {
        let heartbeat = with.then_some(BEAT);
        let mut lease = begun(heartbeat);
        for millis in beats {
            let now = clock("10:00:00") + TimeDelta::milliseconds(millis);
            match lease.beat(now, heartbeat) {
                Some(after) => {
                    prop_assert!(lease.counts(now) && after.deadline == lease.deadline);
                    prop_assert!(lease.expires_at <= after.expires_at && after.expires_at <= after.deadline);
                    prop_assert!(!with || after.state(now) == State::Live);
                    lease = after;
                }
                None => prop_assert!(matches!(lease.state(now), State::Lost | State::Overdue)),
            }
        }
    }
}
