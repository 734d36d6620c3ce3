//! Devices: a wait takes its recorded length, from when one of the device's servers is free.

use std::collections::VecDeque;

use crate::program::ObjectId;
use crate::schedule::actor::{Flow, Moment, Timer};
use crate::schedule::machine::{Machine, Origin, Why};
use crate::schedule::outcome::result::DelayKind;
use crate::schedule::simulation::Simulation;
use crate::schedule::source::Operations;
use crate::time::Ticks;

#[derive(Debug, Default)]
pub(in crate::schedule) struct Device {
    /// Servers in use.
    busy: u32,
    /// Threads that wait for a server, with the lengths of their requests; they are served in order of arrival.
    queue: VecDeque<(u32, u64)>,
}

impl<M: Machine, O: Operations> Simulation<'_, M, O> {
    pub(in crate::schedule) fn io(&mut self, thread: u32, object: ObjectId, length: Ticks) -> Flow {
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

    /// A server begins to serve the thread.
    fn serve(&mut self, thread: u32, object: ObjectId, length: u64) {
        self.note_served(object, length);
        self.clock(thread, length, Why::Object(object));
        self.time_out(thread, length);
    }

    /// Begins a step for a wait by the clock, if the machine has steps for such waits.
    fn clock(&mut self, thread: u32, length: u64, why: Why) {
        if M::COSTS {
            let from = self.actors[thread as usize].point;
            self.begin_latency(thread, from, length, DelayKind::Clock(why));
        }
    }

    /// The thread's wait by the clock is over; a server that served it turns to the next thread.
    pub(in crate::schedule) fn expired(&mut self, thread: u32) {
        if let Some(object) = self.served_by.get_mut(thread as usize).and_then(Option::take) {
            let device = self.devices.at(object);
            match device.queue.pop_front() {
                Some((next, length)) => {
                    self.served_by[next as usize] = Some(object);
                    // `next` arrived earlier, so the end of this service decides when the service of `next` begins.
                    self.actors[next as usize].point = self.actors[thread as usize].point;
                    self.machine.serve_after(next, thread, object);
                    self.serve(next, object, length);
                }
                None => device.busy = device.busy.saturating_sub(1),
            }
        }
        self.wake(thread, None);
    }

    pub(in crate::schedule) fn sleep(&mut self, thread: u32, length: Ticks) -> Flow {
        self.actors[thread as usize].next += 1;
        if !M::COSTS {
            self.begin_step(thread);
        }
        self.machine.block(thread, Why::Sleep);
        self.clock(thread, length.0, Why::Sleep);
        self.time_out(thread, length.0);
        Flow::Stop
    }

    /// Sleeping until a point in time: earlier work of the thread does not move the end.
    pub(in crate::schedule) fn sleep_until(&mut self, thread: u32, end: Ticks) -> Flow {
        let start = Moment { time: 0, point: crate::schedule::PointId::START };
        if M::COSTS {
            return self.sleep_from(thread, start, end.0);
        }
        self.sleep_to(thread, Moment { time: end.0, ..start }, Origin::Start)
    }

    /// Sleeping until a given time after another moment, whatever the thread has done since.
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

    /// Sleeping until the timer's next end: work of the thread since its last end does not move it.
    pub(in crate::schedule) fn sleep_next(&mut self, thread: u32, length: Ticks) -> Flow {
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
            // On a tie neither the thread nor the timer alone delays the thread: had the thread come earlier, it would
            // sleep.
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

    /// Gives the thread, which is off its processor, its turn after this length.
    fn time_out(&mut self, thread: u32, length: u64) {
        self.note_end(thread, length);
        self.machine.expire(thread, length);
    }
}
