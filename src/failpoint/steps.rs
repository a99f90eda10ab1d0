//! A test compares this list with the calls of `failpoint!`.

pub struct Step {
    pub name: &'static str,
    pub may_raise: bool,
}

pub const STEPS: &[Step] = &[
    step("launcher.turn"),
    step("launcher.before_start"),
    step("launcher.started"),
    step("maintainer.connected"),
    step("maintainer.locked"),
    step("maintainer.in_flight_taken"),
    step("maintainer.noted"),
    step("maintainer.inspected"),
    step("maintainer.looks_after"),
    step("worker.entered"),
    step("worker.connected"),
    step("worker.took_over"),
    step("worker.chose"),
    step("in_flight.begun"),
    step("in_flight.written"),
    step("in_flight.flushed"),
    step("run.claimed"),
    step("run.begun"),
    step("run.locked"),
    step("run.read"),
    step("run.settled"),
    step("call.before"),
    step("call.after"),
    step("call.deferred"),
    step("run.called"),
    step("run.row_locked"),
    step("run.next_begun"),
    step("run.booked"),
    step("commit.before_record"),
    no_error("commit.after_record"),
    step("run.over"),
    step("run.cleaned"),
    step("failure.begun"),
    step("failure.row_locked"),
    step("failure.booked"),
    step("run.released"),
    step("abandoned.seen"),
    step("abandoned.counted"),
    step("worker.flushed"),
    step("worker.caught_up"),
    step("worker.leaving"),
    step("in_flight.cleared"),
    step("worker.left"),
    step("claim.locked"),
    step("claim.given"),
    step("answer.locked"),
    step("answer.booked"),
];

const fn step(name: &'static str) -> Step {
    Step { name, may_raise: true }
}

const fn no_error(name: &'static str) -> Step {
    Step { name, may_raise: false }
}
