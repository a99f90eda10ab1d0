//! A simple model of targets with limits, blocks and circuit breakers.

use super::{Replay, from_environment};
use crate::dice::Dice;
use awty_core::Time;
use awty_core::lease::breaker::{Breaker, State};
use awty_core::lease::order::{Waiting, in_turn, shares};
use awty_core::lease::target::Target;
use awty_core::lease::tokens::Pace;
use chrono::TimeDelta;

const ROLES: usize = 2;
const TARGETS: usize = 5;
const RATE: f64 = 2.0;
const BURST: u32 = 4;

#[derive(Clone, Debug, Default)]
struct Line {
    target: Target,
    pending: usize,
    leases: Vec<Time>,
}

#[derive(Clone, Debug, Default)]
struct Seen {
    given: usize,
    since: Option<Time>,
    downs: Vec<Time>,
    waited: usize,
}

type Tables = (Vec<Vec<Line>>, [usize; ROLES], [Option<Time>; ROLES]);

struct World {
    dice: Dice,
    now: Time,
    lines: Vec<Vec<Line>>,
    cursor: [usize; ROLES],
    served_at: [Option<Time>; ROLES],
    seen: Vec<Vec<Seen>>,
    counts: [u64; 6],
}

impl World {
    fn new(seed: u64) -> Self {
        let line = |place: usize| Line {
            target: Target {
                concurrency: place.is_multiple_of(2).then_some(2),
                pace: place.is_multiple_of(3).then(|| Pace::new(RATE, Some(BURST))),
                ..Target::default()
            },
            ..Line::default()
        };
        let lines = vec![(0..TARGETS).map(line).collect(); ROLES];
        let now = Time::UNIX_EPOCH + TimeDelta::days(21_000);
        let seen = vec![vec![Seen::default(); TARGETS]; ROLES];
        Self { dice: Dice::new(seed), now, lines, cursor: [0; ROLES], served_at: [None; ROLES], seen, counts: [0; 6] }
    }

    fn any(&mut self) -> (usize, usize) {
        (self.dice.below(ROLES), self.dice.below(TARGETS))
    }

    fn step(&mut self, flushed: &mut Option<Tables>) {
        let (role, place) = self.any();
        match self.dice.below(1000) {
            0..250 => self.lines[role][place].pending += self.dice.below(20),
            250..450 => self.now += self.dice.millis(1, 4000),
            450..700 => self.claim(),
            700..950 => self.answer(role, place),
            950..965 => {
                let until = self.now + self.dice.millis(-1000, 20_000);
                self.lines[role][place].target.blocked_until = Some(until);
            }
            965..980 => *flushed = Some((self.lines.clone(), self.cursor, self.served_at)),
            980..990 => {
                if let Some(before) = flushed {
                    (self.lines, self.cursor, self.served_at) = before.clone();
                    self.forget();
                    self.counts[0] += 1;
                }
            }
            990..995 => self.now += TimeDelta::minutes(20),
            _ => {
                self.now -= self.dice.millis(0, 200_000);
                self.forget();
                self.counts[1] += 1;
            }
        }
    }

    fn forget(&mut self) {
        self.seen = vec![vec![Seen::default(); TARGETS]; ROLES];
    }

    fn claim(&mut self) {
        let now = self.now;
        for line in self.lines.iter_mut().flatten() {
            let before = line.leases.len();
            line.leases.retain(|ends| now < *ends);
            line.pending += before - line.leases.len();
            line.target.in_flight = line.leases.len() as u32;
        }
        let max = 1 + self.dice.below(8);
        let could: Vec<Vec<usize>> = self
            .lines
            .iter()
            .map(|lines| lines.iter().map(|line| line.target.allows(now).min(line.pending)).collect())
            .collect();
        let order: Vec<Vec<usize>> =
            self.cursor.iter().map(|cursor| (1..=TARGETS).map(|step| (cursor + step) % TARGETS).collect()).collect();
        let due = |role: usize| order[role].iter().map(|place| could[role][*place]).collect::<Vec<_>>();
        let waiting: Vec<Waiting> =
            (0..ROLES).map(|role| Waiting { served_at: self.served_at[role], due: due(role).iter().sum() }).collect();
        for (role, share) in shares(&waiting, max).into_iter().enumerate() {
            let in_turn = in_turn(&due(role), share);
            let mut given = [0; TARGETS];
            order[role].iter().zip(&in_turn).for_each(|(place, count)| given[*place] = *count);
            if let Some((place, _)) =
                order[role].iter().zip(&in_turn).rfind(|(_, count)| **count == *in_turn.iter().max().unwrap_or(&0))
                && share > 0
            {
                self.cursor[role] = *place;
                self.served_at[role] = Some(now);
            }
            self.give(role, given, &could[role]);
        }
    }

    fn give(&mut self, role: usize, given: [usize; TARGETS], could: &[usize]) {
        let now = self.now;
        let least_left = |place: &usize| given[*place] < could[*place];
        for place in 0..TARGETS {
            let (line, count) = (&mut self.lines[role][place], given[place]);
            let seen = &mut self.seen[role][place];
            if count == 0 {
                let is_passed_over = could[place] > 0;
                seen.waited = if is_passed_over { seen.waited + 1 } else { 0 };
                assert!(seen.waited <= 2 * ROLES * TARGETS, "a target waits for ever");
                assert!(!is_passed_over || given.iter().all(|other| *other <= 1), "another was served twice before it");
                continue;
            }
            seen.waited = 0;
            let most = (0..TARGETS).filter(least_left).map(|place| given[place]).min().unwrap_or(usize::MAX);
            assert!(count <= most.saturating_add(1), "turns of one each");
            assert!(line.target.blocked_until.is_none_or(|until| until <= now), "it was blocked");
            assert!(line.target.concurrency.is_none_or(|most| line.leases.len() + count <= most as usize), "too many");
            if line.target.pace.is_some() {
                let since = *seen.since.get_or_insert(now);
                seen.given += count;
                let brought = (now - since).as_seconds_f64() * RATE;
                assert!(seen.given as f64 <= f64::from(BURST) + brought + 0.01, "{seen:?} at {now}");
            }
            if let [first, .., last] = seen.downs[..]
                && seen.downs.len() >= 10
                && last - first >= TimeDelta::seconds(10)
            {
                assert!(
                    now - last >= TimeDelta::seconds(30) || line.leases.len() + count == 1,
                    "it was left alone: {seen:?}"
                );
                self.counts[2] += 1;
            }
            if let Some((tokens, _)) = line.target.take(count, now) {
                line.target.tokens = Some(tokens);
            }
            line.pending -= count;
            line.leases.extend(std::iter::repeat_n(now + TimeDelta::seconds(30), count));
            self.counts[3] += count as u64;
        }
    }

    fn answer(&mut self, role: usize, place: usize) {
        let now = self.now;
        let is_down = (now.timestamp() / 900 + place as i64) % 3 == 0;
        let (line, seen) = (&mut self.lines[role][place], &mut self.seen[role][place]);
        if line.leases.pop().is_none() {
            return;
        }
        let state = line.target.breaker.map(|breaker| breaker.state(now));
        if is_down {
            line.pending += 1;
            line.target.breaker = Breaker::after_failure(line.target.breaker, now).or(line.target.breaker);
            if !matches!(state, Some(State::Open(_))) {
                seen.downs.push(now);
                seen.downs.drain(..seen.downs.len().saturating_sub(10));
            }
        } else if line.target.breaker.is_some_and(|breaker| breaker.ends_with_answer(now)) {
            self.counts[4] += u64::from(state == Some(State::HalfOpen));
            line.target.breaker = None;
            seen.downs.clear();
        } else if state.is_none() {
            seen.downs.clear();
        }
        self.counts[5] += 1;
    }
}

#[test]
fn targets_keep_their_limits_and_turns_for_a_million_steps() {
    let steps = from_environment("AWTY_SIM_STEPS").unwrap_or(100_000);
    let only = from_environment("AWTY_SIM_SEED");
    let mut all = [0; 6];
    for seed in only.map_or(0..10, |seed| seed..seed + 1) {
        let replay = Replay { seed, steps };
        let (mut world, mut flushed) = (World::new(seed), None);
        for _ in 0..replay.steps {
            world.step(&mut flushed);
        }
        all.iter_mut().zip(world.counts).for_each(|(sum, count)| *sum += count);
    }
    let names = ["crash", "clock set back", "claim after a breaker", "lease", "closed again", "answer"];
    for (name, count) in names.into_iter().zip(all) {
        assert!(count > 0 || only.is_some(), "never: {name}");
    }
}
