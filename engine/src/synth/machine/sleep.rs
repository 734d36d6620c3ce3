//! How threads of the simulated machine fall asleep and are woken: by another thread, a device, a timer, or by a
//! wake-up that ends nothing.

use super::{
    ActorState, Context, Doing, Event, FUTEX_WAKE, GRAIN_NS, IN_DEVICE, Machine, SLEEPING, Unsupported,
    stack_base,
};

impl Machine<'_> {
    pub(super) fn wait_for_futex(
        &mut self,
        cpu: usize,
        thread: usize,
        word: u64,
        operation: u32,
        result: i64,
    ) -> Result<(), Unsupported> {
        let place = self.place(cpu, Context::Task);
        self.scribe.futex_enter(place, word, operation);
        self.actors[thread].in_futex = Some(result);
        self.sleep(cpu, thread, SLEEPING)
    }

    pub(super) fn sleep(&mut self, cpu: usize, thread: usize, state: u32) -> Result<(), Unsupported> {
        self.actors[thread].state = ActorState::Asleep;
        let stamp = self.stamp(cpu);
        self.ledger.does(thread, stamp, Doing::Blocked);
        self.switch_from(cpu, thread, state, false)
    }

    /// The CPU goes to the next thread in the queue, or idle.
    pub(super) fn switch_from(
        &mut self,
        cpu: usize,
        thread: usize,
        state: u32,
        preempted: bool,
    ) -> Result<(), Unsupported> {
        let actor = &self.actors[thread];
        let top = actor.stack.last().map_or(stack_base(actor.tid), |(_, sp, _)| *sp);
        let user_sp = if self.numbers.below(2) == 0 { 0 } else { top - 24 };
        let place = self.place(cpu, Context::Task);
        self.cpus[cpu].turn += 1;
        match self.queue.pop_front() {
            Some(next) => {
                self.scribe.switch(place, self.actors[next].tid, state, preempted, user_sp);
                self.begin(cpu, next)
            }
            None => {
                self.scribe.switch(place, 0, state, preempted, user_sp);
                self.cpus[cpu].current = None;
                Ok(())
            }
        }
    }

    pub(super) fn wake_by_futex(&mut self, cpu: usize, waker: usize, wakee: usize, word: u64) {
        let place = self.place(cpu, Context::Task);
        self.scribe.futex_enter(place, word, FUTEX_WAKE);
        self.wake(cpu, waker, wakee);
        self.scribe.futex_exit(place, 1);
    }

    pub(super) fn wake(&mut self, cpu: usize, waker: usize, wakee: usize) {
        let place = self.place(cpu, Context::Task);
        self.scribe.waking(place, self.actors[wakee].tid, SLEEPING, false);
        self.ledger.edge(waker, wakee);
        self.becomes_runnable(cpu, wakee);
    }

    /// A device or a timer: the interrupt lands on whoever runs on the CPU.
    pub(super) fn timer(&mut self, cpu: usize, thread: usize) {
        let in_device = self.actors[thread].in_futex.is_none();
        let (context, state) = match (in_device, self.numbers.below(2)) {
            (true, 0) => (Context::SoftIrq, IN_DEVICE),
            (true, _) => (Context::HardIrq, IN_DEVICE),
            (false, _) => (Context::HardIrq, SLEEPING),
        };
        let place = self.place(cpu, context);
        self.scribe.waking(place, self.actors[thread].tid, state, false);
        self.becomes_runnable(cpu, thread);
    }

    pub(super) fn becomes_runnable(&mut self, cpu: usize, thread: usize) {
        let stamp = self.stamp(cpu);
        self.ledger.does(thread, stamp, Doing::Runnable);
        self.actors[thread].state = ActorState::Queued;
        self.plan(self.latency(), -1, Event::Ready(thread));
    }

    /// Wake-ups that end nothing: of a thread that does not sleep, or a second one.
    pub(super) fn make_noise(&mut self, cpu: usize) {
        let thread = self.numbers.below(self.actors.len() as u64) as usize;
        let context = if self.numbers.below(2) == 0 { Context::HardIrq } else { Context::Task };
        if let Some(actor) = self.actors.get(thread)
            && self.cpus[cpu].current != Some(thread)
        {
            let (tid, state, has_run) = (actor.tid, actor.state, actor.next > 0);
            let place = self.place(cpu, context);
            match state {
                ActorState::Queued if self.execution.second_wakings && has_run => {
                    self.scribe.waking(place, tid, SLEEPING, false);
                }
                ActorState::Queued => {}
                ActorState::Running => self.scribe.waking(place, tid, 0, false),
                ActorState::NotCreated | ActorState::Asleep | ActorState::Ended => {}
            }
        }
        if !self.events.is_empty() {
            let cpu = self.numbers.below(self.cpus.len() as u64) as i32;
            let after_ns = self.numbers.below(64) * GRAIN_NS;
            self.plan(after_ns + GRAIN_NS, cpu, Event::Noise);
        }
    }
}
