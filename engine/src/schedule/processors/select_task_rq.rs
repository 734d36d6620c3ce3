//! Which processor a thread goes to: when it is woken, when another one has nothing to do, when queues differ much.

use super::Processors;
use super::load::Load;
use super::task::{NONE, Place};
use crate::time::Ticks;

/// Processors that are not idle compare queues at most once in this time for each processor (`sd_init` in
/// kernel/sched/topology.c: a millisecond times `busy_factor`).
const BALANCE_PER_CPU: u64 = 16_000_000 * Ticks::PER_NS;

impl Processors<'_> {
    /// A woken thread finds its processor: the one it had last if that is idle, else an idle one if it finds one, else a queue.
    pub(super) fn settle(&mut self, thread: u32, by: Option<u32>) {
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
        self.want(at, thread);
        if self.rules.tick.0 > 0 && !self.idle.is_empty() {
            self.await_tick();
        }
    }

    fn idle_for(&mut self, thread: u32, last: u32) -> Option<u32> {
        if self.idle.is_empty() {
            return None;
        }
        if last != NONE && self.idle.contains(last) && self.may_use(thread, last) {
            return Some(last);
        }
        if last != NONE && self.rules.idle_found < 1000 && self.draw() >= self.rules.idle_found {
            return None;
        }
        let start = match &mut self.numbers {
            Some(numbers) => numbers.below(self.cpus.len() as u64) as u32,
            None if last == NONE => 0,
            None => last.wrapping_add(1),
        };
        self.idle.from(start).find(|cpu| self.may_use(thread, *cpu))
    }

    fn may_use(&self, thread: u32, cpu: u32) -> bool {
        match self.tasks[thread as usize].mask {
            None => true,
            Some(mask) => self.masks[mask as usize].binary_search(&cpu).is_ok(),
        }
    }

    /// No processor is idle: its last one, or the waker's if that has lately had less demand
    /// (`wake_affine_weight` in kernel/sched/fair.c); for a new thread the one with the least demand.
    fn shorter(&mut self, thread: u32, last: u32, near: Option<u32>) -> u32 {
        let near = near.filter(|near| *near != NONE && self.may_use(thread, *near));
        let now = self.agenda.now();
        if last != NONE && self.may_use(thread, last) {
            let own = self.task(thread).wanting.now(now);
            let mut wanted = |cpu: u32| self.cpus[cpu as usize].wanted_lately.now(now);
            return match near {
                // Somewhat more counts as the same.
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

    /// The thread wants this processor from now on, and what it has wanted lately counts there.
    fn count(&mut self, at: u32, thread: u32) {
        let now = self.agenda.now();
        let task = &mut self.tasks[thread as usize];
        if !task.known {
            // As if it had always wanted one (`init_entity_runnable_average`).
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

    /// The thread, which counts on its processor, does not want it any more.
    pub(super) fn discount(&mut self, thread: u32) {
        let now = self.agenda.now();
        let task = &mut self.tasks[thread as usize];
        task.wanting.fewer(now, task.weight);
        if let Some(cpu) = self.cpus.get_mut(task.cpu as usize) {
            cpu.wanted_lately.fewer(now, task.weight);
        }
    }

    /// A waker of a thread on an idle processor computes longer for it. Returns what it has spent on others
    /// just before, which delays this thread.
    fn wake_ipi_ns(&mut self, by: Option<u32>) -> u64 {
        let cost = self.rules.wake_cost.0;
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

    fn latency(&mut self) -> u64 {
        let latency = self.rules.wake_latency.0;
        let [slow, slowest] = self.rules.slow_wakes.map(|length| length.0);
        if slow > latency {
            // Straight from one to the next of what is known of a thousand.
            return match u64::from(self.draw()) {
                drawn @ ..500 => between(latency / 2, latency, drawn, 500),
                drawn @ 500..900 => between(latency, slow, drawn - 500, 400),
                drawn @ 900..990 => between(slow, slowest, drawn - 900, 90),
                drawn => between(slowest, slowest.saturating_mul(2), drawn - 990, 10),
            };
        }
        match &mut self.numbers {
            // From half to one and a half of it.
            Some(numbers) if latency > 1 => (latency / 2).saturating_add(numbers.below(latency)),
            _ => latency,
        }
    }

    /// The thread counts among those that want the processor, as far behind or ahead as it was (EEVDF's placement).
    fn join(&mut self, at: u32, thread: u32) {
        let current = self.cpus[at as usize].current;
        if current != NONE && matches!(self.tasks[current as usize].place, Place::Running | Place::Spinning) {
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
        // A thread that was behind stays behind, within two slices; one that was ahead has waited for the
        // others to catch up.
        let lag = task.lag.clamp(0, slice.saturating_mul(2));
        task.virtual_time = average.saturating_sub(lag);
        self.count(at, thread);
        let task = &mut self.tasks[thread as usize];
        // A new thread starts with half a slice, so that it gets its first turn early.
        let half = if first { slice / 2 } else { slice };
        task.deadline = task.virtual_time.saturating_add(half.max(1)).saturating_sub(jitter / 2);
        task.known = true;
        task.cpu = at;
        let task = *task;
        self.cpus[at as usize].join(&task);
    }

    fn enqueue(&mut self, at: u32, thread: u32) {
        let task = self.task(thread);
        task.place = Place::Queued;
        let deadline = task.deadline;
        self.cpus[at as usize].push(thread, deadline);
        self.queued += 1;
    }

    /// Another thread has come to the queue: the one that has the processor now has it for a slice only, or loses it at
    /// once if it has had its slice and the other one is due.
    fn want(&mut self, at: u32, thread: u32) {
        let cpu = &self.cpus[at as usize];
        let current = cpu.current;
        if cpu.throttled {
            return;
        }
        if current == NONE {
            return self.flag(at);
        }
        let own = &self.tasks[current as usize];
        if !matches!(own.place, Place::Running | Place::Spinning) {
            return;
        }
        let alone = cpu.queued() == 1;
        if alone {
            // Its slices have followed each other unnoticed.
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
            return self.flag(at);
        }
        if alone {
            self.arm(current);
        }
    }

    /// A processor without threads takes one from the longest queue, or is idle.
    pub(super) fn pull(&mut self, at: u32) {
        self.give_back(at);
        let cpu = &mut self.cpus[at as usize];
        if self.queued == 0 || cpu.resting || !self.idle.contains(at) {
            return;
        }
        if self.rules.tick.0 == 0 {
            self.take_waiting(at, 0);
            return;
        }
        let weight = cpu.newidle_chance.asks(self.numbers.as_mut());
        let taken = weight.is_some() && self.take_waiting(at, 0);
        let cpu = &mut self.cpus[at as usize];
        if let Some(weight) = weight {
            cpu.newidle_chance.learn(if taken { weight } else { 0 });
        }
        if !taken {
            cpu.resting = true;
            self.await_tick();
        }
    }

    /// The idle processor takes a thread from the longest queue that has one for it. Whether there is one.
    fn take_waiting(&mut self, at: u32, latency: u64) -> bool {
        // Of equally long queues the first.
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
        self.bring(from, at, thread, latency);
        true
    }

    /// From now to the first tick of the clock that is at least this far away.
    pub(super) fn to_tick(&self, least: u64) -> u64 {
        let tick = self.rules.tick.0.max(1);
        let past = self.agenda.now().saturating_add(least).wrapping_add(self.phase) % tick;
        if past == 0 { least } else { least.saturating_add(tick - past) }
    }

    /// Idle processors look again when the clock has ticked and an interrupt has woken them.
    fn await_tick(&mut self) {
        if self.tick.is_none() {
            let left = self.to_tick(1);
            let latency = self.latency();
            self.tick = self.agenda.after(left.saturating_add(latency), self.tasks.len() as u32 + 1);
        }
    }

    /// The clock has ticked where threads wait: idle processors were notified, and each takes one.
    pub(super) fn ticks(&mut self, entry: u32) {
        if self.tick != Some(entry) {
            return;
        }
        self.tick = None;
        let idle: Vec<u32> = self.idle.from(0).collect();
        for at in idle {
            if self.queued == 0 || !self.take_waiting(at, 0) {
                // What becomes of it is up to its next turn.
                self.cpus[at as usize].resting = self.queued > 0;
            }
        }
        if self.queued > 0 && !self.idle.is_empty() {
            self.await_tick();
        }
    }

    /// Removes a queued thread from one processor and counts it on another.
    fn move_to(&mut self, from: u32, to: u32, thread: u32) {
        let current = self.cpus[from as usize].current;
        if current != NONE && matches!(self.tasks[current as usize].place, Place::Running | Place::Spinning) {
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

    /// The thread has just lost this processor to one that may use no other: it goes to an idle one if it may.
    pub(super) fn rescue(&mut self, at: u32, thread: u32) {
        if self.tasks[thread as usize].place != Place::Queued {
            return;
        }
        if let Some(to) = self.idle_for(thread, at) {
            self.idle.remove(to);
            self.bring(at, to, thread, 0);
        }
    }

    /// A queued thread of one processor gets another, idle one.
    fn bring(&mut self, from: u32, to: u32, thread: u32, latency: u64) {
        self.move_to(from, to, thread);
        if self.has_allowance(to) {
            self.dispatch(to, thread, latency);
        } else {
            self.enqueue(to, thread);
            self.throttle(to);
        }
    }

    /// The processor has just switched to another thread: if another one has at least two fewer that want it,
    /// one moves.
    pub(super) fn balance(&mut self, at: u32) {
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
            self.move_to(at, to, thread);
            self.idle.remove(to);
            self.enqueue(to, thread);
            self.want(to, thread);
        }
    }
}

/// `part` of `of` parts of the way from one length to another.
fn between(from: u64, to: u64, part: u64, of: u64) -> u64 {
    from.saturating_add(to.saturating_sub(from).saturating_mul(part) / of)
}
