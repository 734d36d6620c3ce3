//! Devices: a wait for one takes its recorded length, once one of the device's servers is free for it.

use std::collections::VecDeque;

use super::actor::{Flow, Moment, Timer};
use super::machine::{Machine, Origin, Why};
use super::result::DelayKind;
use super::simulation::Simulation;
use super::source::Operations;
use crate::program::ObjectId;
use crate::time::Ticks;

#[derive(Debug, Default)]
pub(super) struct Device {
    /// Servers at work.
    busy: u32,
    /// The threads that wait for a server, with the length of what they want, first come first served.
    queue: VecDeque<(u32, u64)>,
}

impl<M: Machine, O: Operations> Simulation<'_, M, O> {
    pub(super) fn io(&mut self, thread: u32, object: ObjectId, length: Ticks) -> Flow {
        self.actors[thread as usize].next += 1;
        if !M::COSTS {
            self.begin_step(thread);
        }
        self.machine.block(thread, Why::Object(object));
        let servers = self.servers.get(object.0 as usize).copied().unwrap_or(0);
        if servers > 0 {
            let device = self.devices.at(object);
            if device.busy >= servers {
                device.queue.push_back((thread, length.0));
                return Flow::Stop;
            }
            device.busy += 1;
            self.served_by[thread as usize] = Some(object);
        }
        self.serve(thread, object, length.0);
        Flow::Stop
    }

    /// A server begins.
    fn serve(&mut self, thread: u32, object: ObjectId, length: u64) {
        self.note_served(object, length);
        self.clock(thread, length, Why::Object(object));
        self.time_out(thread, length);
    }

    /// What the thread waits for by the clock begins now, if that is a step of its own.
    fn clock(&mut self, thread: u32, length: u64, why: Why) {
        if M::COSTS {
            let from = self.actors[thread as usize].point;
            self.begin_latency(thread, from, length, DelayKind::Clock(why));
        }
    }

    /// What the thread waited for by the clock is over.
    pub(super) fn expired(&mut self, thread: u32) {
        if let Some(object) = self.served_by.get_mut(thread as usize).and_then(Option::take) {
            let device = self.devices.at(object);
            match device.queue.pop_front() {
                Some((next, length)) => {
                    self.served_by[next as usize] = Some(object);
                    // It came before, and what it waited for is this.
                    self.actors[next as usize].point = self.actors[thread as usize].point;
                    self.machine.serve_after(next, thread, object);
                    self.serve(next, object, length);
                }
                None => device.busy = device.busy.saturating_sub(1),
            }
        }
        self.wake(thread, None);
    }

    pub(super) fn sleep(&mut self, thread: u32, length: Ticks) -> Flow {
        self.actors[thread as usize].next += 1;
        if !M::COSTS {
            self.begin_step(thread);
        }
        self.machine.block(thread, Why::Sleep);
        self.clock(thread, length.0, Why::Sleep);
        self.time_out(thread, length.0);
        Flow::Stop
    }

    /// Sleeping until a point in time. What comes before it does not move its end.
    pub(super) fn sleep_until(&mut self, thread: u32, end: Ticks) -> Flow {
        let start = Moment { time: 0, point: super::PointId::START };
        if M::COSTS {
            return self.sleep_from(thread, start, end.0);
        }
        self.sleep_to(thread, Moment { time: end.0, ..start }, Origin::Start)
    }

    /// Sleeping until a given length of time after another moment, whatever the thread has done since.
    fn sleep_from(&mut self, thread: u32, origin: Moment, end: u64) -> Flow {
        let length = end.saturating_sub(self.machine.now());
        if length == 0 {
            self.arrive(thread);
            return self.pass(thread, None);
        }
        self.actors[thread as usize].next += 1;
        self.machine.block(thread, Why::Sleep);
        let begun = self.virtual_end(origin.point);
        let whole = end.saturating_sub(origin.time);
        self.begin_latency_at(thread, origin.point, begun, whole, DelayKind::Clock(Why::Sleep));
        self.time_out(thread, length);
        Flow::Stop
    }

    fn sleep_until_timer(&mut self, thread: u32, length: u64) -> Flow {
        let now = self.machine.now();
        let Some(mut timer) = self.timers.get(&thread).copied() else {
            let flow = self.sleep(thread, Ticks(length));
            let end = now.saturating_add(length);
            let origin = Moment { time: end, point: self.actors[thread as usize].point };
            self.timers.insert(thread, Timer { origin, deadline: end });
            return flow;
        };
        timer.deadline = timer.deadline.saturating_add(length);
        let flow = self.sleep_from(thread, timer.origin, timer.deadline);
        if timer.deadline > now {
            let point = self.actors[thread as usize].point;
            timer.origin = Moment { time: timer.deadline, point };
        }
        self.timers.insert(thread, timer);
        flow
    }

    /// Sleeping until the thread's timer ends again: nothing since it did so last moves that.
    pub(super) fn sleep_next(&mut self, thread: u32, length: Ticks) -> Flow {
        if M::COSTS {
            return self.sleep_until_timer(thread, length.0);
        }
        if let Some(last) = self.deadlines.get_mut(&thread) {
            last.time = last.time.saturating_add(length.0);
            let end = *last;
            return self.sleep_to(thread, end, Origin::Timer);
        }
        let flow = self.sleep(thread, length);
        self.machine.wait_from(thread, Origin::Timer);
        let point = self.actors[thread as usize].point;
        let time = self.machine.now().saturating_add(length.0);
        self.deadlines.insert(thread, Moment { time, point });
        flow
    }

    fn sleep_to(&mut self, thread: u32, end: Moment, origin: Origin) -> Flow {
        let length = end.time.saturating_sub(self.machine.now());
        if length == 0 {
            // A thread that arrives exactly then is delayed by neither alone, and would have to wait until
            // then if it came earlier.
            self.arrive(thread);
            let flow = self.pass(thread, Some(end));
            if end.time == self.machine.now() {
                self.note_end(thread, 0);
            }
            return flow;
        }
        let actor = &mut self.actors[thread as usize];
        actor.next += 1;
        actor.point = end.point;
        self.machine.block(thread, Why::Sleep);
        self.machine.wait_from(thread, origin);
        self.time_out(thread, length);
        Flow::Stop
    }

    /// The thread, which has given its processor up, has its turn after this long.
    fn time_out(&mut self, thread: u32, length: u64) {
        self.note_end(thread, length);
        self.machine.expire(thread, length);
    }
}
