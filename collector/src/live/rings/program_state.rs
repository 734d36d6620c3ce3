//! Keeps track of how many threads of the program run, and how many wait for locks, after each record. That is enough
//! for conditions, and takes one or two hash look-ups for each record. No timeline is built.

use engine::event::{ThreadFact, ThreadState, futex_of_sleeper};
use probe_abi::{Record, Switch, SwitchFlags};
use rustc_hash::FxHashMap;

/// The kernel's `TASK_*` bits of a thread that will never run again: `EXIT_DEAD`, `EXIT_ZOMBIE`, `TASK_DEAD`.
const DEAD_STATES: u32 = 0x10 | 0x20 | 0x80;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// The thread has a CPU.
    Runs,
    /// The thread sleeps in a futex call.
    WaitsForLock,
    /// The thread waits for a CPU, or for something else.
    Other,
}

/// The program's threads at present.
#[derive(Debug, Default)]
pub struct ProgramState {
    threads: FxHashMap<u32, (u32, Doing)>,
    /// The thread on each CPU.
    cpus: FxHashMap<u16, u32>,
    running: u32,
    waiting: u32,
}

impl ProgramState {
    /// The state of threads at the start, according to /proc. A thread that runs there counts as on a CPU until its
    /// first record.
    pub fn new(threads: &[ThreadFact]) -> ProgramState {
        let mut state = ProgramState::default();
        for thread in threads {
            let runs = thread.state == ThreadState::Running;
            state.set(thread.pid, thread.tid, if runs { Doing::Runs } else { Doing::Other });
        }
        state
    }

    /// Number of threads.
    pub fn threads(&self) -> u32 {
        u32::try_from(self.threads.len()).unwrap_or(u32::MAX)
    }

    /// Threads that have a CPU.
    pub fn running(&self) -> u32 {
        self.running
    }

    /// Threads that sleep in a futex call.
    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Takes the next record.
    pub fn record(&mut self, record: &Record) {
        match record {
            Record::Switch(switch) => self.switch(switch),
            // Waking a thread that does not sleep ends no wait.
            Record::Waking(waking) if self.doing(waking.wakee_tid) == Some(Doing::Runs) => {}
            Record::Waking(waking) => self.set(waking.wakee_pid, waking.wakee_tid, Doing::Other),
            Record::Fork(fork) => self.set(fork.child_pid, fork.child_tid, Doing::Other),
            Record::Exec(exec) => {
                let (pid, tid) = (exec.header.pid, exec.header.tid);
                let others: Vec<u32> =
                    self.threads.iter().filter(|(_, (of, _))| *of == pid).map(|(tid, _)| *tid).collect();
                others.into_iter().for_each(|tid| self.remove(tid));
                self.runs_on(exec.header.cpu, pid, tid);
            }
            Record::Exit(exit) => self.remove(exit.header.tid),
            _ => {}
        }
    }

    fn switch(&mut self, switch: &Switch) {
        let (cpu, pid, tid) = (switch.header.cpu, switch.header.pid, switch.header.tid);
        // Another thread was on that CPU, by earlier records: the record of its switch was lost.
        if let Some(there) = self.cpus.remove(&cpu).filter(|there| *there != tid)
            && self.doing(there) == Some(Doing::Runs)
        {
            self.change(there, Doing::Other);
        }
        if switch.flags & SwitchFlags::PREV_TRACKED != 0 {
            let stays = switch.prev_state == 0 || switch.flags & SwitchFlags::PREEMPTED != 0;
            if !stays && switch.prev_state & DEAD_STATES != 0 {
                self.remove(tid);
            } else if !stays && futex_of_sleeper(switch).is_some() {
                self.set(pid, tid, Doing::WaitsForLock);
            } else {
                self.set(pid, tid, Doing::Other);
            }
        }
        if switch.flags & SwitchFlags::NEXT_TRACKED != 0 {
            self.runs_on(cpu, switch.next_pid, switch.next_tid);
        }
    }

    fn runs_on(&mut self, cpu: u16, pid: u32, tid: u32) {
        self.set(pid, tid, Doing::Runs);
        self.cpus.insert(cpu, tid);
    }

    fn doing(&self, tid: u32) -> Option<Doing> {
        self.threads.get(&tid).map(|(_, doing)| *doing)
    }

    fn set(&mut self, pid: u32, tid: u32, doing: Doing) {
        // Thread 0 is idle and does not count.
        if tid != 0 {
            let before = self.threads.insert(tid, (pid, doing));
            self.count(before.map(|(_, doing)| doing), Some(doing));
        }
    }

    fn change(&mut self, tid: u32, to: Doing) {
        if let Some((_, doing)) = self.threads.get_mut(&tid) {
            let before = std::mem::replace(doing, to);
            self.count(Some(before), Some(to));
        }
    }

    fn remove(&mut self, tid: u32) {
        let before = self.threads.remove(&tid);
        self.count(before.map(|(_, doing)| doing), None);
    }

    fn count(&mut self, before: Option<Doing>, now: Option<Doing>) {
        let counts = |doing: Option<Doing>| {
            (u32::from(doing == Some(Doing::Runs)), u32::from(doing == Some(Doing::WaitsForLock)))
        };
        let ((ran, waited), (runs, waits)) = (counts(before), counts(now));
        self.running = self.running.saturating_sub(ran).saturating_add(runs);
        self.waiting = self.waiting.saturating_sub(waited).saturating_add(waits);
    }
}
