//! The faults: what is done to the server while it works, one idea per file, and how often each is worth it.
//!
//! Invariant: a fault that did not come about (its target was not there) is not counted, and each leaves the server as it
//! was, but for what it is to recover from.
//! Does not: look at the promises; see `checker`.

pub mod failpoint;
mod jobs;
mod look;
mod processes;
mod recover;
mod server;
mod settings;

pub use recover::recover;

use crate::load::Shared;
use crate::random::Random;
use awty_testkit::{Cluster, Stop};
use std::time::Duration;

/// From a fault to when all is done that was due then. A crash takes up to some seconds on a loaded machine.
const TO_RECOVER: Duration = Duration::from_secs(90);
/// Of the server, before a check that was there each time is held.
pub const MAX_CRASHES: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fault {
    KillWorkerInRun,
    KillWorker,
    KillLauncher,
    KillDispatcher,
    KillCheckpointer,
    KillPostmaster,
    TerminateWorker,
    CancelWorker,
    TerminateLauncher,
    StopSmart,
    StopFast,
    StopImmediate,
    ChangeSlot,
    PauseAndResume,
    CrashingJob,
    Promote,
    SetClock,
    BadCalls,
    Sqlsmith,
    Failpoint,
}

/// All of them, and how many times as often as others each is chosen.
pub const ALL: &[(Fault, u64)] = {
    use Fault::*;
    &[
        (KillWorkerInRun, 4),
        (KillWorker, 3),
        (KillLauncher, 1),
        (KillDispatcher, 1),
        (KillCheckpointer, 1),
        (KillPostmaster, 1),
        (TerminateWorker, 2),
        (CancelWorker, 2),
        (TerminateLauncher, 1),
        (StopSmart, 1),
        (StopFast, 1),
        (StopImmediate, 2),
        (ChangeSlot, 1),
        (PauseAndResume, 1),
        (CrashingJob, 1),
        (Promote, 1),
        (SetClock, 4),
        (BadCalls, 1),
        (Sqlsmith, 1),
        (Failpoint, 4),
    ]
};

impl Fault {
    /// One of those that may be, each as often as it is worth; none if nothing may be.
    pub fn any(random: &mut Random, may_be: impl Fn(Fault) -> bool) -> Option<Self> {
        let choices: Vec<(Fault, u64)> = ALL.iter().copied().filter(|(fault, _)| may_be(*fault)).collect();
        let mut place = random.below(choices.iter().map(|(_, weight)| weight).sum());
        choices.into_iter().find_map(|(fault, weight)| {
            let here = place < weight;
            place = place.saturating_sub(weight);
            here.then_some(fault)
        })
    }

    /// As the command line and the report name it.
    pub fn name(self) -> String {
        format!("{self:?}")
    }

    /// Can it be done in a round whose clock can be set, or cannot? A standby has a clock of its own.
    pub fn is_for(self, movable_clock: bool) -> bool {
        match self {
            Fault::SetClock => movable_clock,
            Fault::Promote => !movable_clock,
            Fault::Failpoint => failpoint::are_built_in(),
            _ => true,
        }
    }

    /// Does it, and returns whether it came about.
    pub fn strike(self, cluster: &mut Cluster, shared: &Shared, random: &mut Random) -> bool {
        match self {
            Fault::KillWorkerInRun => processes::kill(cluster, shared, processes::IN_RUN),
            Fault::KillWorker => processes::kill(cluster, shared, processes::ANY_WORKER),
            Fault::KillLauncher => processes::kill(cluster, shared, processes::LAUNCHER),
            Fault::KillDispatcher => processes::kill_dispatcher(cluster, shared).unwrap_or(false),
            Fault::KillCheckpointer => processes::kill(cluster, shared, processes::CHECKPOINTER),
            Fault::KillPostmaster => server::kill_postmaster(cluster, shared),
            Fault::TerminateWorker => processes::signal(shared, processes::ANY_WORKER, "pg_terminate_backend"),
            Fault::CancelWorker => processes::signal(shared, processes::IN_RUN, "pg_cancel_backend"),
            Fault::TerminateLauncher => processes::terminate_launcher(shared),
            Fault::StopSmart => server::stop_smart(cluster, shared),
            Fault::StopFast => server::stop(cluster, shared, Stop::Fast),
            Fault::StopImmediate => server::stop(cluster, shared, Stop::Immediate),
            Fault::ChangeSlot => settings::change_slot(cluster, random),
            Fault::PauseAndResume => jobs::pause_and_resume(shared, random),
            Fault::CrashingJob => jobs::crashing_job(cluster, shared, random),
            Fault::Promote => server::promote(cluster, shared),
            Fault::SetClock => settings::set_clock(cluster, random),
            Fault::Failpoint => failpoint::strike(shared, random),
            Fault::BadCalls => crate::bad_calls::strike(cluster, shared, random),
            Fault::Sqlsmith => crate::sqlsmith::strike(cluster, shared, random),
        }
    }
}
