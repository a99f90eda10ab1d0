//! The state of a worker's place in shared memory. A place changes only along these arrows.
//!
//! ```text
//! Free ──► Starting ──► Taken ──► Abandoned
//!   ▲          │          │           │
//!   └──────────┴──────────┴───────────┘      Abandoned ──► Starting, if no other place is free
//! ```

/// State of a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Occupancy {
    /// No worker. Next: `Starting`.
    Free,
    /// The launcher has requested a worker. Next: `Taken`, or `Free` if the worker does not start.
    Starting,
    /// A worker is running. Next: `Free`, or `Abandoned` if a run ended the process.
    Taken,
    /// A run ended the worker's process, or made the server end it by ignoring its timeout. The next worker of the role
    /// cleans up. Next: `Free`, or `Starting` if no other place is free.
    Abandoned,
}

impl Occupancy {
    /// Whether the diagram has an arrow from `self` to `next`.
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
