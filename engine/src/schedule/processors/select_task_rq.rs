//! Chooses the processor for a woken thread, and its place in the queue there. [`super::load_balance`] moves it later.

use super::Processors;
use super::load::Load;
use super::task::{NONE, TaskState};

impl Processors<'_> {
    /// Places a woken thread: on its last processor if that is idle, else on an idle one if the search finds one, else
    /// in a queue.
    pub(super) fn select_task_rq(&mut self, thread: u32, by: Option<u32>) {
        let last = self.tasks[thread as usize].cpu;
        if let Some(at) = self.idle_for(thread, last) {
            self.idle.remove(at);
            self.join(at, thread);
            let latency = self.latency().saturating_add(self.wake_ipi_ns(by));
            if !self.has_allowance(at) {
                self.enqueue(at, thread);
                return self.throttle(at);
            }
            return self.dispatch(at, thread, latency);
        }
        let near = by.map(|by| self.tasks[by as usize].cpu);
        let at = self.shorter(thread, last, near);
        self.join(at, thread);
        self.enqueue(at, thread);
        self.wakeup_preempt(at, thread);
        if self.parameters.tick.0 > 0 && !self.idle.is_empty() {
            self.await_tick();
        }
    }

    pub(super) fn idle_for(&mut self, thread: u32, last: u32) -> Option<u32> {
        if self.idle.is_empty() {
            return None;
        }
        if last != NONE && self.idle.contains(last) && self.may_use(thread, last) {
            return Some(last);
        }
        if last != NONE && self.parameters.idle_found < 1000 && self.draw() >= self.parameters.idle_found {
            return None;
        }
        let start = match &mut self.numbers {
            Some(numbers) => numbers.below(self.cpus.len() as u64) as u32,
            None if last == NONE => 0,
            None => last.wrapping_add(1),
        };
        self.idle.from(start).find(|cpu| self.may_use(thread, *cpu))
    }

    pub(super) fn may_use(&self, thread: u32, cpu: u32) -> bool {
        match self.tasks[thread as usize].mask {
            None => true,
            Some(mask) => self.masks[mask as usize].binary_search(&cpu).is_ok(),
        }
    }

    /// The processor on which a thread queues if no idle one was found: the thread's last one, or the waker's if that
    /// one's recent load would be no higher (`wake_affine_weight` in kernel/sched/fair.c); for a new thread the one
    /// with the least recent load.
    fn shorter(&mut self, thread: u32, last: u32, near: Option<u32>) -> u32 {
        let near = near.filter(|near| *near != NONE && self.may_use(thread, *near));
        let now = self.agenda.now();
        if last != NONE && self.may_use(thread, last) {
            let own = self.task(thread).wanting.now(now);
            let mut wanted = |cpu: u32| self.cpus[cpu as usize].wanted_lately.now(now);
            return match near {
                // Up to 8 % more counts as the same, as in the kernel.
                Some(near)
                    if near != last
                        && wanted(near).saturating_add(own).saturating_mul(100)
                            < wanted(last).saturating_sub(own).saturating_mul(108) =>
                {
                    near
                }
                _ => last,
            };
        }
        let all = (0..self.cpus.len() as u32).filter(|cpu| self.may_use(thread, *cpu));
        let all: Vec<u32> = all.collect();
        all.into_iter().min_by_key(|cpu| self.cpus[*cpu as usize].wanted_lately.now(now)).unwrap_or(0)
    }

    /// Counts the thread for this processor from now on; its own recent load moves there.
    fn count(&mut self, at: u32, thread: u32) {
        let now = self.agenda.now();
        let task = &mut self.tasks[thread as usize];
        if !task.known {
            // The thread counts as if it had always wanted a processor (`init_entity_runnable_average`).
            task.wanting.add(now, Load::of(task.weight));
        }
        let own = task.wanting.now(now);
        task.wanting.more(now, task.weight);
        let (before, weight, known) = (task.cpu, task.weight, task.known);
        if before != at || !known {
            if known && let Some(before) = self.cpus.get_mut(before as usize) {
                before.wanted_lately.take(now, own);
            }
            self.cpus[at as usize].wanted_lately.add(now, own);
        }
        self.cpus[at as usize].wanted_lately.more(now, weight);
    }

    /// Stops counting the thread for its processor.
    pub(super) fn discount(&mut self, thread: u32) {
        let now = self.agenda.now();
        let task = &mut self.tasks[thread as usize];
        task.wanting.fewer(now, task.weight);
        if let Some(cpu) = self.cpus.get_mut(task.cpu as usize) {
            cpu.wanted_lately.fewer(now, task.weight);
        }
    }

    /// Charges the waker for waking a thread on an idle processor. Returns earlier charges not computed yet, which
    /// delay this wake-up.
    fn wake_ipi_ns(&mut self, by: Option<u32>) -> u64 {
        let cost = self.parameters.wake_cost.0;
        match by {
            Some(by) if cost > 0 => {
                let task = self.task(by);
                let before = task.debt;
                task.debt = before.saturating_add(cost);
                before
            }
            _ => 0,
        }
    }

    pub(super) fn latency(&mut self) -> u64 {
        let latency = self.parameters.wake_latency.0;
        let [slow, slowest] = self.parameters.slow_wakes.map(|length| length.0);
        if slow > latency {
            // Linear between the known quantiles of the latency.
            return match u64::from(self.draw()) {
                drawn @ ..500 => between(latency / 2, latency, drawn, 500),
                drawn @ 500..900 => between(latency, slow, drawn - 500, 400),
                drawn @ 900..990 => between(slow, slowest, drawn - 900, 90),
                drawn => between(slowest, slowest.saturating_mul(2), drawn - 990, 10),
            };
        }
        match &mut self.numbers {
            // The latency is drawn between half of the median and one and a half of it.
            Some(numbers) if latency > 1 => (latency / 2).saturating_add(numbers.below(latency)),
            _ => latency,
        }
    }

    /// Adds the thread to the processor's sums, with the lag that it had before (EEVDF's placement).
    pub(super) fn join(&mut self, at: u32, thread: u32) {
        let current = self.cpus[at as usize].current;
        if current != NONE
            && matches!(self.tasks[current as usize].state, TaskState::Running | TaskState::Spinning)
        {
            self.charge(current);
        }
        let cpu = &self.cpus[at as usize];
        let average = cpu.average();
        let slice = self.slice_of(self.tasks[thread as usize].weight);
        let first = !self.tasks[thread as usize].known;
        let jitter = match &mut self.numbers {
            Some(numbers) if first => numbers.below(slice.unsigned_abs()) as i64,
            _ => 0,
        };
        let task = &mut self.tasks[thread as usize];
        // A thread that was behind stays behind, by at most two slices. One that was ahead starts at the average: the
        // other threads have caught up while it waited.
        let lag = task.lag.clamp(0, slice.saturating_mul(2));
        task.virtual_time = average.saturating_sub(lag);
        self.count(at, thread);
        let task = &mut self.tasks[thread as usize];
        // A new thread gets half a slice, so that its first turn ends early, as in the kernel.
        let half = if first { slice / 2 } else { slice };
        task.deadline = task.virtual_time.saturating_add(half.max(1)).saturating_sub(jitter / 2);
        task.known = true;
        task.cpu = at;
        let task = *task;
        self.cpus[at as usize].join(&task);
    }

    pub(super) fn enqueue(&mut self, at: u32, thread: u32) {
        let task = self.task(thread);
        task.state = TaskState::Queued;
        let deadline = task.deadline;
        self.cpus[at as usize].push(thread, deadline);
        self.queued += 1;
    }

    /// A thread has come to the queue: from now on the running thread has slices. It is pre-empted at once if its
    /// protected slice is over and the new thread is due.
    pub(super) fn wakeup_preempt(&mut self, at: u32, thread: u32) {
        let cpu = &self.cpus[at as usize];
        let current = cpu.current;
        if cpu.throttled {
            return;
        }
        if current == NONE {
            return self.resched(at);
        }
        let own = &self.tasks[current as usize];
        if !matches!(own.state, TaskState::Running | TaskState::Spinning) {
            return;
        }
        let alone = cpu.queued() == 1;
        if alone {
            // While the thread was alone on the processor, its slices followed each other without events.
            let slice = self.slice_of(own.weight);
            let task = self.task(current);
            let past = task.virtual_time.saturating_sub(task.deadline);
            if past >= 0 {
                task.deadline =
                    task.deadline.saturating_add((past / slice).saturating_add(1).saturating_mul(slice));
            }
        }
        let (cpu, own) = (&self.cpus[at as usize], &self.tasks[current as usize]);
        let next = &self.tasks[thread as usize];
        let unprotected = own.virtual_time >= cpu.protected;
        if unprotected && cpu.is_eligible(next) && (!cpu.is_eligible(own) || next.deadline < own.deadline) {
            return self.resched(at);
        }
        if alone {
            self.arm(current);
        }
    }
}

/// The length at `part / of` of the way from `from` to `to`.
fn between(from: u64, to: u64, part: u64, of: u64) -> u64 {
    from.saturating_add(to.saturating_sub(from).saturating_mul(part) / of)
}
