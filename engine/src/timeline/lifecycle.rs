//! Births, exec and new names of threads.

use super::builder::Builder;
use super::model::{BaseStack, Birth, StepKind};
use super::thread::name::set_name;
use super::thread::stack::StepLog;
use super::thread::thread_tracker::{RunState, ThreadTracker, Unseen};
use crate::time::Timestamp;
use probe_abi::{Exec, Fork, Header, Rename, Waking};

impl Builder {
    pub(super) fn fork(&mut self, fork: &Fork) {
        let parent = self.seen_running(&fork.header);
        let time_ns = fork.header.time_ns;
        let now = RunState::Forked { parent };
        let listed = self.find_or_add(fork.child_pid, fork.child_tid, false).filter(|&index| {
            !matches!(self.state(index), RunState::Forked { .. }) && self.newborn(index, time_ns)
        });
        let child = match listed {
            // /proc listed the thread after its birth, but before this record was read.
            Some(index) => {
                if let Some(thread) = self.thread(Some(index)) {
                    thread.state = now;
                    thread.since_ns = time_ns;
                }
                Some(index)
            }
            // A child process that is not recorded has no further records: its thread would seem to run forever.
            None if fork.child_pid != fork.header.pid => {
                self.unborn.insert(fork.header.tid, *fork);
                self.unfollowed = self.unfollowed.saturating_add(1);
                None
            }
            None => self.add_thread(fork.child_pid, fork.child_tid, fork.child_start_ns, &fork.comm, now),
        };
        if let (Some(parent), Some(child)) = (parent, child) {
            self.step(parent, time_ns, StepKind::Create(child));
        }
    }

    pub(super) fn first_waking(&mut self, waking: &Waking, waker: Option<u32>) {
        let (pid, tid, time_ns) = (waking.wakee_pid, waking.wakee_tid, waking.header.time_ns);
        let known = self.find_or_add(pid, tid, false).filter(|&index| self.newborn(index, time_ns));
        let wakee = match known {
            Some(index) => Some(index),
            None => {
                let forked = self.unborn.remove(&waking.header.tid);
                let forked = forked.filter(|fork| (fork.child_pid, fork.child_tid) == (pid, tid));
                self.unfollowed = self.unfollowed.saturating_sub(u64::from(forked.is_some()));
                let (start_ns, comm) = forked.map_or((0, [0; 16]), |fork| (fork.child_start_ns, fork.comm));
                self.add_thread(pid, tid, start_ns, &comm, RunState::Forked { parent: waker })
            }
        };
        let Some(wakee) = wakee else { return };
        // The fork record has made a step of the parent. If that record is missing, the waker is taken as the parent.
        let parent = match self.state(wakee) {
            RunState::Forked { parent: Some(parent) } if known.is_some() => Some(parent),
            _ => {
                if let Some(waker) = waker {
                    self.step(waker, time_ns, StepKind::Create(wakee));
                }
                waker
            }
        };
        let Builder { threads, tally, gaps, .. } = self;
        if let Some(thread) = threads.get_mut(wakee as usize) {
            thread.born(time_ns, parent.map_or(Birth::Unknown, Birth::By));
            gaps.hold(time_ns, thread, tally);
        }
    }

    pub(super) fn exec(&mut self, exec: &Exec) {
        let Header { time_ns, tid, pid, cpu, .. } = exec.header;
        self.unprobed_locks.exec(pid);
        // If the record of an earlier exec is missing, the thread that exchanged ids may be dead by now.
        let exchanged = self.exchanged.remove(&pid).filter(|&caller| self.state(caller) != RunState::Dead);
        let caller = exchanged.or_else(|| self.find_or_add(pid, exec.old_tid, true));
        // Only threads of this process are visited: a build calls exec in a process for each file, so visiting all
        // threads would be too slow.
        let threads = self.by_process.insert(pid, caller.into_iter().collect()).unwrap_or_default();
        for index in threads {
            if Some(index) != caller
                && let Some(thread) = self.threads.get_mut(index as usize)
                && !matches!(thread.state, RunState::Dead)
            {
                thread.gone(time_ns, &mut self.tally);
                self.off_all_cpus(index);
            }
        }
        self.locks.exec(pid);
        let Some(caller) = caller else { return };
        // The old leader may still be switched away from, under the id that the caller had.
        if let Some(leader) = self.live.insert(tid, caller).filter(|&leader| leader != caller) {
            self.live.insert(exec.old_tid, leader);
        }
        self.set_current(caller, cpu);
        self.settle_pending_wakeup(Some(caller));
        let Some(thread) = self.threads.get_mut(caller as usize) else { return };
        thread.out.tid = tid;
        set_name(&mut thread.out.comm, &exec.comm);
        thread.functions_lost = false;
        let mut log = StepLog { time: Timestamp(time_ns), steps: &mut thread.out.steps };
        thread.stacks.clear(&mut log);
        thread.stretches.forget(&|_| true);
        let first_step = u32::try_from(thread.out.steps.len()).unwrap_or(u32::MAX);
        let time = Timestamp(time_ns);
        thread.out.base_stacks.push(BaseStack { first_step, time, functions: Vec::new() });
    }

    /// The thread that has taken over a leader's id for an exec.
    ///
    /// A thread that calls exec and does not lead its process waits until all other threads of the process have ended.
    /// Then it exchanges ids with the leader (`de_thread` in fs/exec.c, `exchange_tids` in kernel/pid.c). That is
    /// before the exec record: the thread may be switched before that record, even before the leader's last switch. It
    /// is the only living thread of the process.
    pub(super) fn exchange(&mut self, pid: u32) -> Option<u32> {
        let &leader = self.live.get(&pid)?;
        let ended = |thread: &ThreadTracker| thread.exiting || thread.state == RunState::Dead;
        if !self.threads.get(leader as usize).is_some_and(|leader| leader.out.pid == pid && leader.exiting) {
            return None;
        }
        let alive = |&index: &u32| self.threads.get(index as usize).is_some_and(|thread| !ended(thread));
        let mut left = self.by_process.get(&pid)?.iter().copied().filter(alive);
        let (caller, None) = (left.next()?, left.next()) else { return None };
        let thread = self.threads.get_mut(caller as usize)?;
        self.live.insert(thread.out.tid, leader);
        self.live.insert(pid, caller);
        thread.out.tid = pid;
        self.exchanged.insert(pid, caller);
        Some(caller)
    }

    /// Whether this id belongs to a leader that an exec has replaced and that is still exiting.
    ///
    /// Until its last switch, switches name it by this id. They must not make a new thread.
    pub(super) fn replaced_leader(&self, pid: u32, tid: u32) -> bool {
        let named = self.live.get(&tid).and_then(|&index| self.threads.get(index as usize));
        named.is_some_and(|thread| {
            thread.out.pid == pid && thread.state == RunState::Dead && thread.exiting && thread.out.tid != tid
        })
    }

    /// The thread whose last switch this is; `None` if its end is known already.
    ///
    /// For a leader that ended during an exec, the record has the id of the thread that replaces it.
    pub(super) fn dying(&mut self, header: &Header, tracked: bool) -> Option<u32> {
        let named = self.live.get(&header.tid).and_then(|&index| self.threads.get(index as usize));
        let named = named.filter(|thread| thread.out.pid == header.pid);
        if named.is_some_and(|thread| thread.state == RunState::Dead) {
            if self.replaced_leader(header.pid, header.tid) {
                self.live.remove(&header.tid);
            }
            return None;
        }
        let leader =
            self.live.get(&header.pid).copied().filter(|&leader| self.current_on(header.cpu) == Some(leader));
        if leader.is_some()
            && named.is_some_and(|thread| !thread.exiting)
            && self.exchange(header.pid).is_some()
        {
            return leader;
        }
        self.find_or_add(header.pid, header.tid, tracked)
    }

    pub(super) fn rename(&mut self, rename: &Rename) {
        let Rename { header, renamed_tid, renamed_pid, .. } = rename;
        let current = self.find_or_add_on(header.cpu, header.pid, header.tid, false);
        if let Some(index) = current {
            self.set_current(index, header.cpu);
        }
        let renamed = if *renamed_tid == header.tid {
            current
        } else {
            self.find_or_add(*renamed_pid, *renamed_tid, false)
        };
        if let Some(thread) = self.thread(renamed) {
            set_name(&mut thread.out.comm, &rename.comm);
        }
    }

    /// Whether a birth at `time_ns` can be this thread's: not woken yet, or listed by /proc later and without a record since.
    pub(super) fn newborn(&self, index: u32, time_ns: u64) -> bool {
        match self.state(index) {
            RunState::Forked { .. } => true,
            RunState::Unseen(Unseen::Listed { seen_ns, .. }) => seen_ns >= time_ns,
            _ => false,
        }
    }
}
