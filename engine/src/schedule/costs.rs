//! Steps that take time by the clock, on machines with costs: sleeps, devices, and the latency from waking a thread
//! until it acts. Each has its own deciding point, since its length does not depend on the threads' speed.

use super::PointId;
use super::actor::Stage;
use super::core::Core;
use super::machine::{Machine, Why};
use super::outcome::cpu_accounting::SimulatedState;
use super::outcome::result::{Charge, Delay, DelayKind, Latency};
use crate::program::ThreadId;
use crate::time::Ticks;

impl<M: Machine> Core<'_, M> {
    /// Notes that the step to the thread's present point ends now.
    pub(super) fn end_step(&mut self, thread: u32) {
        if M::COSTS {
            self.note_end(thread, 0);
        }
    }

    /// Ends the thread's step, unless the step is computing.
    pub(super) fn end_latency(&mut self, thread: u32) {
        if M::COSTS && std::mem::take(&mut self.actors[thread as usize].timed) {
            let now = self.machine.virtual_now();
            if let Some(latency) = self.latency_to(self.actors[thread as usize].point) {
                latency.virtual_length = now.saturating_sub(latency.begun);
            }
            self.end_step(thread);
        }
    }

    /// The clock-timed step that ends in this point; `None` for computing.
    fn latency_to(&mut self, point: PointId) -> Option<&mut Latency> {
        let place = self.latencies.binary_search_by_key(&point, |latency| latency.point).ok()?;
        self.latencies.get_mut(place)
    }

    /// Virtual time at the end of the step to this point, which is a clock-timed step or the start.
    pub(super) fn virtual_end(&mut self, point: PointId) -> u128 {
        self.latency_to(point).map_or(0, |latency| latency.begun + latency.virtual_length)
    }

    /// The thread begins a step of `length` by the clock, which the point `from` decides.
    pub(super) fn begin_latency(&mut self, thread: u32, from: PointId, length: u64, of: DelayKind) {
        let begun = self.machine.virtual_now();
        self.begin_latency_at(thread, from, begun, length, of);
    }

    /// Like `begin_latency`, for a step that began at another virtual time.
    pub(super) fn begin_latency_at(
        &mut self,
        thread: u32,
        from: PointId,
        begun: u128,
        length: u64,
        of: DelayKind,
    ) {
        let point = self.forest.add(from);
        self.latencies.push(Latency {
            point,
            length: Ticks(length),
            of,
            begun,
            virtual_length: 0,
            #[cfg(any(test, feature = "synth"))]
            of_thread: (ThreadId(thread), self.actors[thread as usize].next),
        });
        let actor = &mut self.actors[thread as usize];
        actor.point = point;
        actor.timed = true;
    }

    /// Wakes a thread that waits or has just been created. It acts as soon as it has a processor.
    pub(super) fn wake(&mut self, thread: u32, by: Option<u32>) {
        let from = self.actors[thread as usize].point;
        self.wake_from(thread, from, by, false);
    }

    /// Wakes a thread that then tries again to take what it waited for. The attempt may fail; the waker decides when it
    /// happens.
    pub(super) fn wake_to_retry(&mut self, thread: u32, by: u32) {
        let from = self.actors[by as usize].point;
        self.wake_from(thread, from, Some(by), true);
    }

    /// Wakes a thread that has yet to take a lock. The waker has already decided the thread's present moment.
    pub(super) fn wake_to_lock(&mut self, thread: u32, by: u32) {
        let from = self.actors[thread as usize].point;
        self.wake_from(thread, from, Some(by), true);
    }

    fn wake_from(&mut self, thread: u32, from: PointId, by: Option<u32>, retries: bool) {
        if !M::COSTS {
            return self.machine.wake(thread, by);
        }
        let delay = self.machine.wake_delay(by);
        if delay == 0 {
            return self.machine.wake(thread, by);
        }
        let of = match self.machine.doing(thread) {
            SimulatedState::Blocked(why) => DelayKind::Woken(Some(why)),
            _ => DelayKind::Woken(None),
        };
        self.begin_latency(thread, from, delay, of);
        if let Some(trace) = &self.trace {
            self.delays.push(Delay {
                after: trace.len(),
                thread: ThreadId(thread),
                operation: self.actors[thread as usize].next,
                by: by.filter(|_| retries).map(|by| (ThreadId(by), self.actors[by as usize].next)),
                length: Ticks(delay),
            });
        }
        self.actors[thread as usize].since = self.machine.now().saturating_add(delay);
        self.machine.wake_after(thread, delay);
    }

    /// Notes the cost of waking others that makes the thread's next computation longer.
    pub(super) fn note_charge(&mut self, thread: u32, length: Ticks) {
        let debt = self.machine.debt(thread);
        if debt > 0 && length.0 > 0 {
            let point = self.actors[thread as usize].point;
            let actor = &self.actors[thread as usize];
            // `next` is already behind a compute operation, but still at a `once`.
            let operation = actor.next.saturating_sub(u32::from(actor.stage != Stage::InOnce));
            let thread = ThreadId(thread);
            self.charges.push(Charge { point, length: Ticks(debt), thread, operation });
        }
    }

    /// The thread, which is off its processor, waits by the clock for this long and then has its turn.
    pub(super) fn wait_by_clock(&mut self, thread: u32, length: u64, why: Why) {
        if M::COSTS {
            let from = self.actors[thread as usize].point;
            self.begin_latency(thread, from, length, DelayKind::Clock(why));
        }
        self.time_out(thread, length);
    }

    /// Gives the thread, which is off its processor, its turn after this length.
    pub(super) fn time_out(&mut self, thread: u32, length: u64) {
        self.note_end(thread, length);
        self.machine.expire(thread, length);
    }
}
