//! Waits for a length of time or until a point in time.

use rustc_hash::FxHashMap;

use crate::schedule::PointId;
use crate::schedule::actor::{Flow, Moment};
use crate::schedule::core::Core;
use crate::schedule::machine::{Machine, Origin, Why};
use crate::schedule::outcome::result::DelayKind;
use crate::time::Ticks;

/// The periodic timers of threads, by thread.
#[derive(Debug, Default)]
pub(in crate::schedule) struct Timers {
    /// The timer's last end, which may be in the future.
    deadlines: FxHashMap<u32, Moment>,
    /// The timers, if [`Machine::COSTS`].
    timers: FxHashMap<u32, Timer>,
}

/// A thread's periodic timer: its ends do not move with what the thread does in between.
#[derive(Clone, Copy, Debug)]
struct Timer {
    /// The last end that the thread slept until.
    origin: Moment,
    /// The timer's last end, slept until or not.
    deadline: u64,
}

impl Timers {
    /// Sleeping until the timer's next end: work of the thread since its last end does not move it.
    pub(in crate::schedule) fn sleep_next<M: Machine>(
        &mut self,
        core: &mut Core<'_, M>,
        thread: u32,
        length: Ticks,
    ) -> Flow {
        if M::COSTS {
            return self.sleep_until_timer(core, thread, length.0);
        }
        if let Some(last) = self.deadlines.get_mut(&thread) {
            last.time = last.time.saturating_add(length.0);
            let end = *last;
            return sleep_to(core, thread, end, Origin::Timer);
        }
        let flow = sleep(core, thread, length);
        core.machine.wait_from(thread, Origin::Timer);
        let point = core.actors[thread as usize].point;
        let time = core.machine.now().saturating_add(length.0);
        self.deadlines.insert(thread, Moment { time, point });
        flow
    }

    fn sleep_until_timer<M: Machine>(&mut self, core: &mut Core<'_, M>, thread: u32, length: u64) -> Flow {
        let now = core.machine.now();
        let Some(mut timer) = self.timers.get(&thread).copied() else {
            let flow = sleep(core, thread, Ticks(length));
            let end = now.saturating_add(length);
            let origin = Moment { time: end, point: core.actors[thread as usize].point };
            self.timers.insert(thread, Timer { origin, deadline: end });
            return flow;
        };
        timer.deadline = timer.deadline.saturating_add(length);
        let flow = sleep_from(core, thread, timer.origin, timer.deadline);
        if timer.deadline > now {
            let point = core.actors[thread as usize].point;
            timer.origin = Moment { time: timer.deadline, point };
        }
        self.timers.insert(thread, timer);
        flow
    }
}

pub(in crate::schedule) fn sleep<M: Machine>(core: &mut Core<'_, M>, thread: u32, length: Ticks) -> Flow {
    core.actors[thread as usize].next += 1;
    if !M::COSTS {
        core.begin_step(thread);
    }
    core.machine.block(thread, Why::Sleep);
    core.wait_by_clock(thread, length.0, Why::Sleep);
    Flow::Stop
}

/// Sleeping until a point in time: earlier work of the thread does not move the end.
pub(in crate::schedule) fn sleep_until<M: Machine>(core: &mut Core<'_, M>, thread: u32, end: Ticks) -> Flow {
    let start = Moment { time: 0, point: PointId::START };
    if M::COSTS {
        return sleep_from(core, thread, start, end.0);
    }
    sleep_to(core, thread, Moment { time: end.0, ..start }, Origin::Start)
}

/// Sleeping until a given time after another moment, whatever the thread has done since.
fn sleep_from<M: Machine>(core: &mut Core<'_, M>, thread: u32, origin: Moment, end: u64) -> Flow {
    let length = end.saturating_sub(core.machine.now());
    if length == 0 {
        core.arrive(thread);
        return core.pass(thread, None);
    }
    core.actors[thread as usize].next += 1;
    core.machine.block(thread, Why::Sleep);
    let begun = core.virtual_end(origin.point);
    let whole = end.saturating_sub(origin.time);
    core.begin_latency_at(thread, origin.point, begun, whole, DelayKind::Clock(Why::Sleep));
    core.time_out(thread, length);
    Flow::Stop
}

fn sleep_to<M: Machine>(core: &mut Core<'_, M>, thread: u32, end: Moment, origin: Origin) -> Flow {
    let length = end.time.saturating_sub(core.machine.now());
    if length == 0 {
        // On a tie neither the thread nor the timer alone delays the thread: had the thread come earlier, it would
        // sleep.
        core.arrive(thread);
        let flow = core.pass(thread, Some(end));
        if end.time == core.machine.now() {
            core.note_end(thread, 0);
        }
        return flow;
    }
    let actor = &mut core.actors[thread as usize];
    actor.next += 1;
    actor.point = end.point;
    core.machine.block(thread, Why::Sleep);
    core.machine.wait_from(thread, origin);
    core.time_out(thread, length);
    Flow::Stop
}
