//! The state of a worker's place in shared memory changes only along these arrows.
//!
//! ```text
//! Free ──► Starting ──► Taken ──► Abandoned
//!   ▲          │          │           │
//!   └──────────┴──────────┴───────────┘      Abandoned ──► Starting, if no other place is free
//! ```

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Occupancy {
    Free,
    Starting,
    Taken,
    Abandoned,
}

impl Occupancy {
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
