//! A group's quota of processor time in each period of 100 ms. Processors take it in portions of 5 ms
//! (kernel/sched/fair.c: `cpu.max`, `sched_cfs_bandwidth_slice_us`). A processor that gets no portion stops until the
//! next period; a processor that becomes idle returns the rest of its portion.

use super::super::agenda::Agenda;
use super::Processors;
use super::task::{NONE, TaskState};
use crate::numbers::Numbers;
use crate::time::Ticks;

const PERIOD: u64 = Ticks::from_ns(100_000_000).0;
const PORTION: u64 = Ticks::from_ns(5_000_000).0;

#[derive(Debug)]
pub(super) struct Quota {
    per_period: u64,
    /// Rest of the present period's quota.
    pool: u64,
    /// Number of the present period.
    period: u64,
    /// Time from the beginning of the first period to the start of the run.
    offset: u64,
    /// The agenda's entry for the next refill, if a refill is needed.
    refill: Option<u32>,
    /// Processors that have stopped.
    throttled: Vec<u32>,
}

impl Quota {
    /// Makes a quota. With random numbers the run starts anywhere in a period, otherwise at a period's beginning.
    pub(super) fn new(hundredths: u32, numbers: Option<&mut Numbers>) -> Quota {
        let per_period = u64::from(hundredths.max(1)).saturating_mul(PERIOD / 100);
        let offset = numbers.map_or(0, |numbers| numbers.below(PERIOD));
        Quota { per_period, pool: per_period, period: 0, offset, refill: None, throttled: Vec::new() }
    }

    fn advance(&mut self, now: u64) {
        let period = now.saturating_add(self.offset) / PERIOD;
        if period > self.period {
            self.period = period;
            self.pool = self.per_period;
        }
    }

    fn enter(&mut self, agenda: &mut Agenda, id: u32) {
        if self.refill.is_none() {
            let next = (self.period + 1).saturating_mul(PERIOD).saturating_sub(self.offset);
            self.refill = agenda.after(next.saturating_sub(agenda.now()).max(1), id);
        }
    }
}

impl Processors<'_> {
    /// Whether a thread may run on this processor; takes a portion of the quota if the last one is used up.
    pub(super) fn has_allowance(&mut self, at: u32) -> bool {
        let Some(quota) = &mut self.quota else { return true };
        let cpu = &mut self.cpus[at as usize];
        if cpu.allowance == 0 {
            quota.advance(self.agenda.now());
            cpu.allowance = PORTION.min(quota.pool);
            quota.pool -= cpu.allowance;
        }
        cpu.allowance > 0
    }

    /// Stops the processor, whose thread is charged up to now, until the next period.
    pub(super) fn throttle(&mut self, at: u32) {
        let current = self.cpus[at as usize].current;
        if current != NONE && self.tasks[current as usize].state != TaskState::Queued {
            self.stop(current);
        }
        self.cpus[at as usize].throttled = true;
        self.counts.throttled += 1;
        let id = self.tasks.len() as u32;
        if let Some(quota) = &mut self.quota {
            quota.throttled.push(at);
            quota.enter(&mut self.agenda, id);
        }
    }

    /// A period begins: stopped processors may run again.
    pub(super) fn refill(&mut self, entry: u32) {
        let now = self.agenda.now();
        let Some(quota) = &mut self.quota else { return };
        if quota.refill != Some(entry) {
            return;
        }
        quota.refill = None;
        quota.advance(now);
        for at in std::mem::take(&mut quota.throttled) {
            self.cpus[at as usize].throttled = false;
            self.resched(at);
        }
    }

    /// The processor is idle: the unused part of its portion returns to the quota.
    pub(super) fn give_back(&mut self, at: u32) {
        let Some(quota) = &mut self.quota else { return };
        quota.advance(self.agenda.now());
        let cpu = &mut self.cpus[at as usize];
        quota.pool = quota.pool.saturating_add(std::mem::take(&mut cpu.allowance)).min(quota.per_period);
    }
}
