//! Moving threads that are not woken: idle processors pull threads, unequal queues are evened out, and a pre-empted
//! thread moves to an idle processor.

use super::Processors;
use super::task::{NONE, TaskState};
use crate::time::Ticks;

/// A busy processor compares queues at most once in this time, multiplied by the number of processors (`sd_init` in
/// kernel/sched/topology.c: a millisecond times `busy_factor`).
const BALANCE_PER_CPU: u64 = 16_000_000 * Ticks::PER_NS;

impl Processors<'_> {
    /// Lets a processor without threads pull a thread from the longest queue; if there is none, the processor stays
    /// idle.
    pub(super) fn newidle_balance(&mut self, at: u32) {
        self.give_back(at);
        let cpu = &mut self.cpus[at as usize];
        if self.queued == 0 || cpu.resting || !self.idle.contains(at) {
            return;
        }
        if self.parameters.tick.0 == 0 {
            self.steal_waiting(at, 0);
            return;
        }
        let weight = cpu.newidle_chance.asks(self.numbers.as_mut());
        let taken = weight.is_some() && self.steal_waiting(at, 0);
        let cpu = &mut self.cpus[at as usize];
        if let Some(weight) = weight {
            cpu.newidle_chance.learn(if taken { weight } else { 0 });
        }
        if !taken {
            cpu.resting = true;
            self.await_tick();
        }
    }

    /// Moves a thread to the idle processor, from the longest queue that has a thread which may use it. Returns whether
    /// there was such a thread.
    fn steal_waiting(&mut self, at: u32, latency: u64) -> bool {
        // Of equally long queues, the first one is used.
        let mut longest = 0;
        let mut found = None;
        for (cpu, from) in self.cpus.iter().zip(0_u32..).filter(|(cpu, _)| cpu.queued() > 0) {
            if cpu.queued() > longest
                && let Some(thread) = cpu.in_queue().find(|thread| self.may_use(*thread, at))
            {
                (longest, found) = (cpu.queued(), Some((from, thread)));
            }
        }
        let Some((from, thread)) = found else { return false };
        self.idle.remove(at);
        self.migrate_to_idle(from, at, thread, latency);
        true
    }

    /// Time from now to the clock's first tick that is at least this far away.
    pub(super) fn to_tick(&self, least: u64) -> u64 {
        let tick = self.parameters.tick.0.max(1);
        let past = self.agenda.now().saturating_add(least).wrapping_add(self.phase) % tick;
        if past == 0 { least } else { least.saturating_add(tick - past) }
    }

    /// Schedules when idle processors next check for waiting threads: after the clock's next tick and the interrupt
    /// that wakes them.
    pub(super) fn await_tick(&mut self) {
        if self.tick.is_none() {
            let left = self.to_tick(1);
            let latency = self.latency();
            self.tick = self.agenda.after(left.saturating_add(latency), self.tasks.len() as u32 + 1);
        }
    }

    /// After a tick each idle processor tries to pull a thread.
    pub(super) fn ticks(&mut self, entry: u32) {
        if self.tick != Some(entry) {
            return;
        }
        self.tick = None;
        let idle: Vec<u32> = self.idle.from(0).collect();
        for at in idle {
            if self.queued == 0 || !self.steal_waiting(at, 0) {
                // The processor rests until the next tick if threads wait elsewhere.
                self.cpus[at as usize].resting = self.queued > 0;
            }
        }
        if self.queued > 0 && !self.idle.is_empty() {
            self.await_tick();
        }
    }

    /// Moves a queued thread from the sums of one processor to those of another.
    fn migrate(&mut self, from: u32, to: u32, thread: u32) {
        let current = self.cpus[from as usize].current;
        if current != NONE
            && matches!(self.tasks[current as usize].state, TaskState::Running | TaskState::Spinning)
        {
            self.charge(current);
        }
        self.counts.migrations += 1;
        self.queued = self.queued.saturating_sub(1);
        let task = &mut self.tasks[thread as usize];
        let left = task.deadline.saturating_sub(task.virtual_time);
        let cpu = &mut self.cpus[from as usize];
        cpu.remove(thread, task.deadline);
        task.lag = cpu.average().saturating_sub(task.virtual_time);
        cpu.leave(task);
        self.discount(thread);
        self.join(to, thread);
        let task = self.task(thread);
        task.deadline = task.virtual_time.saturating_add(left);
    }

    /// Moves a thread that was just pre-empted on this processor to an idle processor that it may use.
    pub(super) fn push_to_idle(&mut self, at: u32, thread: u32) {
        if self.tasks[thread as usize].state != TaskState::Queued {
            return;
        }
        if let Some(to) = self.idle_for(thread, at) {
            self.idle.remove(to);
            self.migrate_to_idle(at, to, thread, 0);
        }
    }

    /// Moves a queued thread from one processor to an idle one.
    fn migrate_to_idle(&mut self, from: u32, to: u32, thread: u32, latency: u64) {
        self.migrate(from, to, thread);
        if self.has_allowance(to) {
            self.dispatch(to, thread, latency);
        } else {
            self.enqueue(to, thread);
            self.throttle(to);
        }
    }

    /// After a switch: if another processor has at least two threads fewer than this one, a queued thread moves there.
    pub(super) fn load_balance(&mut self, at: u32) {
        let now = self.agenda.now();
        if now < self.cpus[at as usize].balanced {
            return;
        }
        let interval = BALANCE_PER_CPU.saturating_mul(self.cpus.len() as u64);
        self.cpus[at as usize].balanced = now.saturating_add(interval);
        let own = self.cpus[at as usize].wanted();
        let target = (0..self.cpus.len() as u32).min_by_key(|cpu| self.cpus[*cpu as usize].wanted());
        let Some(to) = target.filter(|to| self.cpus[*to as usize].wanted().saturating_add(2) <= own) else {
            return;
        };
        let movable = self.cpus[at as usize].in_queue().find(|thread| self.may_use(*thread, to));
        if let Some(thread) = movable {
            self.migrate(at, to, thread);
            self.idle.remove(to);
            self.enqueue(to, thread);
            self.wakeup_preempt(to, thread);
        }
    }
}
