//! Decides which roles get another worker, and how long the launcher sleeps.
//!
//! Invariant: the number of workers stays within [`Caps`]. The role that was served longest ago comes first.

use crate::{Mono, Time};
use chrono::TimeDelta;
use std::time::Duration;

/// A role gets another worker when each of its workers has been busy with one run for this long.
pub const BEHIND: Duration = Duration::from_secs(1);
/// Workers start this long before checks are due, because connecting takes time.
pub const LEAD: TimeDelta = TimeDelta::milliseconds(100);
pub const MIN_SLEEP: Duration = Duration::from_millis(1);
/// The launcher sleeps at most this long, so that it notices a jump of the wall clock.
pub const MAX_SLEEP: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    /// Time at which a worker should next look for due checks of the role. The worker then clears the time.
    pub due: Option<Time>,
    /// Time since which all of the role's workers are busy. `None` if a worker is free.
    pub behind_since: Option<Mono>,
    /// True if a worker has repeatedly found more checks than it takes at once.
    pub wants_help: bool,
    /// Number of the role's workers, including starting workers, but without stuck workers.
    pub workers: u32,
    /// Number of workers that still run after the signal to terminate. They count only against `max_workers_per_role`.
    pub stuck: u32,
    /// The role gets no worker before this time, because its workers failed to connect or start.
    pub parked_until: Option<Mono>,
    /// Place in the queue: the role with the lowest number gets the next worker. When a worker starts or ends, its role
    /// goes to the end.
    pub last_served: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    pub max_workers: u32,
    pub max_workers_per_role: u32,
    /// Number of workers whose role is missing from the caller's list of roles.
    pub elsewhere: u32,
    pub lead: TimeDelta,
}

impl Caps {
    /// Returns how many workers awty reserves for roles without a worker. Roles with long runs cannot take these
    /// workers.
    fn kept_from_helpers(&self) -> u32 {
        u32::from(self.max_workers > self.max_workers_per_role)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub start: Vec<usize>,
    pub waiting: u32,
    pub wake_in: Duration,
}

pub fn plan(now: Time, mono: Mono, roles: &[Role], caps: &Caps) -> Plan {
    let mut wanted = Vec::new();
    let mut wake_in = MAX_SLEEP;
    for (index, role) in roles.iter().enumerate() {
        match until_wanted(role, now, mono, caps) {
            Some(Duration::ZERO) => wanted.push(index),
            Some(wait) => wake_in = wake_in.min(wait),
            None => {}
        }
    }
    wanted.sort_by_key(|&index| {
        let role = &roles[index];
        (role.workers > 0, role.last_served, role.due, index)
    });

    let busy = roles.iter().fold(caps.elsewhere, |sum, role| sum.saturating_add(role.workers));
    let mut free = caps.max_workers.saturating_sub(busy);
    // `wanted` lists roles without a worker first. After the first role that gets no worker, no further role gets one.
    let served = wanted.iter().take_while(|&&index| {
        let fits = free > if roles[index].workers > 0 { caps.kept_from_helpers() } else { 0 };
        free = free.saturating_sub(1);
        fits
    });
    let unserved = wanted.split_off(served.count());

    let mut waiting = 0;
    for role in unserved.iter().map(|&index| &roles[index]).filter(|role| role.workers == 0) {
        match until_due(role, now, TimeDelta::zero()) {
            Some(Duration::ZERO) => waiting += 1,
            Some(wait) => wake_in = wake_in.min(wait),
            None => {}
        }
    }
    Plan { start: wanted, waiting, wake_in: wake_in.max(MIN_SLEEP) }
}

fn until_wanted(role: &Role, now: Time, mono: Mono, caps: &Caps) -> Option<Duration> {
    let due = until_due(role, now, caps.lead)?;
    if role.workers.saturating_add(role.stuck) >= caps.max_workers_per_role {
        return None;
    }
    let help = if role.workers == 0 { Duration::ZERO } else { until_behind(role, mono)? };
    Some(due.max(help).max(until_unparked(role, mono)))
}

fn until_due(role: &Role, now: Time, lead: TimeDelta) -> Option<Duration> {
    let wait = role.due?.signed_duration_since(now) - lead;
    Some(wait.to_std().unwrap_or(Duration::ZERO))
}

fn until_behind(role: &Role, mono: Mono) -> Option<Duration> {
    if role.wants_help {
        return Some(Duration::ZERO);
    }
    Some(until(role.behind_since?.plus(BEHIND), mono))
}

fn until_unparked(role: &Role, mono: Mono) -> Duration {
    role.parked_until.map_or(Duration::ZERO, |end| until(end, mono))
}

fn until(moment: Mono, mono: Mono) -> Duration {
    moment.since(mono)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::clock;

    const MONO: Mono = Mono(7_000_000_000);
    const IDLE: Role = Role {
        due: None,
        behind_since: None,
        wants_help: false,
        workers: 0,
        stuck: 0,
        parked_until: None,
        last_served: 0,
    };

    fn caps(max_workers: u32, max_workers_per_role: u32) -> Caps {
        Caps { max_workers, max_workers_per_role, elsewhere: 0, lead: TimeDelta::milliseconds(200) }
    }

    fn now() -> Time {
        clock("10:00:00")
    }

    fn due(last_served: u64) -> Role {
        Role { due: Some(now()), last_served, ..IDLE }
    }

    fn behind(ms: i64) -> Role {
        Role { workers: 1, behind_since: Some(Mono(MONO.0 - ms * 1000)), ..due(0) }
    }

    fn at_ten(roles: &[Role], caps: Caps) -> Plan {
        plan(now(), MONO, roles, &caps)
    }

    #[test]
    fn a_stuck_worker_counts_against_its_role_only() {
        let stuck = Role { stuck: 1, ..due(0) };
        assert_eq!(at_ten(&[stuck, due(1)], caps(1, 1)).start, [1]);
        assert_eq!(at_ten(&[stuck, due(1)], caps(2, 2)).start, [0, 1]);
        assert_eq!(at_ten(&[Role { stuck: 2, ..due(0) }], caps(4, 2)).waiting, 0);
    }

    #[test]
    fn nothing_due_starts_nothing_and_sleeps_a_second() {
        let nothing = Plan { start: vec![], waiting: 0, wake_in: MAX_SLEEP };
        assert_eq!(at_ten(&[], caps(4, 2)), nothing);
        assert_eq!(at_ten(&[IDLE, Role { workers: 1, ..IDLE }], caps(4, 2)), nothing);
    }

    #[test]
    fn a_role_that_is_due_gets_a_worker_shortly_before() {
        let soon = |ms| Role { due: Some(now() + TimeDelta::milliseconds(ms)), ..IDLE };
        assert_eq!(at_ten(&[soon(200)], caps(4, 2)).start, [0]);
        let plan = at_ten(&[soon(500), soon(300)], caps(4, 2));
        assert_eq!((plan.start, plan.wake_in), (vec![], Duration::from_millis(100)));
        let very_soon = Role { due: Some(now() + TimeDelta::microseconds(200_001)), ..IDLE };
        assert_eq!(at_ten(&[very_soon], caps(4, 2)).wake_in, MIN_SLEEP);
    }

    #[test]
    fn a_role_with_a_free_worker_gets_no_other() {
        let plan = at_ten(&[Role { workers: 1, ..due(0) }], caps(4, 2));
        assert_eq!(plan, Plan { start: vec![], waiting: 0, wake_in: MAX_SLEEP });
    }

    #[test]
    fn the_longest_unserved_role_comes_first_and_the_others_wait() {
        let earlier = Role { due: Some(clock("09:59:00")), ..due(3) };
        let plan = at_ten(&[due(9), due(3), earlier, due(0)], caps(3, 2));
        assert_eq!((plan.start, plan.waiting), (vec![3, 2, 1], 1));
    }

    #[test]
    fn helpers_come_after_every_role_without_a_worker() {
        let plan = at_ten(&[behind(5000), due(9)], caps(4, 2));
        assert_eq!(plan.start, [1, 0]);
        let plan = at_ten(&[behind(5000), due(9)], caps(2, 2));
        assert_eq!((plan.start, plan.waiting), (vec![1], 0));
    }

    #[test]
    fn helpers_leave_a_place_for_a_role_without_a_worker() {
        let plan = at_ten(&[behind(5000), behind(5000)], caps(4, 2));
        assert_eq!((plan.start, plan.waiting), (vec![0], 0));
        assert_eq!(at_ten(&[behind(5000)], caps(2, 2)).start, [0]);
    }

    #[test]
    fn a_helper_comes_when_its_role_has_been_behind_for_a_second() {
        let plan = at_ten(&[behind(999)], caps(3, 2));
        assert_eq!((plan.start, plan.wake_in), (vec![], Duration::from_millis(1)));
        assert_eq!(at_ten(&[behind(1000)], caps(3, 2)).start, [0]);
        assert_eq!(at_ten(&[behind(1000)], caps(3, 1)).start, [0_usize; 0]);
        let nothing_more = Role { due: None, ..behind(1000) };
        assert_eq!(at_ten(&[nothing_more], caps(3, 2)).start, [0_usize; 0]);
    }

    #[test]
    fn a_helper_comes_at_once_when_a_worker_asks_for_it() {
        let asks = Role { wants_help: true, ..behind(0) };
        assert_eq!(at_ten(&[asks], caps(3, 2)).start, [0]);
        assert_eq!(at_ten(&[asks], caps(3, 1)).start, [0_usize; 0]);
        assert_eq!(at_ten(&[Role { workers: 2, ..asks }], caps(3, 2)).start, [0_usize; 0]);
        assert_eq!(at_ten(&[Role { due: None, ..asks }], caps(3, 2)).start, [0_usize; 0]);
    }

    #[test]
    fn workers_of_roles_that_wait_for_nothing_count() {
        let busy = Caps { elsewhere: 3, ..caps(4, 2) };
        assert_eq!(at_ten(&[due(0)], busy).start, [0]);
        assert_eq!(at_ten(&[behind(5000)], busy).start, [0_usize; 0]);
        let full = Caps { elsewhere: 4, ..caps(4, 2) };
        assert_eq!((at_ten(&[due(0)], full).start, at_ten(&[due(0)], full).waiting), (vec![], 1));
    }

    #[test]
    fn a_parked_role_gets_nothing_and_does_not_wait() {
        let parked = Role { parked_until: Some(Mono(MONO.0 + 40_000)), ..due(0) };
        let plan = at_ten(&[parked, due(5)], caps(1, 1));
        assert_eq!(plan, Plan { start: vec![1], waiting: 0, wake_in: Duration::from_millis(40) });
        let over = Role { parked_until: Some(MONO), ..due(0) };
        assert_eq!(at_ten(&[over], caps(1, 1)).start, [0]);
    }

    #[test]
    fn a_role_that_cannot_be_served_does_not_keep_the_launcher_awake() {
        let busy = Role { workers: 2, ..IDLE };
        let soon = Role { due: Some(now() + TimeDelta::milliseconds(150)), ..IDLE };
        let plan = at_ten(&[busy, due(0)], caps(2, 2));
        assert_eq!(plan, Plan { start: vec![], waiting: 1, wake_in: MAX_SLEEP });
        let plan = at_ten(&[busy, soon], caps(2, 2));
        assert_eq!(plan, Plan { start: vec![], waiting: 0, wake_in: Duration::from_millis(150) });
    }

    #[test]
    fn a_lowered_cap_starts_nothing() {
        assert_eq!(at_ten(&[Role { workers: 9, ..IDLE }, due(0)], caps(2, 2)).start, [0_usize; 0]);
    }
}
