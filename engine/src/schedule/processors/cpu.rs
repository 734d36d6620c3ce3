//! A processor and its run queue.

use std::collections::VecDeque;

use super::load::Load;
use super::newidle_chance::NewidleChance;
use super::task::{NONE, Task};

#[derive(Debug)]
pub(super) struct Cpu {
    /// The thread that has the processor.
    pub(super) current: u32,
    /// The thread that had the processor before the current one.
    pub(super) last: u32,
    /// Runnable threads by deadline; threads with equal deadlines in the order in which they came.
    queue: VecDeque<(i64, u32)>,
    /// Sum of the weights of `current` and the queue.
    load: u64,
    /// Sum of weight times virtual time of the same threads.
    sum: i128,
    /// The average virtual time while the processor has no thread: the highest virtual time at which a thread left.
    floor: i64,
    /// Virtual time of `current` until which a woken thread cannot pre-empt it.
    pub(super) protected: i64,
    /// The group's quota is used up.
    pub(super) throttled: bool,
    /// Processor time taken from the quota and not used yet.
    pub(super) allowance: u64,
    /// Whether the processor is to be rescheduled at the end of this instant.
    pub(super) flagged: bool,
    /// Earliest time of the processor's next load balancing.
    pub(super) balanced: u64,
    pub(super) newidle_chance: NewidleChance,
    pub(super) wanted_lately: Load,
    /// Idle until the clock ticks, although a thread waits elsewhere.
    pub(super) resting: bool,
}

impl Cpu {
    pub(super) fn new() -> Cpu {
        Cpu {
            current: NONE,
            last: NONE,
            queue: VecDeque::new(),
            load: 0,
            sum: 0,
            floor: 0,
            protected: 0,
            throttled: false,
            allowance: 0,
            flagged: false,
            balanced: 0,
            newidle_chance: NewidleChance::new(),
            wanted_lately: Load::default(),
            resting: false,
        }
    }

    /// Number of threads in the queue, `current` not counted.
    pub(super) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Number of threads in the queue and on the processor.
    pub(super) fn wanted(&self) -> usize {
        self.queue.len() + usize::from(self.current != NONE)
    }

    /// The weighted mean of virtual times: threads up to it have not had more than their share.
    pub(super) fn average(&self) -> i64 {
        match i128::from(self.load) {
            0 => self.floor,
            load => i64::try_from(self.sum.div_euclid(load)).unwrap_or(i64::MAX),
        }
    }

    /// Adds the thread to the sums of weights and virtual times.
    pub(super) fn join(&mut self, task: &Task) {
        self.load = self.load.saturating_add(u64::from(task.weight));
        self.sum += i128::from(task.weight) * i128::from(task.virtual_time);
    }

    /// Removes the thread from the sums of this processor.
    pub(super) fn leave(&mut self, task: &Task) {
        self.floor = self.floor.max(self.average());
        self.load = self.load.saturating_sub(u64::from(task.weight));
        self.sum -= i128::from(task.weight) * i128::from(task.virtual_time);
    }

    /// Adds to the sum: a thread of this weight used this much virtual time.
    #[inline]
    pub(super) fn pass(&mut self, weight: u32, virtual_time: i64) {
        self.sum += i128::from(weight) * i128::from(virtual_time);
    }

    pub(super) fn push(&mut self, thread: u32, deadline: i64) {
        let place = self.queue.partition_point(|(other, _)| *other <= deadline);
        self.queue.insert(place, (deadline, thread));
    }

    pub(super) fn remove(&mut self, thread: u32, deadline: i64) {
        let first = self.queue.partition_point(|(other, _)| *other < deadline);
        if let Some(place) = self.queue.range(first..).position(|(_, other)| *other == thread) {
            self.queue.remove(first + place);
        }
    }

    /// Whether the thread has had at most its share of the processor (EEVDF's eligibility).
    pub(super) fn is_eligible(&self, task: &Task) -> bool {
        i128::from(task.virtual_time) * i128::from(self.load) <= self.sum
    }

    /// The eligible thread of the queue with the earliest deadline; if rounding leaves none, the one with the least
    /// virtual time.
    pub(super) fn first(&self, tasks: &[Task]) -> Option<u32> {
        let queued = || self.queue.iter().map(|(_, thread)| *thread);
        let eligible = queued().find(|thread| self.is_eligible(&tasks[*thread as usize]));
        eligible.or_else(|| queued().min_by_key(|thread| tasks[*thread as usize].virtual_time))
    }

    /// The threads in the queue, by deadline.
    pub(super) fn in_queue(&self) -> impl Iterator<Item = u32> + '_ {
        self.queue.iter().map(|(_, thread)| *thread)
    }
}
