//! Watching: when a row of a watched table is late, and how far its alert has come.
//!
//! A row's clock starts at its `since`. Level 1 is due `within` later, level k + 1 at `since + escalate[k]`. Each due time counts from
//! the slot that it rounds up to, so no level comes early. One level is raised at a time.
//!
//! Invariant: what a row comes to depends on the row, its open alert and the clock only, so it can be asked again at any time.

use crate::limits::Limits;
use crate::{Time, Width, later};
use chrono::TimeDelta;

/// How long after its clock's start a row becomes late, level by level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels(Vec<TimeDelta>);

/// What is wrong with levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelError {
    /// `within` is none, or negative.
    Within,
    /// A level of `escalate`, from 1, does not come after the one before it.
    Escalate(usize),
    /// More than [`MAX_LEVELS`].
    TooMany,
}

/// The most levels that a rule may have.
pub const MAX_LEVELS: usize = 100;

impl Levels {
    /// Levels by `within` and `escalate`.
    ///
    /// # Errors
    /// [`LevelError`] unless `within` is positive and each level comes after the one before it.
    pub fn new(within: TimeDelta, escalate: &[TimeDelta]) -> Result<Self, LevelError> {
        if within <= TimeDelta::zero() {
            return Err(LevelError::Within);
        }
        if escalate.len() >= MAX_LEVELS {
            return Err(LevelError::TooMany);
        }
        let levels: Vec<TimeDelta> = std::iter::once(within).chain(escalate.iter().copied()).collect();
        match levels.windows(2).position(|pair| pair[1] <= pair[0]) {
            Some(place) => Err(LevelError::Escalate(place + 1)),
            None => Ok(Self(levels)),
        }
    }

    /// The time after `since` at which a level is due, from 1; `None` where there is no such level.
    pub fn after(&self, level: u32) -> Option<TimeDelta> {
        self.0.get(usize::try_from(level).ok()?.checked_sub(1)?).copied()
    }

    /// When a row becomes late whose clock started at `since`. [`Time::MIN_UTC`], since ever, stays what it is.
    pub fn due(&self, since: Time) -> Time {
        if since == Time::MIN_UTC { since } else { later(since, self.0[0]) }
    }

    /// The slot of a level of a row whose clock started at `since`.
    fn slot(&self, level: u32, since: Time, width: Width) -> Option<Time> {
        Some(width.round_up(later(since, self.after(level)?)))
    }
}

/// What was found of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// There is no such row, its condition holds, or its clock has not started.
    Settled,
    /// Its condition does not hold, since that time. [`Time::MIN_UTC`]: since ever.
    Waiting(Time),
}

/// What becomes of a check of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The row needs no alert, and an open one is cleared.
    Settled,
    /// Not even the first level is due yet: an open alert is cleared, and the row is asked about at that slot.
    Ahead(Time),
    /// The open alert stays as it is. The row is asked about again at that slot, or never.
    Stay(Option<Time>),
    /// This level is raised, and the row is asked about again at that slot, or never.
    Raise(u32, Option<Time>),
}

/// What becomes of a row with an open alert of level `open`, or 0.
pub fn judge(found: Found, open: u32, levels: &Levels, limits: &Limits, now: Time) -> Verdict {
    let Found::Waiting(since) = found else { return Verdict::Settled };
    let width = limits.width;
    let slot = |level| levels.slot(level, since, width);
    // Beyond the horizon it is asked again at the horizon.
    let horizon = width.floor(later(now, limits.max_horizon)).max(width.after(now));
    let again = |level| slot(level).map(|slot| slot.max(width.after(now)).min(horizon));
    match slot(1) {
        Some(first) if first > now => Verdict::Ahead(first.min(horizon)),
        _ => match slot(open + 1) {
            Some(next) if next <= now => Verdict::Raise(open + 1, again(open + 2)),
            _ => Verdict::Stay(again(open + 1)),
        },
    }
}

/// When the check of a row comes that has just been written, or `None` if never.
pub fn start(found: Found, open: u32, levels: &Levels, limits: &Limits, now: Time) -> Option<Time> {
    match judge(found, open, levels, limits, now) {
        Verdict::Settled => None,
        Verdict::Ahead(slot) => Some(slot),
        Verdict::Stay(slot) => slot,
        Verdict::Raise(..) => Some(limits.width.after(now)),
    }
}

/// The longest name in PostgreSQL, in bytes.
const MAX_NAME: usize = 63;

/// The name of a trigger or function of a rule: `awty_<rule><suffix>`. One that would be too long is cut, and gets a hash of the rule's name.
pub fn object_name(rule: &str, suffix: &str) -> String {
    let whole = format!("awty_{rule}{suffix}");
    if whole.len() <= MAX_NAME {
        return whole;
    }
    let hash = format!("_{:08x}", crate::repeat::jitter::hash(rule, "", "") >> 32);
    let mut end = MAX_NAME - "awty_".len() - hash.len() - suffix.len();
    while !rule.is_char_boundary(end) {
        end -= 1;
    }
    format!("awty_{}{hash}{suffix}", &rule[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{clock, limits};
    use proptest::prelude::*;

    fn hours(hours: &[i64]) -> Levels {
        let all: Vec<TimeDelta> = hours.iter().map(|h| TimeDelta::hours(*h)).collect();
        Levels::new(all[0], &all[1..]).unwrap()
    }

    #[test]
    fn levels_rise() {
        let h = TimeDelta::hours;
        assert_eq!(Levels::new(h(0), &[]), Err(LevelError::Within));
        assert_eq!(Levels::new(h(-1), &[]), Err(LevelError::Within));
        assert_eq!(Levels::new(h(3), &[h(3)]), Err(LevelError::Escalate(1)));
        assert_eq!(Levels::new(h(3), &[h(6), h(5)]), Err(LevelError::Escalate(2)));
        assert_eq!(Levels::new(h(3), &[h(6); MAX_LEVELS]), Err(LevelError::TooMany));
        assert_eq!(hours(&[3, 6]).after(2), Some(h(6)));
        assert_eq!(hours(&[3, 6]).after(0), None);
        assert_eq!(hours(&[3, 6]).after(3), None);
    }

    #[test]
    fn a_late_row_is_raised_level_by_level_at_each_slot() {
        let (levels, limits) = (hours(&[1, 2]), limits());
        let found = Found::Waiting(clock("07:00:00"));
        let now = clock("10:00:00");
        let next = limits.width.after(now);
        assert_eq!(judge(found, 0, &levels, &limits, now), Verdict::Raise(1, Some(next)));
        assert_eq!(judge(found, 1, &levels, &limits, now), Verdict::Raise(2, None));
        assert_eq!(judge(found, 2, &levels, &limits, now), Verdict::Stay(None));
        assert_eq!(judge(Found::Settled, 1, &levels, &limits, now), Verdict::Settled);
    }

    #[test]
    fn a_row_that_is_not_late_yet_is_asked_about_at_its_slot() {
        let (levels, limits) = (hours(&[1, 2]), limits());
        let found = Found::Waiting(clock("09:30:00.5"));
        let first = limits.width.round_up(clock("10:30:00.5"));
        assert_eq!(judge(found, 0, &levels, &limits, clock("10:00:00")), Verdict::Ahead(first));
        assert_eq!(judge(found, 1, &levels, &limits, clock("10:00:00")), Verdict::Ahead(first), "its since has moved");
        let second = limits.width.round_up(clock("11:30:00.5"));
        assert_eq!(judge(found, 1, &levels, &limits, first), Verdict::Stay(Some(second)));
    }

    #[test]
    fn a_long_name_is_cut_and_stays_different_from_others() {
        assert_eq!(object_name("orders", "_since"), "awty_orders_since");
        let (one, other) = ("ä".repeat(31) + "x", "ä".repeat(31) + "y");
        assert_eq!(object_name(&"x".repeat(58), ""), format!("awty_{}", "x".repeat(58)));
        assert!(object_name(&one, "_truncate").len() <= 63);
        assert!(object_name(&one, "_truncate").ends_with("_truncate"));
        assert_ne!(object_name(&one, "_insert"), object_name(&other, "_insert"));
    }

    #[test]
    fn since_ever_is_late() {
        let (levels, limits) = (hours(&[1]), limits());
        assert_eq!(
            judge(Found::Waiting(Time::MIN_UTC), 0, &levels, &limits, clock("10:00:00")),
            Verdict::Raise(1, None)
        );
        assert!(matches!(
            judge(Found::Waiting(Time::MAX_UTC), 0, &levels, &limits, clock("10:00:00")),
            Verdict::Ahead(_)
        ));
    }

    proptest! {
        /// A row is followed from any time on until nothing is asked any more.
        #[test]
        fn no_level_is_early_or_left_out(
            since in 0_i64..200_000, first in 1_i64..90_000, steps in prop::collection::vec(1_i64..90_000, 0..4), began in 0_i64..400_000,
        ) {
            let limits = limits();
            let at = |second| clock("00:00:00") + TimeDelta::seconds(second);
            let mut total = first;
            let escalate: Vec<_> = steps.iter().map(|step| { total += step; TimeDelta::seconds(total) }).collect();
            let levels = Levels::new(TimeDelta::seconds(first), &escalate).unwrap();
            let found = Found::Waiting(at(since));
            let (mut now, mut open) = (at(began), 0);
            let mut next = start(found, open, &levels, &limits, now);
            while let Some(slot) = next {
                prop_assert!(slot > now);
                now = slot;
                next = match judge(found, open, &levels, &limits, now) {
                    Verdict::Ahead(slot) => Some(slot),
                    Verdict::Stay(slot) => slot,
                    Verdict::Raise(level, slot) => {
                        prop_assert_eq!(level, open + 1);
                        prop_assert!(now >= at(since) + levels.after(level).unwrap());
                        open = level;
                        slot
                    }
                    Verdict::Settled => None,
                };
            }
            prop_assert_eq!(open as usize, steps.len() + 1);
        }
    }
}
