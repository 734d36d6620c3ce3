//! How threads get a processor, use it and lose it.

use super::super::machine::Turn;
use super::Processors;
use super::parameters::UNIT;
use super::task::{NONE, TaskState};
use crate::schedule::outcome::cpu_accounting::SimulatedState;

/// Virtual times stay far below their largest value with slices of at most this length, ticks.
const LONGEST_SLICE: u64 = 1 << 50;

impl Processors<'_> {
    /// Virtual time that a thread of this weight uses in `length` of processor time.
    pub(super) fn virtual_time(length: u64, weight: u32) -> i64 {
        let scaled = match u64::from(weight) {
            UNIT => u128::from(length),
            weight => u128::from(length) * u128::from(UNIT) / u128::from(weight.max(1)),
        };
        i64::try_from(scaled).unwrap_or(i64::MAX)
    }

    /// Processor time in which a thread of this weight uses `virtual_time`, rounded up.
    fn real_time(virtual_time: i64, weight: u32) -> u64 {
        let virtual_time = u64::try_from(virtual_time).unwrap_or(0);
        match u64::from(weight) {
            UNIT => virtual_time,
            weight => {
                let real = (u128::from(virtual_time) * u128::from(weight)).div_ceil(u128::from(UNIT));
                u64::try_from(real).unwrap_or(u64::MAX)
            }
        }
    }

    pub(super) fn slice_of(&self, weight: u32) -> i64 {
        Self::virtual_time(self.parameters.slice.0, weight).max(1)
    }

    /// Accounts for the thread's processor time up to now.
    pub(super) fn charge(&mut self, thread: u32) {
        let now = self.agenda.now();
        let task = &mut self.tasks[thread as usize];
        let used = now.saturating_sub(task.charged);
        task.charged = now;
        if used == 0 {
            return;
        }
        if task.state == TaskState::Running {
            task.left = task.left.saturating_sub(used);
        }
        let passed = Self::virtual_time(used, task.weight);
        task.virtual_time = task.virtual_time.saturating_add(passed);
        let cpu = &mut self.cpus[task.cpu as usize];
        cpu.pass(task.weight, passed);
        cpu.allowance = cpu.allowance.saturating_sub(used);
    }

    /// Lets the thread, which has a processor, continue its computation.
    pub(super) fn run(&mut self, thread: u32) {
        let now = self.agenda.now();
        let task = &mut self.tasks[thread as usize];
        task.state = TaskState::Running;
        task.charged = now;
        let cpu = task.cpu;
        if self.accounting.doing(thread) != SimulatedState::Busy {
            self.accounting.change(thread, now, SimulatedState::Busy, Some(cpu));
        }
        self.arm(thread);
    }

    /// Schedules the next event of a thread that computes or spins and is charged up to now: the end of its
    /// computation, of its slice if others wait for the processor, or of the processor's allowance.
    pub(super) fn arm(&mut self, thread: u32) {
        let task = &self.tasks[thread as usize];
        let cpu = &self.cpus[task.cpu as usize];
        let mut length = if task.state == TaskState::Running { task.left } else { u64::MAX };
        if cpu.queued() > 0 {
            let left = Self::real_time(task.deadline.saturating_sub(task.virtual_time), task.weight);
            // With a clock tick, the kernel checks slices only at ticks (`entity_tick` in kernel/sched/fair.c).
            let left = if self.parameters.tick.0 > 0 { self.to_tick(left) } else { left };
            if left == 0 {
                let at = task.cpu;
                return self.resched(at);
            }
            length = length.min(left);
        }
        if self.quota.is_some() {
            if cpu.allowance == 0 {
                let at = task.cpu;
                return self.resched(at);
            }
            length = length.min(cpu.allowance);
        }
        self.task(thread).event = if length == u64::MAX { None } else { self.agenda.after(length, thread) };
    }

    /// Handles the end of a slice, or of the processor's allowance, of a thread that computes or spins. The thread is
    /// charged up to now.
    pub(super) fn stretch_over(&mut self, thread: u32) {
        let slice = &mut self.parameters.slice;
        slice.0 = slice.0.saturating_mul(self.slices.take()).min(LONGEST_SLICE);
        self.arm(thread);
    }

    /// Marks the processor for rescheduling at the end of this instant.
    pub(super) fn resched(&mut self, at: u32) {
        let cpu = &mut self.cpus[at as usize];
        if !std::mem::replace(&mut cpu.flagged, true) {
            self.flagged.push(at);
        }
    }

    /// Reschedules all flagged processors; false if there were none.
    pub(super) fn reschedule_flagged(&mut self) -> bool {
        if self.flagged.is_empty() {
            return false;
        }
        let mut flagged = std::mem::take(&mut self.flagged);
        if let Some(numbers) = &mut self.numbers {
            for place in (1..flagged.len()).rev() {
                flagged.swap(place, numbers.below(place as u64 + 1) as usize);
            }
        }
        for at in flagged.drain(..) {
            self.cpus[at as usize].flagged = false;
            self.schedule_on(at);
        }
        // Processors that were flagged during this round are rescheduled in the next one. If there are none, the buffer
        // is reused.
        if self.flagged.is_empty() {
            self.flagged = flagged;
        }
        true
    }

    fn schedule_on(&mut self, at: u32) {
        if self.cpus[at as usize].throttled {
            return;
        }
        let current = self.cpus[at as usize].current;
        if current == NONE {
            match self.cpus[at as usize].first(&self.tasks) {
                Some(next) => self.run_next(at, next),
                None => {
                    self.idle.insert(at);
                    self.newidle_balance(at);
                }
            }
            return;
        }
        let state = self.tasks[current as usize].state;
        if !matches!(state, TaskState::Running | TaskState::Spinning) {
            return;
        }
        self.charge(current);
        if !self.has_allowance(at) {
            return self.throttle(at);
        }
        if self.cpus[at as usize].queued() == 0 {
            return self.arm(current);
        }
        let over = self.renew(current);
        let cpu = &self.cpus[at as usize];
        let own = &self.tasks[current as usize];
        let unprotected = over || own.virtual_time >= cpu.protected;
        let better = cpu.first(&self.tasks).filter(|next| {
            let next = &self.tasks[*next as usize];
            unprotected && (!cpu.is_eligible(own) || (cpu.is_eligible(next) && next.deadline < own.deadline))
        });
        match better {
            Some(next) => {
                self.counts.preemptions += 1;
                self.stop(current);
                self.run_next(at, next);
                self.push_to_idle(at, current);
                self.load_balance(at);
            }
            None => {
                self.protect(at, current);
                self.arm(current);
            }
        }
    }

    /// Starts the thread's next slice if the present one is over; returns whether it was over.
    fn renew(&mut self, thread: u32) -> bool {
        let slice = self.slice_of(self.tasks[thread as usize].weight);
        let task = self.task(thread);
        let over = task.deadline <= task.virtual_time;
        if over {
            task.deadline = task.virtual_time.saturating_add(slice);
        }
        over
    }

    fn protect(&mut self, at: u32, thread: u32) {
        let task = &self.tasks[thread as usize];
        self.cpus[at as usize].protected =
            task.virtual_time.saturating_add(self.slice_of(task.weight)).min(task.deadline);
    }

    /// Takes the processor from the thread, which is charged up to now and then queues for the processor.
    pub(super) fn stop(&mut self, thread: u32) {
        let now = self.agenda.now();
        let task = &mut self.tasks[thread as usize];
        let at = task.cpu;
        if let Some(causes) = &mut self.causes {
            causes.sched_out(thread, at, now);
        }
        task.state = TaskState::Queued;
        task.event = None;
        let deadline = task.deadline;
        let cpu = &mut self.cpus[at as usize];
        cpu.current = NONE;
        cpu.push(thread, deadline);
        self.queued += 1;
        self.accounting.change(thread, now, SimulatedState::Ready, Some(at));
    }

    /// Lets the idle processor run a thread of its queue.
    fn run_next(&mut self, at: u32, thread: u32) {
        if !self.has_allowance(at) {
            return self.throttle(at);
        }
        let deadline = self.tasks[thread as usize].deadline;
        self.cpus[at as usize].remove(thread, deadline);
        self.queued = self.queued.saturating_sub(1);
        self.dispatch(at, thread, 0);
    }

    /// Gives the processor to a thread that is already in its sums, after the latency and the cost of switching.
    pub(super) fn dispatch(&mut self, at: u32, thread: u32, latency: u64) {
        let cpu = &mut self.cpus[at as usize];
        cpu.current = thread;
        cpu.resting = false;
        let mut switching = 0;
        if cpu.last != thread {
            // The first thread of a processor replaces no other thread, so it costs no switch.
            if cpu.last != NONE {
                switching = self.parameters.switch_cost.0;
            }
            self.counts.switches += 1;
            cpu.last = thread;
        }
        if let Some(causes) = &mut self.causes {
            causes.given(thread, at, self.agenda.now(), latency, switching);
        }
        let cost = latency.saturating_add(switching);
        self.renew(thread);
        self.protect(at, thread);
        let task = self.task(thread);
        task.cpu = at;
        task.state = TaskState::Arriving;
        if cost > 0 {
            let entry = self.agenda.after(cost, thread);
            self.task(thread).event = entry;
        } else if let Some(Turn::Act(thread)) = self.arrived(thread) {
            // A thread whose wait by the clock ends acts in the place of that end, not after all other ends.
            if self.expiring == thread {
                self.urgent = thread;
            } else {
                self.agenda.soon(thread);
            }
        }
    }

    /// The thread has its processor now: it continues computing, or acts.
    pub(super) fn arrived(&mut self, thread: u32) -> Option<Turn> {
        let now = self.agenda.now();
        let task = &mut self.tasks[thread as usize];
        task.charged = now;
        if task.left > 0 {
            self.run(thread);
            return None;
        }
        task.state = TaskState::Acting;
        if task.spins_for.take().is_some() {
            self.live += 1;
        }
        Some(Turn::Act(thread))
    }

    /// Takes the acting thread off its processor, because it waits or ends.
    pub(super) fn deschedule(&mut self, thread: u32, doing: SimulatedState) {
        self.live = self.live.saturating_sub(1);
        let now = self.agenda.now();
        let task = &mut self.tasks[thread as usize];
        let at = task.cpu;
        if let Some(causes) = &mut self.causes {
            causes.sched_out(thread, at, now);
        }
        self.accounting.change(thread, now, doing, Some(at));
        task.state = TaskState::Off;
        task.event = None;
        let cpu = &mut self.cpus[at as usize];
        task.lag = cpu.average().saturating_sub(task.virtual_time);
        cpu.leave(task);
        cpu.current = NONE;
        self.discount(thread);
        if doing == SimulatedState::Nothing {
            let own = self.task(thread).wanting.now(now);
            self.cpus[at as usize].wanted_lately.take(now, own);
        }
        let cpu = &self.cpus[at as usize];
        if cpu.queued() == 0 && !cpu.throttled {
            self.idle.insert(at);
        }
        if self.queued > 0 || self.quota.is_some() {
            self.resched(at);
        }
    }
}
