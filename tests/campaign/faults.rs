//! Causes faults, such as a killed process or a full disk. Each fault cleans up after itself, except for faults from
//! which awty must recover alone.
//!
//! A fault that finds no target is not counted.

mod bulk;
mod clock;
mod crowd;
mod disk;
pub mod failpoint;
mod freeze;
mod jobs;
mod long_run;
mod look;
mod notify;
mod processes;
mod promotion;
mod recover;
mod rewrite;
mod server;
mod settings;
mod slots;

pub use recover::{recover, tidy};

use crate::load::Shared;
use crate::random::Random;
use awty_testkit::{Cluster, DiskFault, Stop};
use rewrite::Rewrite;
use std::time::Duration;

const TO_RECOVER: Duration = Duration::from_secs(90);
pub const MAX_CRASHES: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fault {
    KillWorkerInRun,
    KillWorker,
    KillLauncher,
    KillMaintainer,
    KillOther,
    KillClient,
    KillPostmaster,
    TerminateWorker,
    CancelWorker,
    TerminateLauncher,
    TerminateClient,
    FreezeWorker,
    FreezeLauncher,
    StopSmart,
    StopFast,
    StopImmediate,
    ChangeSlot,
    PauseAndResume,
    CrashingJob,
    TakeSlots,
    FillNotifyQueue,
    DiskFullForWal,
    DiskFullForTables,
    DiskFull,
    FlushOfWalFails,
    FlushOfDataFails,
    Promote,
    PromoteBehind,
    SetClock,
    SetClockToDate,
    SetClockInRun,
    SetClockAtStart,
    BadCalls,
    Sqlsmith,
    VacuumFull,
    ClusterTable,
    Truncate,
    SetTablespace,
    SetFillfactor,
    AddAndDropColumn,
    Reindex,
    LongRunBesideCrash,
    TerminateOneOfMany,
    Failpoint,
}

pub const ALL: &[(Fault, u64)] = {
    use Fault::*;
    &[
        (KillWorkerInRun, 60),
        (KillWorker, 60),
        (KillLauncher, 7),
        (KillMaintainer, 5),
        (KillOther, 8),
        (KillClient, 4),
        (KillPostmaster, 6),
        (TerminateWorker, 4),
        (CancelWorker, 4),
        (TerminateLauncher, 3),
        (TerminateClient, 3),
        (FreezeWorker, 3),
        (FreezeLauncher, 3),
        (StopSmart, 3),
        (StopFast, 3),
        (StopImmediate, 4),
        (ChangeSlot, 2),
        (PauseAndResume, 3),
        (CrashingJob, 4),
        (TakeSlots, 2),
        (FillNotifyQueue, 2),
        (DiskFullForWal, 3),
        (DiskFullForTables, 3),
        (DiskFull, 3),
        (FlushOfWalFails, 3),
        (FlushOfDataFails, 3),
        (Promote, 4),
        (PromoteBehind, 4),
        (SetClock, 30),
        (SetClockToDate, 20),
        (SetClockInRun, 8),
        (SetClockAtStart, 8),
        (BadCalls, 4),
        (Sqlsmith, 3),
        (VacuumFull, 8),
        (ClusterTable, 5),
        (Truncate, 3),
        (SetTablespace, 3),
        (SetFillfactor, 5),
        (AddAndDropColumn, 3),
        (Reindex, 4),
        (LongRunBesideCrash, 4),
        (TerminateOneOfMany, 5),
        (Failpoint, 60),
    ]
};

impl Fault {
    pub fn any(random: &mut Random, may_be: impl Fn(Fault) -> bool) -> Option<Self> {
        let choices: Vec<(Fault, u64)> = ALL.iter().copied().filter(|(fault, _)| may_be(*fault)).collect();
        let mut place = random.below(choices.iter().map(|(_, weight)| weight).sum());
        choices.into_iter().find_map(|(fault, weight)| {
            let here = place < weight;
            place = place.saturating_sub(weight);
            here.then_some(fault)
        })
    }

    pub fn name(self) -> String {
        format!("{self:?}")
    }

    pub fn is_costly(self) -> bool {
        self == Fault::FillNotifyQueue
    }

    /// Returns whether the fault shrinks the files of awty's tables, for example by VACUUM FULL.
    pub fn shrinks(self) -> bool {
        [Fault::VacuumFull, Fault::ClusterTable, Fault::SetFillfactor].contains(&self)
    }

    pub fn is_for(self, movable_clock: bool) -> bool {
        match self {
            Fault::Failpoint => failpoint::are_built_in(),
            _ => movable_clock || !self.name().starts_with("SetClock"),
        }
    }

    pub fn strike(self, cluster: &mut Cluster, shared: &Shared, random: &mut Random) -> bool {
        match self {
            Fault::KillWorkerInRun => processes::kill(cluster, shared, processes::IN_RUN),
            Fault::KillWorker => processes::kill(cluster, shared, processes::ANY_WORKER),
            Fault::KillLauncher => processes::kill(cluster, shared, processes::LAUNCHER),
            Fault::KillMaintainer => processes::kill_maintainer(cluster, shared).unwrap_or(false),
            Fault::KillOther => processes::kill(cluster, shared, processes::OTHERS),
            Fault::KillClient => processes::kill(cluster, shared, processes::CLIENT),
            Fault::KillPostmaster => server::kill_postmaster(cluster, shared),
            Fault::TerminateWorker => processes::signal(shared, processes::ANY_WORKER, "pg_terminate_backend"),
            Fault::CancelWorker => processes::signal(shared, processes::IN_RUN, "pg_cancel_backend"),
            Fault::TerminateLauncher => processes::terminate_launcher(shared),
            Fault::TerminateClient => processes::signal(shared, processes::CLIENT, "pg_terminate_backend"),
            Fault::FreezeWorker => freeze::freeze(cluster, shared, random, processes::ANY_WORKER),
            Fault::FreezeLauncher => freeze::freeze(cluster, shared, random, processes::LAUNCHER),
            Fault::StopSmart => server::stop_smart(cluster, shared),
            Fault::StopFast => server::stop(cluster, shared, Stop::Fast),
            Fault::StopImmediate => server::stop(cluster, shared, Stop::Immediate),
            Fault::ChangeSlot => settings::change_slot(cluster, random),
            Fault::PauseAndResume => jobs::pause_and_resume(shared, random),
            Fault::CrashingJob => jobs::crashing_job(cluster, shared, random),
            Fault::TakeSlots => slots::take_all(cluster, shared),
            Fault::FillNotifyQueue => notify::fill(shared),
            Fault::DiskFullForWal => disk::fail(cluster, shared, random, DiskFault::FullForWal),
            Fault::DiskFullForTables => disk::fail(cluster, shared, random, DiskFault::FullForTables),
            Fault::DiskFull => disk::fail(cluster, shared, random, DiskFault::Full),
            Fault::FlushOfWalFails => disk::fail(cluster, shared, random, DiskFault::FlushOfWal),
            Fault::FlushOfDataFails => disk::fail(cluster, shared, random, DiskFault::FlushOfData),
            Fault::Promote => promotion::promote(cluster, shared),
            Fault::PromoteBehind => promotion::promote_behind(cluster, shared, random),
            Fault::SetClock => clock::set(cluster, random),
            Fault::SetClockToDate => clock::set_to_date(cluster, random),
            Fault::SetClockInRun => clock::set_in_run(cluster, shared, random),
            Fault::SetClockAtStart => clock::set_at_start(cluster, shared, random),
            Fault::Failpoint => failpoint::strike(shared, random),
            Fault::BadCalls => crate::bad_calls::strike(cluster, shared, random),
            Fault::Sqlsmith => crate::sqlsmith::strike(cluster, shared, random),
            Fault::VacuumFull => rewrite::strike(Rewrite::VacuumFull, shared, random),
            Fault::ClusterTable => rewrite::strike(Rewrite::Cluster, shared, random),
            Fault::Truncate => rewrite::strike(Rewrite::Truncate, shared, random),
            Fault::SetTablespace => rewrite::strike(Rewrite::Tablespace, shared, random),
            Fault::SetFillfactor => rewrite::strike(Rewrite::Fillfactor, shared, random),
            Fault::AddAndDropColumn => rewrite::strike(Rewrite::Columns, shared, random),
            Fault::Reindex => rewrite::strike(Rewrite::Reindex, shared, random),
            Fault::LongRunBesideCrash => long_run::beside_crash(cluster, shared, random),
            Fault::TerminateOneOfMany => crowd::terminate_one(shared, random),
        }
    }
}
