//! Who is at a worker's place in shared memory.
//!
//! ```text
//! Free ──► Starting ──► Taken ──► Abandoned
//!   ▲          │          │           │
//!   └──────────┴──────────┴───────────┘      Abandoned ──► Starting, where no other place is left
//! ```
//!
//! Invariant: a place changes only along these arrows.
//! Does not: change anything itself.

/// Who is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Occupancy {
    /// Nobody. Next: `Starting`.
    Free,
    /// A worker was asked for. Next: `Taken`, or `Free` if it does not come.
    Starting,
    /// A worker is at work. Next: `Free`, or `Abandoned` if its run ended it.
    Taken,
    /// A run ended its worker, by itself or by ignoring its timeout. The next worker of that role sees to it. Next: `Free`, or
    /// `Starting` where no other place is left.
    Abandoned,
}

impl Occupancy {
    /// Is there an arrow from here to there?
    pub fn may_become(self, next: Occupancy) -> bool {
        use Occupancy::{Abandoned, Free, Starting, Taken};
        matches!(
            (self, next),
            (Free | Abandoned, Starting) | (Starting, Taken | Free) | (Taken, Free | Abandoned) | (Abandoned, Free)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Occupancy::{self, Abandoned, Free, Starting, Taken};

    #[test]
    fn only_the_drawn_arrows_are_there() {
        let all = [Free, Starting, Taken, Abandoned];
        let arrows: Vec<(Occupancy, Occupancy)> =
            all.iter().flat_map(|from| all.map(|to| (*from, to))).filter(|(from, to)| from.may_become(*to)).collect();
        let drawn = [
            (Free, Starting),
            (Starting, Free),
            (Starting, Taken),
            (Taken, Free),
            (Taken, Abandoned),
            (Abandoned, Free),
            (Abandoned, Starting),
        ];
        assert_eq!(arrows, drawn);
    }
}
