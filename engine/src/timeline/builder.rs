//! Assigns records to threads: decides for each record which thread and CPU it is about, and what it proves.

use super::function_costs::FunctionCosts;
use super::gaps::Gaps;
use super::locks::Locks;
use super::model::{BaseStack, Birth, External, Step, StepKind, Thread, Wake, Wakeup};
use super::probe_intervals::ProbeIntervals;
use super::samples::Stacks;
use super::socket_requests::SocketRequests;
use super::thread::name::clean_name;
use super::thread::pending_wakeup::PendingWakeup;
use super::thread::stack::StepLog;
use super::thread::thread_tracker::{RunState, SwitchOut, Tally, ThreadTracker, Unseen};
use super::thread::wait_reason::WaitReason;
use super::thread_contexts::ThreadContexts;
use super::unprobed_locks::UnprobedLocks;
use crate::event::{Facts, Note, ThreadState, futex_of_wakee};
use crate::time::Timestamp;
use probe_abi::{
    Call, Cause, Context, Descriptor, Fork, Header, Record, Switch, SwitchFlags, Waking, WakingFlags,
};
use rustc_hash::FxHashMap;

/// The kernel's `TASK_*` bits of a thread that will never run again: `EXIT_DEAD`, `EXIT_ZOMBIE`, `TASK_DEAD`.
const DEAD_STATES: u32 = 0x10 | 0x20 | 0x80;

/// Moves all threads on, record by record.
#[derive(Clone, Debug, Default)]
pub(super) struct Builder {
    pub(super) start_ns: u64,
    pub(super) now_ns: u64,
    /// Later records are ignored.
    pub(super) limit_ns: u64,
    pub(super) threads: Vec<ThreadTracker>,
    /// Thread id → index of the thread that has this id now.
    pub(super) live: FxHashMap<u32, u32>,
    /// For each process in an exec: the thread that has exchanged numbers with its leader, until the exec is reported.
    pub(super) exchanged: FxHashMap<u32, u32>,
    /// For each process: its threads since its last exec, including dead ones.
    pub(super) by_process: FxHashMap<u32, Vec<u32>>,
    pub(super) cpus: Vec<Cpu>,
    pub(super) gaps: Gaps,
    pub(super) locks: Locks,
    pub(super) unprobed_locks: UnprobedLocks,
    pub(super) probe_intervals: ProbeIntervals,
    pub(super) tally: Tally,
    pub(super) requests: SocketRequests,
    pub(super) contexts: ThreadContexts,
    /// Wake-ups by messages from other hosts: indices in the wake-ups; in `under_way` by number if they have not arrived.
    pub(super) messages: Vec<u32>,
    under_way: FxHashMap<u32, u32>,
    pub(super) events: u64,
    pub(super) late: u64,
    /// Time at which /proc had listed all threads, ns. A thread that appears later without being listed was missed in
    /// the list, or its fork record was.
    listed_ns: u64,
    /// For each forking thread, by its id: its last forked process, until the first wake-up of that process shows that
    /// it is recorded.
    pub(super) unborn: FxHashMap<u32, Fork>,
    /// Forked processes whose first wake-up was never recorded.
    pub(super) unfollowed: u64,
    pub(super) costs: FunctionCosts,
    pub(super) stacks: Stacks,
    /// Names of processes, for threads without a name of their own.
    process_names: FxHashMap<u32, String>,
}

/// What is known about one CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cpu {
    /// The recorded thread that is on this CPU.
    pub(super) thread: Option<u32>,
    /// Time at which the CPU's thread last changed, or was found to have changed, ns.
    pub(super) changed_ns: Option<u64>,
}

/// The numbers of the set bits.
fn cpu_numbers(bits: u32) -> Vec<u32> {
    (0..u32::BITS).filter(|cpu| bits >> cpu & 1 != 0).collect()
}

impl Builder {
    /// Starts from the facts. Records after `limit_ns` are ignored.
    pub(super) fn new(facts: &Facts, notes: &[Note], limit_ns: u64) -> Builder {
        let mut builder = Builder {
            start_ns: facts.start_ns,
            now_ns: facts.start_ns,
            limit_ns,
            gaps: Gaps::new(notes, facts.start_ns),
            unprobed_locks: UnprobedLocks::new(notes),
            probe_intervals: ProbeIntervals::new(facts, notes),
            listed_ns: facts.threads.iter().map(|thread| thread.seen_ns).max().unwrap_or(0),
            process_names: facts.processes.iter().map(|p| (p.pid, clean_name(p.comm.as_bytes()))).collect(),
            costs: FunctionCosts::new(facts),
            stacks: Stacks::new(notes),
            ..Builder::default()
        };
        for fact in &facts.threads {
            let tracker = super::part::resume::tracker(fact, facts);
            let index = builder.add(tracker);
            if let Some(RunState::Running { cpu }) = index.map(|index| builder.state(index)) {
                builder.set_cpu(cpu, index);
            }
        }
        builder.gaps.advance(facts.start_ns, &mut builder.threads, &mut builder.tally);
        for thread in builder.threads.iter_mut().filter(|thread| thread.state == RunState::Gap) {
            if !builder.gaps.hit(thread) {
                thread.gap_ends(facts.start_ns);
            }
        }
        builder
    }

    /// Takes the next record.
    pub(super) fn record(&mut self, record: &Record) {
        let time_ns = record.header().time_ns;
        if time_ns < self.now_ns {
            self.late += u64::from(time_ns >= self.start_ns);
            return;
        }
        if time_ns > self.limit_ns {
            return;
        }
        self.events += 1;
        self.now_ns = time_ns;
        self.gaps.advance(time_ns, &mut self.threads, &mut self.tally);
        self.operations_go_missing(time_ns);
        self.probe_intervals.advance(time_ns, &mut self.threads);
        match record {
            Record::Switch(switch) => self.switch(switch),
            Record::Waking(waking) => self.waking(waking),
            Record::Fork(fork) => self.fork(fork),
            Record::Exec(exec) => self.exec(exec),
            Record::Exit(exit) => {
                let index = self.seen_running(&exit.header);
                self.settle_pending_wakeup(index);
                if let Some(thread) = self.thread(index) {
                    thread.exiting = true;
                    thread.out.nice = exit.nice().or(thread.out.nice);
                    if let Some(cpus) = exit.cpus() {
                        thread.out.cpus = cpu_numbers(cpus);
                    }
                }
            }
            Record::Ran(ran) => self.came_unseen(ran),
            Record::Rename(rename) => self.rename(rename),
            Record::Operation(operation) => self.operation(operation),
            Record::Burst(burst) => self.burst(burst),
            Record::Exchange(exchange) => {
                let thread = self.seen_running(&exchange.header);
                self.settle_pending_wakeup(thread);
            }
            Record::Answer(answer) => {
                let thread = self.seen_running(&answer.header);
                self.settle_pending_wakeup(thread);
                let reader = self.live.get(&answer.reader).copied();
                thread.into_iter().for_each(|thread| self.requests.answered(answer, reader, thread));
            }
            Record::ThreadContext(context) => {
                let thread = self.seen_running(&context.header);
                thread.into_iter().for_each(|thread| self.contexts.changed(thread, context));
            }
            Record::Sample(sample) => {
                // A sample alone does not prove that a thread with this id exists.
                let index = self.live.get(&sample.header.tid).copied();
                if let Some(thread) = index.and_then(|index| self.threads.get_mut(index as usize)) {
                    self.stacks.sample(sample, thread);
                }
            }
            Record::FunctionEnter(enter) => self.enters(enter),
            Record::FunctionExit(exit) => self.leaves(exit),
        }
    }

    /// Moves time to `time_ns`; no more records come up to it.
    pub(super) fn advance_to(&mut self, time_ns: u64) {
        self.operations_go_missing(time_ns);
        self.probe_intervals.advance(time_ns, &mut self.threads);
        self.gaps.advance(time_ns, &mut self.threads, &mut self.tally);
        self.now_ns = self.now_ns.max(time_ns);
    }

    pub(super) fn switch(&mut self, switch: &Switch) {
        let header = &switch.header;
        let (time_ns, cpu) = (header.time_ns, header.cpu);
        let prev_tracked = switch.flags & SwitchFlags::PREV_TRACKED != 0;
        let how = match switch.prev_state {
            _ if switch.flags & SwitchFlags::PREEMPTED != 0 => SwitchOut::Runnable,
            0 => SwitchOut::Runnable,
            state if state & DEAD_STATES != 0 => SwitchOut::Dead,
            _ => SwitchOut::Blocked(WaitReason::of_sleeper(switch)),
        };
        let prev = match how {
            SwitchOut::Dead => self.dying(header, prev_tracked),
            _ => self.find_or_add_on(cpu, header.pid, header.tid, prev_tracked),
        };
        match prev {
            Some(index) => {
                self.set_current(index, cpu);
                let Builder { threads, tally, gaps, .. } = self;
                if let Some(thread) = threads.get_mut(index as usize) {
                    if switch.prev_user_sp != 0 {
                        let mut log = StepLog { time: Timestamp(time_ns), steps: &mut thread.out.steps };
                        thread.stacks.seen_at(switch.prev_user_sp, &mut log);
                    }
                    if switch.flags & SwitchFlags::YIELDED != 0 {
                        thread.yields(time_ns);
                    }
                    thread.sched_out(time_ns, how, tally);
                    if how != SwitchOut::Dead {
                        gaps.hold(time_ns, thread, tally);
                    } else if thread.state != RunState::Dead {
                        // The thread is in a gap, but its last switch still proves that it died.
                        thread.gone(time_ns, tally);
                    }
                }
                self.set_cpu(cpu, None);
            }
            None => self.displace(cpu, None),
        }
        let next_tracked = switch.flags & SwitchFlags::NEXT_TRACKED != 0;
        if let Some(index) = self.find_or_add_on(cpu, switch.next_pid, switch.next_tid, next_tracked) {
            self.leave_other_cpu(index, cpu);
            let Builder { threads, tally, gaps, .. } = self;
            if let Some(thread) = threads.get_mut(index as usize) {
                thread.sched_in(time_ns, cpu, tally);
                gaps.hold(time_ns, thread, tally);
            }
            self.set_cpu(cpu, Some(index));
        }
    }

    pub(super) fn waking(&mut self, waking: &Waking) {
        let header = &waking.header;
        let time_ns = header.time_ns;
        if waking.flags & WakingFlags::SENT != 0 {
            return self.message(waking);
        }
        if waking.flags & WakingFlags::READ != 0 {
            return self.message_read(waking);
        }
        let tracked = waking.flags & WakingFlags::WAKER_TRACKED != 0;
        // A soft interrupt in a thread's own system call that delivers the thread's own packet is the thread's doing.
        let own_packet = waking.flags & WakingFlags::OWN_PACKET != 0;
        let in_task = Context::from_byte(header.context) == Context::Task || own_packet;
        // The record proves that the CPU's current thread runs there, even if it was interrupted. That thread is the
        // waker only if it was not interrupted.
        let current = self.find_or_add_on(header.cpu, header.pid, header.tid, tracked);
        if let Some(current) = current {
            self.set_current(current, header.cpu);
        }
        let waker = current.filter(|_| in_task);
        // A thread that wakes others did not fall asleep after it was last woken.
        self.settle_pending_wakeup(waker);
        if waking.flags & WakingFlags::NEW != 0 {
            return self.first_waking(waking, waker);
        }
        let Some(wakee) = self.find_or_add(waking.wakee_pid, waking.wakee_tid, true) else { return };
        if waking.wakee_state == 0 || waker == Some(wakee) {
            self.tally.spurious += 1;
            return;
        }
        let wake = match (waker, Context::from_byte(header.context)) {
            (Some(waker), _) => {
                let wakeup = u32::try_from(self.tally.wakeups.len()).unwrap_or(u32::MAX);
                self.tally.wakeups.push(Wakeup { time: Timestamp(time_ns), waker, wakee, ended: None });
                self.step(waker, time_ns, StepKind::Wake(wakeup));
                Wake::By(wakeup)
            }
            (None, _) if waking.flags & WakingFlags::ARRIVED != 0 => {
                let sent = self.under_way.remove(&waking.cause);
                sent.map_or(Wake::External(External::Network), Wake::By)
            }
            (None, _) if waking.flags & WakingFlags::SIGNAL != 0 => Wake::External(External::Signal),
            (None, Context::Task) => Wake::External(External::Task),
            (None, Context::HardIrq | Context::SoftIrq) => Wake::External(interrupt(waking)),
            (None, Context::Nmi) => Wake::External(External::Nmi),
            (None, Context::Idle) => Wake::External(External::Idle),
            (None, Context::Unknown) => Wake::External(External::UnknownContext),
        };
        let Builder { threads, tally, gaps, .. } = self;
        if let Some(thread) = threads.get_mut(wakee as usize) {
            let woken = PendingWakeup {
                time_ns,
                wake,
                call: waking.wakee_call,
                futex: futex_of_wakee(waking),
                other_word: (waking.flags & WakingFlags::OTHER_WORD != 0)
                    .then_some(waking.wakee_call.argument0),
            };
            thread.wakeup(woken, tally);
            gaps.hold(time_ns, thread, tally);
        }
    }

    /// A thread sends a message to another host, where it will wake a thread.
    fn message(&mut self, waking: &Waking) {
        let header = &waking.header;
        let Some(waker) = self.find_or_add(header.pid, header.tid, true) else { return };
        let Some(wakee) = self.find_or_add(waking.wakee_pid, waking.wakee_tid, true) else { return };
        if waker == wakee {
            return;
        }
        let wakeup = u32::try_from(self.tally.wakeups.len()).unwrap_or(u32::MAX);
        self.tally.wakeups.push(Wakeup { time: Timestamp(header.time_ns), waker, wakee, ended: None });
        self.step(waker, header.time_ns, StepKind::Wake(wakeup));
        self.messages.push(wakeup);
        self.under_way.insert(waking.cause, wakeup);
    }

    /// A thread reads a message from another host that had already arrived: a wait of no length.
    fn message_read(&mut self, waking: &Waking) {
        /// `recvfrom(2)` on x86-64.
        const RECEIVE: Call = Call { number: 45, argument1: 0, argument0: 0 };
        let time_ns = waking.header.time_ns;
        let Some(wakeup) = self.under_way.remove(&waking.cause) else { return };
        let Some(reader) = self.live.get(&waking.wakee_tid).copied() else { return };
        let Builder { threads, tally, .. } = self;
        let Some(thread) = threads.get_mut(reader as usize) else { return };
        let reason = WaitReason::Kernel { call: RECEIVE, descriptor: Descriptor::Socket, task_state: 1 };
        thread.reads(time_ns, reason, Wake::By(wakeup), tally);
    }

    /// A record that a thread wrote on a CPU proves that the thread runs there.
    pub(super) fn seen_running(&mut self, header: &Header) -> Option<u32> {
        let index = self.find_or_add_on(header.cpu, header.pid, header.tid, true)?;
        self.set_current(index, header.cpu);
        Some(index)
    }

    pub(super) fn settle_pending_wakeup(&mut self, index: Option<u32>) {
        let now_ns = self.now_ns;
        let Builder { threads, tally, .. } = self;
        if let Some(thread) = index.and_then(|index| threads.get_mut(index as usize)) {
            thread.settle_pending_wakeup(now_ns, tally);
        }
    }

    pub(super) fn step(&mut self, index: u32, time_ns: u64, kind: StepKind) {
        if let Some(thread) = self.thread(Some(index)) {
            thread.out.steps.push(Step { time: Timestamp(time_ns), kind });
        }
    }

    pub(super) fn state(&self, index: u32) -> RunState {
        self.threads.get(index as usize).map_or(RunState::Dead, |thread| thread.state)
    }

    pub(super) fn thread(&mut self, index: Option<u32>) -> Option<&mut ThreadTracker> {
        self.threads.get_mut(index? as usize)
    }

    /// The living thread with this id. If none is known and `tracked` is set (the thread is recorded), adds one as
    /// unlisted.
    pub(super) fn find_or_add(&mut self, pid: u32, tid: u32, tracked: bool) -> Option<u32> {
        if tid == 0 {
            return None;
        }
        if let Some(&index) = self.live.get(&tid)
            && let Some(thread) = self.threads.get(index as usize)
            && thread.out.pid == pid
            && thread.state != RunState::Dead
        {
            return Some(index);
        }
        if tid == pid
            && let Some(caller) = self.exchange(pid)
        {
            return Some(caller);
        }
        if self.replaced_leader(pid, tid) {
            return None;
        }
        // Up to `listed_ns`: the thread was alive at the start and ended before /proc was read. Later: /proc did not
        // list it.
        let missed = if self.now_ns <= self.listed_ns {
            Unseen::Listed { state: ThreadState::Unknown, seen_ns: u64::MAX }
        } else {
            Unseen::NotListed
        };
        if tracked { self.add_thread(pid, tid, 0, &[], RunState::Unseen(missed)) } else { None }
    }

    /// Like `find_or_add` for a thread on this CPU. A leader that exits on another CPU has exchanged its id.
    pub(super) fn find_or_add_on(&mut self, cpu: u16, pid: u32, tid: u32, tracked: bool) -> Option<u32> {
        let index = self.find_or_add(pid, tid, tracked)?;
        let elsewhere = |thread: &ThreadTracker| {
            thread.exiting && matches!(thread.state, RunState::Running { cpu: other } if other != cpu)
        };
        let replaced =
            tid == pid && cpu != Header::NO_CPU && self.thread(Some(index)).is_some_and(|t| elsewhere(t));
        let caller = if replaced { self.exchange(pid) } else { None };
        Some(caller.unwrap_or(index))
    }

    pub(super) fn add_thread(
        &mut self,
        pid: u32,
        tid: u32,
        start_time_ns: u64,
        comm: &[u8],
        now: RunState,
    ) -> Option<u32> {
        let not_listed = matches!(now, RunState::Unseen(_));
        // An unlisted thread may have lived since the start, or since the last thread with the same id ended.
        let earlier = self.live.get(&tid).and_then(|&index| self.threads.get(index as usize));
        let earlier_ns = earlier.filter(|t| t.state == RunState::Dead).map_or(self.start_ns, |t| t.out.end.0);
        let start_ns = if not_listed { earlier_ns } else { self.now_ns };
        let comm = clean_name(comm);
        let comm =
            if comm.is_empty() { self.process_names.get(&pid).cloned().unwrap_or_default() } else { comm };
        let start = Timestamp(start_ns);
        let birth = if start_ns == self.start_ns { Birth::BeforeWindow } else { Birth::Unknown };
        let base_stacks = vec![BaseStack { first_step: 0, time: start, functions: Vec::new() }];
        let out = Thread {
            pid,
            tid,
            start_time_ns,
            comm,
            start,
            end: start,
            birth,
            base_stacks,
            ..Thread::default()
        };
        self.add(ThreadTracker::new(out, now, not_listed))
    }

    pub(super) fn add(&mut self, tracker: ThreadTracker) -> Option<u32> {
        let index = u32::try_from(self.threads.len()).ok().filter(|&index| index != u32::MAX)?;
        let (tid, now_ns) = (tracker.out.tid, self.now_ns);
        if let Some(old) = self.live.insert(tid, index)
            && let Some(thread) = self.threads.get_mut(old as usize)
            && thread.state != RunState::Dead
        {
            // The id is in use again, so the old thread with this id has ended.
            thread.gone(now_ns, &mut self.tally);
            self.off_all_cpus(old);
        }
        self.by_process.entry(tracker.out.pid).or_default().push(index);
        self.threads.push(tracker);
        Some(index)
    }
}

/// The kind of interrupt that a waking in interrupt context comes from.
fn interrupt(waking: &Waking) -> External {
    match Cause::from_number(waking.cause) {
        Cause::Timer => External::Timer,
        Cause::Network => External::Network,
        Cause::Block => External::Block,
        Cause::Device => External::Device,
        Cause::Soft => External::SoftIrq,
        Cause::None if waking.header.context == Context::SoftIrq as u8 => External::SoftIrq,
        Cause::None => External::HardIrq,
    }
}
