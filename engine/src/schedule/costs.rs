//! Steps that take time by the clock, on machines with costs: sleeps, devices, and the latency from waking a thread
//! until it acts. Each has its own deciding point, since its length does not depend on the threads' speed.

use super::PointId;
use super::actor::Stage;
use super::machine::Machine;
use super::objects::recorded_wakes::Edges;
use super::outcome::cpu_accounting::SimulatedState;
use super::outcome::result::{Charge, Costed, Delay, DelayKind, Latency, Step};
use super::shared_cpus::{Shared, SharedCpuCosts};
use super::simulation::Simulation;
use super::source::{Operations, Whole};
use crate::program::{Program, ThreadId};
use crate::time::Ticks;
use std::mem::take;

impl<'a> Simulation<'a, Shared<'static, true>> {
    /// Ready to start on processors shared in infinitely small slices, with costs of waking. The program has been
    /// checked.
    pub(crate) fn with_costs(program: &'a Program, costs: &SharedCpuCosts) -> Self {
        Simulation::costed(program, costs, None)
    }

    /// Like `with_costs`, keeping the order in which operations take effect.
    pub(crate) fn traced_with_costs(program: &'a Program, costs: &SharedCpuCosts) -> Self {
        Simulation::costed(program, costs, Some(Vec::new()))
    }

    fn costed(program: &'a Program, costs: &SharedCpuCosts, trace: Option<Vec<Step>>) -> Self {
        let source = Whole::of(program);
        let machine = Shared::with_costs(costs, program.threads.len(), program.objects.len());
        let mut simulation = Simulation::with(program, source, machine, trace);
        simulation.number_runs();
        simulation.edges = Edges::of(program, true);
        simulation.limit(&costs.servers);
        simulation
    }

    /// Number of processors as a fraction; its numerator is also the number of parts of a tick that virtual time
    /// counts.
    pub(crate) fn capacity(&self) -> (i64, i64) {
        self.machine.capacity()
    }

    /// Runs to the end.
    pub(crate) fn run_to_end(mut self) -> Costed {
        while self.instant().is_some() {
            self.vertices.clear();
        }
        self.finish_with_costs()
    }

    /// The result, with the steps other than computing.
    pub(crate) fn finish_with_costs(mut self) -> Costed {
        let (latencies, charges) = (take(&mut self.latencies), take(&mut self.charges));
        let (delays, repeated) = (take(&mut self.delays), take(&mut self.echoes));
        let schedule = self.into_schedule();
        let like = |(point, run)| Some((point, schedule.runs.point(run)?));
        let echoes = repeated.into_iter().filter_map(like).collect();
        Costed { schedule, latencies, charges, echoes, delays }
    }
}

impl<M: Machine, O: Operations> Simulation<'_, M, O> {
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
}
