//! Disturbs the cluster, for example by killing the primary. Each disturbance returns an error only if the cluster does
//! not recover in time.

use crate::place::{ELECTED_WITHIN, Place};
use crate::random::Random;
use crate::reaper::pass;
use awty_testkit::{Signal, poll};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    Switchover,
    KillPostmaster,
    /// Kills the primary and its Patroni, and starts Patroni again after the failover.
    KillBoth,
    /// Freezes the primary's Patroni until some time after the failover.
    FreezePatroni,
    /// Kills etcd for 40 s.
    EtcdAway,
    Pitr,
    PgBackRest,
    Move,
}

pub const ALL: [Event; 8] = [
    Event::Switchover,
    Event::KillPostmaster,
    Event::KillBoth,
    Event::FreezePatroni,
    Event::EtcdAway,
    Event::Pitr,
    Event::PgBackRest,
    Event::Move,
];

impl Event {
    pub fn name(self) -> String {
        format!("{self:?}")
    }

    pub fn is_once(self) -> bool {
        matches!(self, Self::Pitr | Self::PgBackRest | Self::Move)
    }

    pub fn strike(self, place: &mut Place) -> Result<(), String> {
        let old = place.await_whole()?;
        match self {
            Self::Switchover => switchover(place, old)?,
            Self::KillPostmaster => place.members[old].kill_postmaster(),
            Self::KillBoth => {
                place.members[old].kill_patroni();
                place.members[old].kill_postmaster();
                await_other(place, old)?;
                place.members[old].start_patroni(&place.folder);
            }
            Self::FreezePatroni => {
                place.members[old].signal_patroni(Signal::STOP);
                let other = await_other(place, old);
                pass(Duration::from_secs(10));
                place.members[old].signal_patroni(Signal::CONT);
                other?;
            }
            Self::EtcdAway => {
                place.stop_etcd();
                pass(Duration::from_secs(40));
                place.start_etcd();
            }
            Self::Pitr | Self::PgBackRest | Self::Move => {}
        }
        place.await_whole().map(|_| ())
    }
}

fn switchover(place: &Place, old: usize) -> Result<(), String> {
    let member = &place.members[old];
    // Repeats the request, because Patroni refuses a switchover until its record of the synchronous standby is up to
    // date.
    poll("Patroni to accept the switchover", Duration::from_secs(60), || {
        let body = format!("{{\"leader\": \"{}\"}}", member.name);
        match member.ask("POST /switchover", &body) {
            Ok((200, _)) => Ok(()),
            answer => Err(format!("{answer:?}")),
        }
    })?;
    await_other(place, old)
}

fn await_other(place: &Place, old: usize) -> Result<(), String> {
    poll("another primary", ELECTED_WITHIN, || match place.leader() {
        Some(leader) if leader != old => Ok(()),
        leader => Err(format!("{leader:?}")),
    })
}

pub fn shuffled(events: &[Event], random: &mut Random) -> Vec<Event> {
    let mut left: Vec<Event> = events.iter().copied().filter(|event| !event.is_once()).collect();
    let mut drawn = Vec::new();
    while !left.is_empty() {
        drawn.push(left.swap_remove(random.below(left.len() as u64) as usize));
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_has_each_event_that_comes_again() {
        let mut random = Random::new(3, 0);
        for _ in 0..4 {
            let mut drawn = shuffled(&ALL, &mut random);
            drawn.sort();
            assert_eq!(drawn, ALL[..5]);
        }
    }
}
