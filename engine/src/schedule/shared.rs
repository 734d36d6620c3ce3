//! Processors shared in infinitely small slices, at no cost (2001, section 2.3): with n threads that want one and P
//! processors each thread runs at speed min(1, P/n).
//!
//! Work done per thread that executes is one number for all: it grows with time at that speed. So a computation of length
//! d that begins when it is W ends when it is W + d, and one queue orders all ends whatever the speed does meanwhile. Time
//! is kept in fractions of a tick, so that nothing is rounded except where a wait by the clock ends while threads share.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::ledger::{Doing, Ledger};
use super::machine::{Machine, Turn, Why};
use crate::program::ObjectId;

/// Who is due when: at this work or time, in the order of entering, whose.
type Due = Reverse<(u128, u64, u32)>;

/// The processors.
#[derive(Debug)]
pub struct Shared<'w> {
    /// Processors, as a fraction: a quota may leave one and a half.
    capacity: (u128, u128),
    /// Ticks so far, times `capacity.0`.
    time: u128,
    /// Work of each executing thread so far, times `capacity.0`.
    work: u128,
    /// Threads that compute or spin.
    executing: u128,
    computing: BinaryHeap<Due>,
    waiting: BinaryHeap<Due>,
    ready: VecDeque<Turn>,
    /// What it waited for by the clock has just ended.
    expiring: Option<u32>,
    /// It acts before all others.
    urgent: Option<u32>,
    sequence: u64,
    started: bool,
    /// Work when each thread began to execute.
    began: Vec<u128>,
    pub(super) ledger: Ledger<'w>,
}

impl<'w> Shared<'w> {
    /// `hundredths` of a processor, at least one.
    pub(super) fn new(hundredths: u64, ledger: Ledger<'w>, threads: usize) -> Shared<'w> {
        let (mut above, mut below) = (u128::from(hundredths.max(1)), 100);
        while let Some(common) = [2, 5].into_iter().find(|n| above % n == 0 && below % n == 0) {
            (above, below) = (above / common, below / common);
        }
        Shared {
            capacity: (above, below),
            time: 0,
            work: 0,
            executing: 0,
            computing: BinaryHeap::new(),
            waiting: BinaryHeap::new(),
            ready: VecDeque::new(),
            expiring: None,
            urgent: None,
            sequence: 0,
            started: false,
            began: vec![0; threads],
            ledger,
        }
    }

    fn scaled(&self, ticks: u64) -> u128 {
        u128::from(ticks).saturating_mul(self.capacity.0)
    }

    /// Time that passes while each executing thread does this much work.
    fn time_for(&self, work: u128) -> u128 {
        let wanted = self.executing.saturating_mul(self.capacity.1);
        if wanted <= self.capacity.0 { work } else { work.saturating_mul(wanted) / self.capacity.0 }
    }

    /// Work that each executing thread does while this much time passes.
    fn work_in(&self, time: u128) -> u128 {
        let wanted = self.executing.saturating_mul(self.capacity.1);
        if wanted <= self.capacity.0 { time } else { time.saturating_mul(self.capacity.0) / wanted }
    }

    /// When the first computation ends, as things are.
    fn computed(&self) -> Option<(u128, u64)> {
        let Reverse((end, sequence, _)) = self.computing.peek()?;
        Some((self.time.saturating_add(self.time_for(end.saturating_sub(self.work))), *sequence))
    }

    fn change(&mut self, thread: u32, doing: Doing) {
        let before = self.ledger.doing(thread);
        if before == doing {
            return;
        }
        let length = self.ledger.change(thread, self.now(), doing, None);
        if executes(before) {
            self.executing = self.executing.saturating_sub(1);
            let worked = self.work.saturating_sub(self.began[thread as usize]) / self.capacity.0;
            let worked = u64::try_from(worked).unwrap_or(u64::MAX);
            self.ledger.waited(thread, before, length.saturating_sub(worked));
        }
        if executes(doing) {
            self.executing += 1;
            self.began[thread as usize] = self.work;
        }
    }

    fn enter(&mut self, thread: u32, length: u64, computes: bool) {
        self.sequence += 1;
        let base = if computes { self.work } else { self.time };
        let due = Reverse((base.saturating_add(self.scaled(length)), self.sequence, thread));
        if computes { self.computing.push(due) } else { self.waiting.push(due) }
    }

    /// It is over.
    pub(super) fn close(&mut self) {
        for thread in 0..self.began.len() {
            self.change(thread as u32, Doing::Nothing);
        }
        self.ledger.close(self.now());
    }
}

fn executes(doing: Doing) -> bool {
    matches!(doing, Doing::Busy | Doing::Spinning(_))
}

impl Machine for Shared<'_> {
    const DECIDES: bool = false;

    fn now(&self) -> u64 {
        u64::try_from(self.time / self.capacity.0).unwrap_or(u64::MAX)
    }

    fn next_instant(&mut self) -> Option<u64> {
        if !std::mem::replace(&mut self.started, true) {
            return Some(0);
        }
        let computed = self.computed();
        let waited = self.waiting.peek().map(|Reverse((time, sequence, _))| (*time, *sequence));
        let computes = match (computed, waited) {
            (Some(computed), Some(waited)) => computed < waited,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return None,
        };
        if computes {
            let (time, _) = computed?;
            let Reverse((work, _, _)) = *self.computing.peek()?;
            (self.time, self.work) = (time, work);
        } else {
            let (time, _) = waited?;
            let work = self.work_in(time.saturating_sub(self.time));
            (self.time, self.work) = (time, self.work.saturating_add(work));
        }
        Some(self.now())
    }

    fn next_turn(&mut self) -> Option<Turn> {
        if let Some(thread) = self.urgent.take() {
            return Some(Turn::Act(thread));
        }
        self.expiring = None;
        let computed =
            self.computing.peek().filter(|Reverse(due)| due.0 <= self.work).map(|Reverse(due)| due.1);
        let waited = self.waiting.peek().filter(|Reverse(due)| due.0 <= self.time).map(|Reverse(due)| due.1);
        match (computed, waited) {
            (None, None) => {
                let turn = self.ready.pop_front();
                if let Some(Turn::Expired(thread)) = turn {
                    self.expiring = Some(thread);
                }
                turn
            }
            (Some(_), None) => self.computing.pop().map(|Reverse(due)| Turn::Act(due.2)),
            (Some(computed), Some(waited)) if computed < waited => {
                self.computing.pop().map(|Reverse(due)| Turn::Act(due.2))
            }
            _ => self.waiting.pop().map(|Reverse(due)| {
                self.expiring = Some(due.2);
                Turn::Expired(due.2)
            }),
        }
    }

    fn wake(&mut self, thread: u32, _by: Option<u32>) {
        self.change(thread, Doing::Ready);
        // What ends by the clock acts in its place among all that does, not after it.
        if self.expiring == Some(thread) {
            self.urgent = Some(thread);
        } else {
            self.ready.push_back(Turn::Act(thread));
        }
    }

    fn compute(&mut self, thread: u32, length: u64) {
        if length == 0 {
            return self.ready.push_back(Turn::Act(thread));
        }
        self.change(thread, Doing::Busy);
        self.enter(thread, length, true);
    }

    fn block(&mut self, thread: u32, why: Why) {
        self.change(thread, Doing::Blocked(why));
    }

    fn expire(&mut self, thread: u32, length: u64) {
        if length == 0 {
            return self.ready.push_back(Turn::Expired(thread));
        }
        self.enter(thread, length, false);
    }

    fn spin(&mut self, thread: u32, object: ObjectId) {
        self.change(thread, Doing::Spinning(object));
    }

    fn is_spinning(&self, _thread: u32) -> bool {
        true
    }

    fn retry(&mut self, thread: u32) {
        self.ready.push_back(Turn::Act(thread));
    }

    fn hope(&mut self, _more: bool) {}

    fn end(&mut self, thread: u32) {
        self.change(thread, Doing::Nothing);
    }
}
