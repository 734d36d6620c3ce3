//! Gives a host's processes, threads, CPUs and functions numbers that no other host has, and moves times to the first host's
//! clock.

use super::clock::Clock;
use crate::event::{
    Condition, Facts, FunctionId, HostFact, IDS_OF_A_HOST, Note, NoteKind, Recording, STACKS_AT_ONCE,
    ThreadFact, WindowEnd, is_jit_code, jit_code,
};
use probe_abi::{Exit, Header, Record, Switch, SwitchFlags, WakingFlags};
use rustc_hash::FxHashMap;

/// A host's number of a process or thread, in the joined recording.
pub(super) fn id(own: u32, host: usize) -> u32 {
    let base = u32::try_from(host).unwrap_or(u32::MAX).saturating_mul(IDS_OF_A_HOST);
    // 0 is no thread, or the idle one of each CPU. A larger number than Linux gives can only come from a damaged file.
    if own == 0 { 0 } else { base.saturating_add(own.min(IDS_OF_A_HOST - 1)) }
}

/// The part of a joined recording that comes from one host. Stacks keep their numbers; see [`stacks`].
pub(super) fn moved(
    mut part: Recording,
    (host, first_function): (usize, FunctionId),
    fact: &HostFact,
    clock: &Clock,
) -> Recording {
    let moving = Moving { host, first_function, first_cpu: fact.first_cpu, clock };
    moving.facts(&mut part.facts);
    part.notes.iter_mut().for_each(|note| moving.note(note));
    part.events.iter_mut().for_each(|event| moving.record(event));
    part
}

struct Moving<'a> {
    host: usize,
    first_function: FunctionId,
    first_cpu: u32,
    clock: &'a Clock,
}

impl Moving<'_> {
    fn id(&self, own: &mut u32) {
        *own = id(*own, self.host);
    }

    fn cpu(&self, own: &mut u16) {
        if *own != Header::NO_CPU {
            let cpu = u32::from(*own).saturating_add(self.first_cpu);
            *own = u16::try_from(cpu).unwrap_or(Header::NO_CPU);
        }
    }

    /// 0 stands for "from the start on", or "not known".
    fn time(&self, own: &mut u64) {
        if *own != 0 {
            *own = self.clock.first_host_s(*own);
        }
    }

    fn function(&self, own: &mut FunctionId) {
        *own = own.saturating_add(self.first_function);
    }

    /// Files of different hosts may have the same number.
    fn awaited(&self, own: &mut u32) {
        *own ^= (self.host as u32).wrapping_mul(0x9e37_79b8);
    }

    fn path(&self, path: &mut String) {
        // The process's number is in the name of memory in which it makes code.
        if is_jit_code(path)
            && let Some(pid) = path.rsplit([' ', ']']).nth(1).and_then(|pid| pid.parse().ok())
        {
            *path = jit_code(id(pid, self.host));
        }
    }

    fn record(&self, record: &mut Record) {
        let sent = matches!(record, Record::Waking(waking) if waking.flags & WakingFlags::SENT != 0);
        let header = header(record);
        self.time(&mut header.time_ns);
        self.cpu(&mut header.cpu);
        self.id(&mut header.tid);
        self.id(&mut header.pid);
        match record {
            Record::Switch(switch) => self.switch(switch),
            Record::Waking(waking) if !sent => {
                self.id(&mut waking.wakee_tid);
                self.id(&mut waking.wakee_pid);
            }
            Record::Fork(fork) => {
                self.id(&mut fork.child_tid);
                self.id(&mut fork.child_pid);
            }
            Record::Exec(exec) => self.id(&mut exec.old_tid),
            Record::Exit(exit) => self.exit(exit),
            Record::Rename(rename) => {
                self.id(&mut rename.renamed_tid);
                self.id(&mut rename.renamed_pid);
            }
            Record::FunctionEnter(enter) => self.function(&mut enter.function),
            Record::FunctionExit(exit) => self.function(&mut exit.function),
            Record::Operation(operation) => self.time(&mut operation.began_ns),
            Record::Answer(answer) => {
                self.time(&mut answer.arrived_ns);
                self.time(&mut answer.read_ns);
                self.id(&mut answer.reader);
            }
            Record::Exchange(exchange) => {
                self.time(&mut exchange.sent_ns);
                self.time(&mut exchange.arrived_ns);
                self.time(&mut exchange.read_ns);
                self.id(&mut exchange.other);
            }
            // 0 is no time.
            Record::ThreadContext(context) if context.before_ns != 0 => self.time(&mut context.before_ns),
            Record::Waking(_)
            | Record::Sample(_)
            | Record::Ran(_)
            | Record::Burst(_)
            | Record::ThreadContext(_) => {}
        }
    }

    fn switch(&self, switch: &mut Switch) {
        self.id(&mut switch.next_tid);
        self.id(&mut switch.next_pid);
        if switch.flags & SwitchFlags::AWAITED != 0 {
            self.awaited(&mut switch.prev_call.argument1);
        }
    }

    /// The record has room for the first CPUs only.
    fn exit(&self, exit: &mut Exit) {
        let moved = exit
            .cpus()
            .and_then(|cpus| cpus.checked_shl(self.first_cpu).filter(|to| to >> self.first_cpu == cpus));
        let cpus = moved.filter(|cpus| *cpus < 1 << Exit::CPUS).unwrap_or(0);
        exit.placement = Exit::placed(exit.placement, cpus);
    }

    fn facts(&self, facts: &mut Facts) {
        self.time(&mut facts.start_ns);
        for process in &mut facts.processes {
            self.id(&mut process.pid);
        }
        facts.threads.iter_mut().for_each(|thread| self.thread(thread));
        for function in &mut facts.functions {
            self.function(&mut function.id);
        }
        for address in &mut facts.addresses {
            self.id(&mut address.pid);
            self.time(&mut address.since_ns);
        }
        facts.launched.iter_mut().for_each(|pid| self.id(pid));
        for mapping in &mut facts.mappings {
            self.id(&mut mapping.pid);
            self.time(&mut mapping.since_ns);
            self.path(&mut mapping.path);
        }
        for code in &mut facts.code {
            self.time(&mut code.since_ns);
            self.path(&mut code.path);
        }
        facts.end.iter_mut().for_each(|end| self.end(end));
    }

    fn end(&self, end: &mut WindowEnd) {
        self.time(&mut end.end_ns);
        end.threads.iter_mut().for_each(|thread| self.thread(thread));
        for pending in &mut end.pending {
            self.id(&mut pending.pid);
            self.id(&mut pending.tid);
            self.time(&mut pending.began_ns);
        }
        for waits in end.kernel_locks.iter_mut().flat_map(|locks| &mut locks.waits) {
            self.id(&mut waits.pid);
        }
        if let Some(requests) = &mut end.requests {
            requests.sums.iter_mut().for_each(|sum| self.id(&mut sum.pid));
            for open in &mut requests.open {
                self.id(&mut open.reader);
                self.time(&mut open.arrived_ns);
                self.time(&mut open.read_ns);
            }
        }
        end.awaited.iter_mut().for_each(|awaited| self.awaited(&mut awaited.number));
        end.goroutines.iter_mut().for_each(|goroutines| self.id(&mut goroutines.pid));
    }

    fn thread(&self, thread: &mut ThreadFact) {
        self.id(&mut thread.tid);
        self.id(&mut thread.pid);
        self.time(&mut thread.seen_ns);
        for cpu in &mut thread.cpus {
            *cpu = cpu.saturating_add(self.first_cpu);
        }
        thread.awaits.iter_mut().for_each(|awaits| self.id(&mut awaits.tid));
        if let Some(before) = &mut thread.before {
            if let Condition::Running { cpu } = &mut before.condition {
                self.cpu(cpu);
            }
            let frames = before.stacks.iter_mut().flat_map(|stack| &mut stack.frames);
            frames.for_each(|frame| self.function(&mut frame.function));
        }
    }

    fn note(&self, note: &mut Note) {
        self.time(&mut note.time_ns);
        match &mut note.kind {
            NoteKind::ProbesOff { functions, .. } => functions.iter_mut().for_each(|id| self.function(id)),
            NoteKind::ProbesOn { functions, pid } => {
                functions.iter_mut().for_each(|id| self.function(id));
                pid.iter_mut().for_each(|pid| self.id(pid));
            }
            NoteKind::Stack { pid, .. } | NoteKind::Changed { pid, .. } => self.id(pid),
            NoteKind::InKernel { .. } => {}
            NoteKind::Gap { pid, cpu, until_ns, .. } => {
                self.id(pid);
                cpu.iter_mut().for_each(|cpu| self.cpu(cpu));
                self.time(until_ns);
            }
            NoteKind::EndedUnprobed { pids, until_ns } => {
                pids.iter_mut().for_each(|pid| self.id(pid));
                self.time(until_ns);
            }
        }
    }
}

fn header(record: &mut Record) -> &mut Header {
    match record {
        Record::Switch(record) => &mut record.header,
        Record::Waking(record) => &mut record.header,
        Record::Fork(record) => &mut record.header,
        Record::Exec(record) => &mut record.header,
        Record::Exit(record) => &mut record.header,
        Record::Rename(record) => &mut record.header,
        Record::FunctionEnter(record) => &mut record.header,
        Record::FunctionExit(record) => &mut record.header,
        Record::Operation(record) => &mut record.header,
        Record::Sample(record) => &mut record.header,
        Record::Ran(record) => &mut record.header,
        Record::Burst(record) => &mut record.header,
        Record::Answer(record) => &mut record.header,
        Record::Exchange(record) => &mut record.header,
        Record::ThreadContext(record) => &mut record.header,
    }
}

/// Numbers all hosts' stacks in order of their notes, as one recording would.
pub(super) fn stacks(parts: &mut [Recording]) {
    let mut first: Vec<(u64, usize, u32)> = Vec::new();
    for (host, part) in parts.iter().enumerate() {
        first.extend(part.notes.iter().filter_map(|note| match note.kind {
            NoteKind::Stack { id, .. } => Some((note.time_ns, host, id)),
            _ => None,
        }));
    }
    first.sort_unstable();
    let mut numbers: Vec<FxHashMap<u32, u32>> = vec![FxHashMap::default(); parts.len()];
    for (number, (_, host, id)) in (1u32..).zip(first) {
        if let Some(numbers) = numbers.get_mut(host) {
            numbers.insert(id, number);
        }
    }
    for (part, numbers) in parts.iter_mut().zip(&numbers) {
        for note in &mut part.notes {
            if let NoteKind::Stack { id, .. }
            | NoteKind::Changed { stack: id, .. }
            | NoteKind::InKernel { stack: id, .. } = &mut note.kind
            {
                *id = numbers.get(id).copied().unwrap_or(0);
            }
        }
        let mut latest = 0;
        for event in &mut part.events {
            let Record::Sample(sample) = event else { continue };
            sample.stack = numbers.get(&sample.stack).copied().unwrap_or(0);
            latest = latest.max(sample.stack);
            // With the other hosts' stacks between them, a stack may be too old to be referred to.
            if latest - sample.stack >= STACKS_AT_ONCE {
                sample.stack = 0;
            }
        }
    }
}
