//! A processor with the threads that want it.

use std::collections::VecDeque;

use super::load::Load;
use super::newidle_chance::NewidleChance;
use super::task::{NONE, Task};

#[derive(Debug)]
pub(super) struct Cpu {
    /// The thread that has it.
    pub(super) current: u32,
    /// The thread that had it last.
    pub(super) last: u32,
    /// Other threads that want it, by deadline and then in the order in which they came.
    queue: VecDeque<(i64, u32)>,
    /// Weights of `current` and all in the queue.
    load: u64,
    /// Their weights times virtual times.
    sum: i128,
    /// Virtual time when it last had nothing to do.
    floor: i64,
    /// Up to this virtual time its thread cannot lose it to one that is woken.
    pub(super) protected: i64,
    /// The group's quota is used up.
    pub(super) throttled: bool,
    /// What it has taken of the quota and not used yet.
    pub(super) allowance: u64,
    /// To be looked at when all has happened that happens at this instant.
    pub(super) flagged: bool,
    /// When it may next be balanced.
    pub(super) balanced: u64,
    pub(super) newidle_chance: NewidleChance,
    pub(super) wanted_lately: Load,
    /// It is idle though a thread waits elsewhere, until the clock ticks.
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

    /// Threads that want it, not counting the one that has it.
    pub(super) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Threads that want it or have it.
    pub(super) fn wanted(&self) -> usize {
        self.queue.len() + usize::from(self.current != NONE)
    }

    /// The weighted mean of the virtual times: a thread that is not past it has not had its share yet.
    pub(super) fn average(&self) -> i64 {
        match i128::from(self.load) {
            0 => self.floor,
            load => i64::try_from(self.sum.div_euclid(load)).unwrap_or(i64::MAX),
        }
    }

    /// The thread now counts among those that want the processor.
    pub(super) fn join(&mut self, task: &Task) {
        self.load = self.load.saturating_add(u64::from(task.weight));
        self.sum += i128::from(task.weight) * i128::from(task.virtual_time);
    }

    /// The thread no longer counts.
    pub(super) fn leave(&mut self, task: &Task) {
        self.floor = self.floor.max(self.average());
        self.load = self.load.saturating_sub(u64::from(task.weight));
        self.sum -= i128::from(task.weight) * i128::from(task.virtual_time);
    }

    /// Virtual time of a thread that counts has passed.
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

    /// Whether the thread has not had more than its share.
    pub(super) fn is_eligible(&self, task: &Task) -> bool {
        i128::from(task.virtual_time) * i128::from(self.load) <= self.sum
    }

    /// Of those in the queue that have not had more than their share, the one with the first deadline; if rounding
    /// leaves none, the one with the least virtual time.
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
