//! Decides when a row of a watched table is late, and which level its alert has.
//!
//! A row's clock starts at `since`. Level 1 is due at `since + within`. Level k + 1 is due at `since + escalate[k]`.
//! Each due time is rounded up to a slot, so no level is early. Levels are raised one at a time.
//!
//! Invariant: the verdict depends only on the row, its open alert and the clock.

use crate::limits::Limits;
use crate::{Time, Width, later};
use chrono::TimeDelta;

/// The times from the start of a row's clock to each alert level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels(Vec<TimeDelta>);

/// The reason why a rule's levels are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelError {
    /// The rule's `within` is zero or negative.
    Within,
    /// The level of this number in `escalate`, counted from 1, is not later than the level before it.
    Escalate(usize),
    /// The rule has more than [`MAX_LEVELS`] levels.
    TooMany,
}

/// The largest number of levels of a rule.
pub const MAX_LEVELS: usize = 100;

impl Levels {
    /// Returns levels from `within` and `escalate`.
    ///
    /// # Errors
    /// [`LevelError`] unless `within` is positive and each level is later than the level before.
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

    /// Returns the time from `since` to a level. The first level has number 1. Returns `None` if the rule has no such
    /// level.
    pub fn after(&self, level: u32) -> Option<TimeDelta> {
        self.0.get(usize::try_from(level).ok()?.checked_sub(1)?).copied()
    }

    /// Returns when a row becomes late. If `since` is [`Time::MIN_UTC`], returns the same.
    pub fn due(&self, since: Time) -> Time {
        if since == Time::MIN_UTC { since } else { later(since, self.0[0]) }
    }

    fn slot(&self, level: u32, since: Time, width: Width) -> Option<Time> {
        Some(width.round_up(later(since, self.after(level)?)))
    }
}

/// State of a row of a watched table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowState {
    /// The row needs no alert, because the row is gone, its condition holds, or its clock has not started.
    Settled,
    /// The rule's condition has not held for the row since this time. [`Time::MIN_UTC`] stands for `-infinity`.
    Waiting(Time),
}

/// What happens to the check and the alert of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The row needs no alert. An open alert is cleared.
    Settled,
    /// Level 1 is not due yet. An open alert is cleared, and the row is checked at this slot.
    Ahead(Time),
    /// The open alert keeps its level. The row is checked again at this slot, if there is one.
    Stay(Option<Time>),
    /// The alert is raised to this level. The row is checked again at this slot, if there is one.
    Raise(u32, Option<Time>),
}

/// Returns the verdict on a row. `open` is the level of its open alert, or 0 if it has no open alert.
pub fn judge(found: RowState, open: u32, levels: &Levels, limits: &Limits, now: Time) -> Verdict {
    let RowState::Waiting(since) = found else { return Verdict::Settled };
    let width = limits.width;
    let slot = |level| levels.slot(level, since, width);
    // A slot beyond the horizon is replaced by the horizon.
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

/// Returns the slot of the first check of a row that was just written, or `None` if the row needs no check.
pub fn start(found: RowState, open: u32, levels: &Levels, limits: &Limits, now: Time) -> Option<Time> {
    match judge(found, open, levels, limits, now) {
        Verdict::Settled => None,
        Verdict::Ahead(slot) => Some(slot),
        Verdict::Stay(slot) => slot,
        Verdict::Raise(..) => Some(limits.width.after(now)),
    }
}

const MAX_NAME: usize = 63;

/// Returns the name `awty_<rule><suffix>` of a rule's trigger or function. A long name is cut, and a hash of the rule's
/// name is appended.
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
        let found = RowState::Waiting(clock("07:00:00"));
        let now = clock("10:00:00");
        let next = limits.width.after(now);
        assert_eq!(judge(found, 0, &levels, &limits, now), Verdict::Raise(1, Some(next)));
        assert_eq!(judge(found, 1, &levels, &limits, now), Verdict::Raise(2, None));
        assert_eq!(judge(found, 2, &levels, &limits, now), Verdict::Stay(None));
        assert_eq!(judge(RowState::Settled, 1, &levels, &limits, now), Verdict::Settled);
    }

    #[test]
    fn a_row_that_is_not_late_yet_is_asked_about_at_its_slot() {
        let (levels, limits) = (hours(&[1, 2]), limits());
        let found = RowState::Waiting(clock("09:30:00.5"));
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
            judge(RowState::Waiting(Time::MIN_UTC), 0, &levels, &limits, clock("10:00:00")),
            Verdict::Raise(1, None)
        );
        assert!(matches!(
            judge(RowState::Waiting(Time::MAX_UTC), 0, &levels, &limits, clock("10:00:00")),
            Verdict::Ahead(_)
        ));
    }

    proptest! {
        #[test]
        fn no_level_is_early_or_left_out(
            since in 0_i64..200_000, first in 1_i64..90_000, steps in prop::collection::vec(1_i64..90_000, 0..4), began in 0_i64..400_000,
        ) {
            let limits = limits();
            let at = |second| clock("00:00:00") + TimeDelta::seconds(second);
            let mut total = first;
            let escalate: Vec<_> = steps.iter().map(|step| { total += step; TimeDelta::seconds(total) }).collect();
            let levels = Levels::new(TimeDelta::seconds(first), &escalate).unwrap();
            let found = RowState::Waiting(at(since));
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
