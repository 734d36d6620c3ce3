//! Keeps track of which thread is on which CPU. Each CPU runs one thread, so a record by one thread proves that another
//! has left.

use super::builder::{Builder, Cpu};
use super::thread::thread_tracker::RunState;
use probe_abi::Ran;

impl Builder {
    /// A record proves that the thread is on this CPU now.
    pub(super) fn set_current(&mut self, index: u32, cpu: u16) {
        let known = self.cpus.get(cpu as usize).copied().unwrap_or_default();
        let mut others_ns = None;
        if known.thread != Some(index) {
            let other = known.thread.and_then(|other| self.threads.get(other as usize));
            others_ns = known.changed_ns.max(other.map(|other| other.last_ns));
            self.displace(cpu, Some(index));
            self.leave_other_cpu(index, cpu);
            self.set_cpu(cpu, Some(index));
        }
        let now_ns = self.now_ns;
        let Builder { threads, tally, gaps, .. } = self;
        if let Some(thread) = threads.get_mut(index as usize) {
            thread.seen_running(now_ns, cpu, others_ns, tally);
            gaps.hold(now_ns, thread, tally);
        }
    }

    /// The thread leaves a CPU, and its switch to that CPU is missing. The CPU time in the `Ran` record shows when the
    /// thread came.
    pub(super) fn came_unseen(&mut self, ran: &Ran) {
        let Ran { header, ran_ns } = ran;
        let Some(index) = self.find_or_add_on(header.cpu, header.pid, header.tid, true) else { return };
        if self.current_on(header.cpu) != Some(index) {
            self.displace(header.cpu, Some(index));
            self.leave_other_cpu(index, header.cpu);
            self.set_cpu(header.cpu, Some(index));
        }
        let Builder { threads, tally, gaps, .. } = self;
        if let Some(thread) = threads.get_mut(index as usize) {
            thread.came(header.time_ns.saturating_sub(*ran_ns), header.cpu, tally);
            gaps.hold(header.time_ns, thread, tally);
        }
    }

    /// Another thread (`by`), or a thread that is not recorded, is on this CPU: the thread that was known there has
    /// left.
    pub(super) fn displace(&mut self, cpu: u16, by: Option<u32>) {
        let Some(other) = self.current_on(cpu) else { return };
        if Some(other) == by {
            return;
        }
        self.set_cpu(cpu, None);
        let now_ns = self.now_ns;
        let Builder { threads, tally, gaps, .. } = self;
        if let Some(thread) = threads.get_mut(other as usize)
            && thread.state == (RunState::Running { cpu })
        {
            thread.displaced(now_ns, tally);
            gaps.hold(now_ns, thread, tally);
        }
    }

    pub(super) fn leave_other_cpu(&mut self, index: u32, cpu: u16) {
        if let RunState::Running { cpu: other } = self.state(index)
            && other != cpu
            && self.current_on(other) == Some(index)
        {
            self.set_cpu(other, None);
        }
    }

    /// The tracked thread on a CPU.
    pub(super) fn current_on(&self, cpu: u16) -> Option<u32> {
        self.cpus.get(cpu as usize).and_then(|cpu| cpu.thread)
    }

    pub(super) fn set_cpu(&mut self, cpu: u16, thread: Option<u32>) {
        let cpu = cpu as usize;
        if cpu >= self.cpus.len() {
            self.cpus.resize(cpu + 1, Cpu::default());
        }
        if let Some(slot) = self.cpus.get_mut(cpu) {
            *slot = Cpu { thread, changed_ns: Some(self.now_ns) };
        }
    }

    pub(super) fn off_all_cpus(&mut self, thread: u32) {
        for cpu in self.cpus.iter_mut().filter(|cpu| cpu.thread == Some(thread)) {
            cpu.thread = None;
        }
    }
}
