//! Processors shared in infinitely small slices, at no cost (2001, section 2.3): with n threads that want one and P
//! processors each thread runs at speed min(1, P/n).
//!
//! With [`SharedCpuCosts`], a woken thread that finds an idle processor acts only after a latency, and its waker
//! computes longer.
//!
//! `work` is how far each executing thread has got; one number serves all, since all have the same speed. A computation
//! of length d that begins at work W ends at W + d, so one queue orders all ends however the speed changes until then.
//! Time is kept in fractions of a tick; it is rounded only where a wait by the clock ends while threads share.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::machine::{Machine, Turn, Why};
use super::outcome::cpu_accounting::{CpuAccounting, SimulatedState};
use crate::program::ObjectId;
use crate::time::Ticks;

/// The end of a step: its work or time, its number in the order of entering, and its thread.
type Due = Reverse<(u128, u64, u32)>;

/// Ideally shared processors, with costs of waking threads on idle ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedCpuCosts {
    /// Hundredths of a processor; at least 1.
    pub hundredths: u64,
    /// Time from waking a thread to its first instruction on an idle processor.
    pub wake_latency: Ticks,
    /// Processor time that this costs the waker.
    pub wake_cost: Ticks,
    /// For each object: how many threads the device serves at once; 0 or missing: any number.
    pub servers: Vec<u32>,
}

/// Ideally shared processors. With `COSTS`, deciding points are kept and waking takes time.
#[derive(Debug)]
pub struct Shared<'w, const COSTS: bool = false> {
    /// Number of processors as a fraction: a quota may allow one and a half.
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
    /// The thread whose wait by the clock has just ended.
    expiring: Option<u32>,
    /// The thread that acts before all others.
    urgent: Option<u32>,
    sequence: u64,
    started: bool,
    /// Work when each thread began to execute.
    began: Vec<u128>,
    wake_latency: u64,
    wake_cost: u64,
    /// For each thread: processor time for waking other threads that it has not computed yet; empty without costs.
    debts: Vec<u64>,
    /// For each thread: whether it has been woken and its latency is not over; empty without costs.
    arriving: Vec<bool>,
    /// Number of threads in `arriving`.
    arrivals: u128,
    pub(super) accounting: CpuAccounting<'w>,
}

impl Shared<'static, true> {
    pub(super) fn with_costs(
        costs: &SharedCpuCosts,
        threads: usize,
        objects: usize,
    ) -> Shared<'static, true> {
        let most = u64::try_from(threads).unwrap_or(u64::MAX).max(1).saturating_mul(100);
        let accounting = CpuAccounting::new(threads, objects, None);
        let mut shared = Shared::new(costs.hundredths.min(most), accounting, threads);
        shared.wake_latency = costs.wake_latency.0;
        shared.wake_cost = costs.wake_cost.0;
        shared.debts = vec![0; threads];
        shared.arriving = vec![false; threads];
        shared
    }
}

impl<'w, const COSTS: bool> Shared<'w, COSTS> {
    /// A machine with `hundredths` of a processor (at least 1).
    pub(super) fn new(hundredths: u64, accounting: CpuAccounting<'w>, threads: usize) -> Shared<'w, COSTS> {
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
            wake_latency: 0,
            wake_cost: 0,
            debts: Vec::new(),
            arriving: Vec::new(),
            arrivals: 0,
            accounting,
        }
    }

    /// Number of processors as a fraction.
    pub(super) fn capacity(&self) -> (i64, i64) {
        // The capacity is at most a hundred for each thread, so both numbers fit.
        let fits = |part: u128| i64::try_from(part).unwrap_or(i64::MAX);
        (fits(self.capacity.0), fits(self.capacity.1))
    }

    fn scaled(&self, ticks: u64) -> u128 {
        u128::from(ticks).saturating_mul(self.capacity.0)
    }

    /// Time that passes while each executing thread does this much work.
    fn time_for(&self, work: u128) -> u128 {
        let wanted = self.executing.saturating_mul(self.capacity.1);
        if wanted <= self.capacity.0 { work } else { divided(work.saturating_mul(wanted), self.capacity.0) }
    }

    /// Work that each executing thread does while this much time passes.
    fn work_in(&self, time: u128) -> u128 {
        let wanted = self.executing.saturating_mul(self.capacity.1);
        if wanted <= self.capacity.0 { time } else { divided(time.saturating_mul(self.capacity.0), wanted) }
    }

    /// Time and number of the first end of a computation, if no thread comes or goes before.
    fn computed(&self) -> Option<(u128, u64)> {
        let Reverse((end, sequence, _)) = self.computing.peek()?;
        Some((self.time.saturating_add(self.time_for(end.saturating_sub(self.work))), *sequence))
    }

    fn change(&mut self, thread: u32, doing: SimulatedState) {
        let before = self.accounting.doing(thread);
        if before == doing {
            return;
        }
        let length = self.accounting.change(thread, self.now(), doing, None);
        if executes(before) {
            self.executing = self.executing.saturating_sub(1);
            let worked = divided(self.work.saturating_sub(self.began[thread as usize]), self.capacity.0);
            let worked = u64::try_from(worked).unwrap_or(u64::MAX);
            self.accounting.waited(thread, before, length.saturating_sub(worked));
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

    /// Ends all intervals at the end of the run.
    pub(super) fn close(&mut self) {
        for thread in 0..self.began.len() {
            self.change(thread as u32, SimulatedState::Nothing);
        }
        self.accounting.close(self.now());
    }
}

/// Division, by 0 as by 1. Mostly both operands fit into 64 bits, where dividing takes a tenth of the time.
fn divided(whole: u128, by: u128) -> u128 {
    match (u64::try_from(whole), u64::try_from(by)) {
        (Ok(whole), Ok(by)) => u128::from(whole / by.max(1)),
        _ => whole / by.max(1),
    }
}

fn executes(doing: SimulatedState) -> bool {
    matches!(doing, SimulatedState::Busy | SimulatedState::Spinning(_))
}

impl<const COSTS: bool> Machine for Shared<'_, COSTS> {
    const DECIDES: bool = COSTS;
    const COSTS: bool = COSTS;

    fn now(&self) -> u64 {
        u64::try_from(divided(self.time, self.capacity.0)).unwrap_or(u64::MAX)
    }

    fn virtual_now(&self) -> u128 {
        self.work
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
                if self.arriving.get_mut(due.2 as usize).is_some_and(std::mem::take) {
                    self.arrivals = self.arrivals.saturating_sub(1);
                    return Turn::Act(due.2);
                }
                self.expiring = Some(due.2);
                Turn::Expired(due.2)
            }),
        }
    }

    fn wake_delay(&mut self, by: Option<u32>) -> u64 {
        let taken = self.executing.saturating_add(self.arrivals);
        let idle = taken.saturating_mul(self.capacity.1) < self.capacity.0;
        if !idle {
            return 0;
        }
        // The waker wakes threads one after the other, so the costs of earlier wake-ups delay this one.
        let debt = by.and_then(|by| self.debts.get_mut(by as usize));
        let before = debt.map_or(0, |debt| {
            let before = *debt;
            *debt = before.saturating_add(self.wake_cost);
            before
        });
        self.wake_latency.saturating_add(before)
    }

    fn wake_after(&mut self, thread: u32, delay: u64) {
        self.change(thread, SimulatedState::Ready);
        if let Some(arriving) = self.arriving.get_mut(thread as usize) {
            *arriving = true;
        }
        self.arrivals += 1;
        self.enter(thread, delay, false);
    }

    fn debt(&self, thread: u32) -> u64 {
        self.debts.get(thread as usize).copied().unwrap_or(0)
    }

    fn doing(&self, thread: u32) -> SimulatedState {
        self.accounting.doing(thread)
    }

    fn wake(&mut self, thread: u32, _by: Option<u32>) {
        self.change(thread, SimulatedState::Ready);
        // A thread whose wait by the clock ends acts in the place of that end, not after all other ends.
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
        self.change(thread, SimulatedState::Busy);
        let debt = self.debts.get_mut(thread as usize).map_or(0, std::mem::take);
        self.enter(thread, length.saturating_add(debt), true);
    }

    fn block(&mut self, thread: u32, why: Why) {
        // The cost of waking other threads is spent during this wait.
        if let Some(debt) = self.debts.get_mut(thread as usize) {
            *debt = 0;
        }
        self.change(thread, SimulatedState::Blocked(why));
    }

    fn expire(&mut self, thread: u32, length: u64) {
        if length == 0 {
            return self.ready.push_back(Turn::Expired(thread));
        }
        self.enter(thread, length, false);
    }

    fn spin(&mut self, thread: u32, object: ObjectId) {
        self.change(thread, SimulatedState::Spinning(object));
    }

    fn is_spinning(&self, _thread: u32) -> bool {
        true
    }

    fn retry(&mut self, thread: u32, _by: u32) {
        self.ready.push_back(Turn::Act(thread));
    }

    fn spinners_on_free_locks(&mut self, _more: bool) {}

    fn end(&mut self, thread: u32) {
        self.change(thread, SimulatedState::Nothing);
    }
}
