//! Writes the records of a generated recording as the kernel programs and the library would: a sequence for each CPU and
//! thread, an order for each ring.

use probe_abi::{
    Call, Cause, Context, Exit, Fork, FunctionEnter, FunctionExit, Header, Kind, Operation, Record, Switch,
    SwitchFlags, SyncOperation, Waking, WakingFlags,
};

/// Time, CPU and context of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    pub(super) time_ns: u64,
    pub(super) cpu: u16,
    pub(super) context: Context,
    /// Current thread, 0 if idle.
    pub(super) tid: u32,
}

/// How and why a thread leaves its CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Left {
    pub(super) state: u32,
    pub(super) preempted: bool,
    pub(super) user_sp: u64,
    /// The system call in which the thread sleeps.
    pub(super) call: Call,
}

/// The records written so far.
#[derive(Clone, Debug)]
pub(super) struct TraceEmitter {
    pub(super) rings: Vec<Vec<Record>>,
    sequences: Vec<u32>,
    pid: u32,
    /// Number of the CPUs' rings; the threads' rings come after them.
    cpu_rings: usize,
    /// For each thread: the next number of its own sequence.
    own: Vec<u32>,
}

impl TraceEmitter {
    pub(super) fn new(
        cpus: u16,
        rings: usize,
        first_sequence: u32,
        pid: u32,
        threads: usize,
    ) -> TraceEmitter {
        let sequences = vec![first_sequence; usize::from(cpus)];
        let rings = vec![Vec::new(); rings.max(1)];
        TraceEmitter { cpu_rings: rings.len(), rings, sequences, pid, own: vec![first_sequence; threads] }
    }

    fn header(&mut self, kind: Kind, at: Stamp) -> Header {
        let sequence = self.sequences.get_mut(usize::from(at.cpu)).map_or(0, |next| {
            let sequence = *next;
            *next = next.wrapping_add(1);
            sequence
        });
        let pid = if at.tid == 0 { 0 } else { self.pid };
        Header {
            time_ns: at.time_ns,
            sequence,
            cpu: at.cpu,
            kind: kind as u8,
            context: at.context as u8,
            tid: at.tid,
            pid,
        }
    }

    fn write(&mut self, record: Record) {
        let ring = usize::from(record.header().cpu) % self.cpu_rings;
        if let Some(ring) = self.rings.get_mut(ring) {
            ring.push(record);
        }
    }

    pub(super) fn switch(&mut self, at: Stamp, next: u32, left: Left) {
        let Left { state: prev_state, preempted, user_sp, call } = left;
        let header = self.header(Kind::Switch, at);
        let flag = |set: bool, bit: u32| if set { bit } else { 0 };
        self.write(Record::Switch(Switch {
            header,
            next_tid: next,
            next_pid: if next == 0 { 0 } else { self.pid },
            prev_state,
            flags: flag(preempted, SwitchFlags::PREEMPTED)
                | flag(at.tid != 0, SwitchFlags::PREV_TRACKED)
                | flag(next != 0, SwitchFlags::NEXT_TRACKED),
            prev_user_sp: if at.tid == 0 { 0 } else { user_sp },
            prev_call: call,
        }));
    }

    pub(super) fn waking(&mut self, at: Stamp, wakee: u32, wakee_state: u32, new: bool, wakee_call: Call) {
        let header = self.header(Kind::Waking, at);
        let tracked = if at.tid == 0 { 0 } else { WakingFlags::WAKER_TRACKED };
        // The generator's only interrupts are timers, and devices without names.
        let cause = match at.context {
            Context::HardIrq if wakee_call.number == crate::event::FUTEX_CALL => Cause::Timer,
            Context::HardIrq | Context::SoftIrq => Cause::Device,
            _ => Cause::None,
        };
        self.write(Record::Waking(Waking {
            header,
            wakee_tid: wakee,
            wakee_pid: self.pid,
            flags: tracked | if new { WakingFlags::NEW } else { 0 },
            wakee_state,
            waker_call: Call::NONE.number,
            cause: cause as u32,
            wakee_call,
        }));
    }

    /// A record of the interposed library, in the thread's own ring.
    pub(super) fn operation(
        &mut self,
        time_ns: u64,
        thread: usize,
        tid: u32,
        began_ns: u64,
        finished: &Finished,
    ) {
        let Some(own) = self.own.get_mut(thread) else { return };
        let sequence = *own;
        *own = own.wrapping_add(1);
        let header = Header {
            time_ns,
            sequence,
            cpu: Header::NO_CPU,
            kind: Kind::Operation as u8,
            context: Context::Task as u8,
            tid,
            pid: self.pid,
        };
        let ring = self.cpu_rings + thread;
        if self.rings.len() <= ring {
            self.rings.resize_with(ring + 1, Vec::new);
        }
        self.rings[ring].push(Record::Operation(Operation {
            header,
            began_ns,
            object: finished.object,
            second: finished.second,
            caller: finished.caller,
            operation: finished.operation as u16,
            flags: finished.flags,
            outcome: finished.outcome,
        }));
    }

    pub(super) fn fork(&mut self, at: Stamp, child: u32, name: &str) {
        let header = self.header(Kind::Fork, at);
        let (child_pid, child_start_ns) = (self.pid, at.time_ns);
        self.write(Record::Fork(Fork {
            header,
            child_tid: child,
            child_pid,
            child_start_ns,
            comm: comm(name),
        }));
    }

    pub(super) fn exit(&mut self, at: Stamp, last: bool) {
        let header = self.header(Kind::Exit, at);
        self.write(Record::Exit(Exit { header, last_of_process: u32::from(last), placement: 0 }));
    }

    pub(super) fn function_enter(&mut self, at: Stamp, function: u32, stack_pointer: u64) {
        let header = self.header(Kind::FunctionEnter, at);
        self.write(Record::FunctionEnter(FunctionEnter { header, function, silent: 0, stack_pointer }));
    }

    pub(super) fn function_exit(&mut self, at: Stamp, function: u32, stack_pointer: u64) {
        let header = self.header(Kind::FunctionExit, at);
        self.write(Record::FunctionExit(FunctionExit { header, function, silent: 0, stack_pointer }));
    }
}

/// A name in the kernel's form: at most 15 bytes, padded with NUL.
pub(crate) fn comm(name: &str) -> [u8; 16] {
    let mut comm = [0; 16];
    for (to, from) in comm.iter_mut().take(15).zip(name.bytes()) {
        *to = from;
    }
    comm
}

/// The part of a name that the kernel's 15 bytes keep.
pub(super) fn kept_name(name: &str) -> String {
    String::from_utf8_lossy(comm(name).split(|&byte| byte == 0).next().unwrap_or_default()).into_owned()
}

/// The recorded facts of an operation.
pub(super) struct Finished {
    pub(super) operation: SyncOperation,
    pub(super) object: u64,
    pub(super) second: u64,
    pub(super) caller: u64,
    pub(super) flags: u16,
    pub(super) outcome: i32,
}

impl Finished {
    pub(super) fn of(operation: SyncOperation, object: u64) -> Finished {
        Finished { operation, object, second: 0, caller: 0, flags: 0, outcome: 0 }
    }
}
