use super::super::places::{CHANGES, READS};
use super::super::role::{EACH, LONG, SLOW_FOR};
use super::*;
use crate::db::views;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::timeout;

async fn at_once(permits: &Permits, role: &str, changes: bool) -> Option<Permit> {
    timeout(Duration::ZERO, permits.permit(role, changes)).await.ok().map(Result::unwrap)
}

#[tokio::test]
async fn each_role_has_its_places_and_no_more() {
    let permits = Permits::default();
    let held = [permits.permit("a", false).await.unwrap(), permits.permit("a", false).await.unwrap()];
    assert!(at_once(&permits, "a", false).await.is_none());
    assert!(at_once(&permits, "b", false).await.is_some());
    drop(held);
    assert!(at_once(&permits, "a", false).await.is_some());
}

#[tokio::test]
async fn reads_of_a_role_wait_for_none_of_its_changes() {
    let permits = Permits::default();
    let _held = [permits.permit("a", true).await.unwrap(), permits.permit("a", true).await.unwrap()];
    assert!(at_once(&permits, "a", true).await.is_none(), "one change more than a role may have");
    assert!(at_once(&permits, "a", false).await.is_some(), "a read waits for a change");
}

#[tokio::test]
async fn changes_of_all_roles_leave_a_place_for_a_read() {
    let permits = Permits::default();
    let mut held = Vec::new();
    for role in 0..CHANGES {
        held.push(permits.permit(&role.to_string(), true).await.unwrap());
    }
    assert!(at_once(&permits, "other", true).await.is_none(), "one change more than there may be");
    assert!(at_once(&permits, "other", false).await.is_some(), "a read waits for a change");
    held.pop();
    assert!(at_once(&permits, "other", true).await.is_some());
}

#[tokio::test]
async fn all_requests_leave_a_connection_for_tokens() {
    let permits = Permits::default();
    let mut held = Vec::new();
    for (role, changes) in [("a", true), ("b", true), ("a", false), ("a", false), ("b", false)] {
        held.extend(at_once(&permits, role, changes).await);
    }
    assert_eq!(held.len(), CHANGES + READS - 1);
    held.pop();
    assert!(at_once(&permits, "c", false).await.is_some());
}

#[tokio::test]
async fn requests_of_one_role_leave_a_connection_for_other_roles() {
    let permits = Permits::default();
    let mut held = Vec::new();
    for changes in [true, true, false, false] {
        held.extend(at_once(&permits, "a", changes).await);
    }
    assert!(at_once(&permits, "b", false).await.is_some(), "a read waits for {} requests of another role", held.len());
}

#[tokio::test]
async fn slow_roles_have_one_place_together() {
    for changes in [false, true] {
        let permits = Permits::default();
        let now = Instant::now();
        for role in ["a", "b"] {
            permits.of(role).has_ended(changes, now, now + LONG);
        }
        permits.of("c").has_ended(changes, now, now + LONG / 2);
        let held = at_once(&permits, "a", changes).await.unwrap();
        assert!(at_once(&permits, "a", changes).await.is_none(), "a slow role has a second permit");
        assert!(at_once(&permits, "b", changes).await.is_none(), "two slow roles have a permit each");
        let others = [at_once(&permits, "c", changes).await.unwrap(), at_once(&permits, "c", changes).await.unwrap()];
        drop(others);
        let _other_kind = at_once(&permits, "a", !changes).await.unwrap();
        drop(held);
        assert!(at_once(&permits, "b", changes).await.is_some());
        let role = permits.of("a");
        assert!(role.is_slow(changes, now + LONG) && !role.is_slow(changes, now + LONG + SLOW_FOR));
    }
}

/// Takes all four places for reads. A request of the role `quick` took a moment, and those of the others nearly a
/// second.
async fn all_taken(permits: &Permits) -> Vec<Permit> {
    let mut held = Vec::new();
    for role in ["a", "a", "b", "d"] {
        held.push(permits.permit(role, false).await.unwrap());
    }
    let now = Instant::now();
    for (role, took) in [("a", LONG * 9 / 10), ("b", LONG * 9 / 10), ("c", LONG * 9 / 10), ("quick", LONG / 100)] {
        permits.of(role).has_ended(false, now, now + took);
    }
    held
}

/// Returns the longest wait of each role. Each role has one change that waits or runs, and a clock is simulated.
fn longest_waits(permits: &Permits, roles: &[(String, Duration)], time: Duration) -> Vec<Duration> {
    let start = Instant::now();
    let ask = |role: usize| Box::pin(permits.permit(&roles[role].0, true));
    let mut waiting: Vec<_> = (0..roles.len()).map(|role| (role, start, ask(role))).collect();
    let mut running: Vec<(usize, Instant, Permit)> = Vec::new();
    let mut longest = vec![Duration::ZERO; roles.len()];
    let mut now = start;
    while now < start + time {
        let mut still = Vec::new();
        for (role, since, mut asked) in waiting {
            longest[role] = longest[role].max(now - since);
            match asked.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(permit) => running.push((role, now, permit.unwrap())),
                Poll::Pending => still.push((role, since, asked)),
            }
        }
        waiting = still;
        running.sort_by_key(|(role, since, _)| std::cmp::Reverse(*since + roles[*role].1));
        let (role, since, permit) = running.pop().unwrap();
        now = since + roles[role].1;
        permits.of(&roles[role].0).has_ended(true, since, now);
        drop(permit);
        waiting.push((role, now, ask(role)));
    }
    longest
}

#[test]
fn no_request_waits_longer_than_the_other_roles_have_requests() {
    for others in [3_u32, 4, 6, 10, 20] {
        let permits = Permits::default();
        let now = Instant::now();
        (0..100).for_each(|_| permits.of("busy").has_ended(true, now, now + LONG * 9 / 10));
        let millis = |of: u32| if of % 5 == 4 { 50 } else { 600 + of % 4 * 100 };
        let mut roles: Vec<_> =
            (0..others).map(|of| (of.to_string(), Duration::from_millis(millis(of).into()))).collect();
        roles.push(("busy".to_owned(), LONG / 5));
        let longest = longest_waits(&permits, &roles, 100 * LONG);
        let bound = LONG * 2 * (others + 1) / CHANGES as u32;
        assert!(longest.iter().all(|wait| *wait <= bound), "of {roles:?}: {longest:?}");
    }
}

#[tokio::test]
async fn a_free_place_goes_to_the_role_that_has_taken_the_least_time() {
    let permits = Permits::default();
    let mut held = all_taken(&permits).await;
    let [holds_one, holds_none, quick] = ["b", "c", "quick"].map(|role| permits.permit(role, false));
    let mut waiting = [Box::pin(holds_one), Box::pin(holds_none), Box::pin(quick)];
    for one in &mut waiting {
        assert!(timeout(Duration::ZERO, one).await.is_err(), "a fifth place");
    }
    for (next, why) in [(2, "the role with the least time"), (1, "a role without a place"), (0, "a role with a place")]
    {
        held.pop();
        for (number, one) in waiting.iter_mut().enumerate().take(next) {
            assert!(timeout(Duration::ZERO, one).await.is_err(), "role {number} goes before {why}");
        }
        held.push(timeout(Duration::ZERO, &mut waiting[next]).await.expect(why).unwrap());
        held.swap(0, 3);
    }
}

#[tokio::test]
async fn a_request_that_no_longer_waits_keeps_no_place() {
    let permits = Permits::default();
    let mut held = all_taken(&permits).await;
    for is_given in [false, true] {
        let mut waiting = Box::pin(permits.permit("quick", false));
        assert!(timeout(Duration::ZERO, &mut waiting).await.is_err());
        if is_given {
            held.pop();
        }
        drop(waiting);
        assert_eq!(at_once(&permits, "quick", false).await.is_some(), is_given);
    }
}

#[tokio::test]
async fn two_roles_cannot_take_every_place_for_long() {
    for (changes, most) in [(false, CHANGES + READS - 1), (true, CHANGES)] {
        let permits = Permits::default();
        let mut held = Vec::new();
        for role in ["a", "a", "b", "b"] {
            held.extend(at_once(&permits, role, changes).await);
        }
        let limits: Vec<_> = held.iter().map(Permit::limit).collect();
        assert_eq!(limits, [vec![FULL; most - 1], vec![SHORT]].concat());
    }
}

#[test]
fn plans_of_other_roles_make_no_role_slow() {
    let of_others = views::SEARCH_FOR + views::COUNT_FOR;
    assert!(of_others < LONG, "a view searches and counts plans of other roles for {of_others:?}");
}

#[tokio::test]
async fn roles_at_rest_are_forgotten_and_those_at_work_are_not() {
    let permits = Permits::default();
    let held = permits.permit("at work", false).await.unwrap();
    (0..MANY * 2).for_each(|number| drop(permits.of(&number.to_string())));
    assert!(permits.roles.lock().unwrap().len() <= MANY);
    assert_eq!(permits.of("at work").reads.available_permits(), EACH - 1);
    drop(held);
}
