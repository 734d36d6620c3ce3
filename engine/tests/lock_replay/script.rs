//! Recordings of operations only, written one after the other.

use engine::event::{Facts, GapReason, LossCounts, Note, NoteKind, Recording, WindowEnd};
use engine::program::{ObjectId, Operation, Program};
use engine::timeline::build;
use engine::translation::from_timeline;
use probe_abi::{Context, Header, Kind, Record, SyncFamily, SyncOperation as S};
use std::collections::HashMap;

pub const MUTEX: u64 = 0x40;
pub const CONDITION: u64 = 0x200;
pub const OTHER: u64 = 0x300;

/// A recording of operations one after the other, each of 2 ns.
#[derive(Default)]
pub struct Script {
    now: u64,
    records: Vec<Record>,
    notes: Vec<Note>,
    numbers: HashMap<u32, u32>,
    waiting: HashMap<u32, (u64, u64)>,
    left_out: u64,
}

impl Script {
    pub fn record(&mut self, tid: u32, operation: S, object: u64, began_ns: u64, caller: u64, outcome: i32) {
        let number = self.numbers.entry(tid).or_insert(0);
        let header = Header {
            time_ns: self.now,
            sequence: *number,
            cpu: Header::NO_CPU,
            kind: Kind::Operation as u8,
            context: Context::Task as u8,
            tid,
            pid: 7,
        };
        *number += 1;
        let second = if matches!(operation, S::ConditionWait | S::ConditionTimedWait) { MUTEX } else { 0 };
        self.records.push(Record::Operation(probe_abi::Operation {
            header,
            began_ns,
            object,
            second,
            caller,
            operation: operation as u16,
            flags: 0,
            outcome,
        }));
    }

    pub fn op(&mut self, tid: u32, operation: S, object: u64, caller: u64) -> &mut Script {
        let began_ns = self.now + 10;
        self.now += 12;
        self.record(tid, operation, object, began_ns, caller, 0);
        self
    }

    /// Adds an operation with this outcome and these flags.
    pub fn odd(&mut self, tid: u32, operation: S, object: u64, outcome: i32, flags: u16) -> &mut Script {
        self.op(tid, operation, object, 1);
        if let Some(Record::Operation(operation)) = self.records.last_mut() {
            operation.outcome = outcome;
            operation.flags = flags;
        }
        self
    }

    /// An operation that makes an object with this count.
    pub fn makes(&mut self, tid: u32, operation: S, object: u64, count: u64) -> &mut Script {
        self.op(tid, operation, object, 1);
        if let Some(Record::Operation(operation)) = self.records.last_mut() {
            operation.second = count;
        }
        self
    }

    /// An operation of the thread is lost: its sequence has a hole.
    pub fn loses(&mut self, tid: u32) -> &mut Script {
        *self.numbers.entry(tid).or_insert(0) += 1;
        self
    }

    pub fn lock(&mut self, tid: u32, place: u64) -> &mut Script {
        self.op(tid, S::MutexLock, MUTEX, place)
    }

    pub fn unlock(&mut self, tid: u32) -> &mut Script {
        self.op(tid, S::MutexUnlock, MUTEX, 99)
    }

    pub fn signal(&mut self, tid: u32) -> &mut Script {
        self.op(tid, S::ConditionSignal, CONDITION, 98)
    }

    pub fn broadcast(&mut self, tid: u32) -> &mut Script {
        self.op(tid, S::ConditionBroadcast, CONDITION, 97)
    }

    pub fn waits(&mut self, tid: u32) -> &mut Script {
        self.now += 10;
        self.waiting.insert(tid, (self.now, CONDITION));
        self
    }

    pub fn returns(&mut self, tid: u32) -> &mut Script {
        self.ends(tid, S::ConditionWait, 0)
    }

    pub fn ends(&mut self, tid: u32, operation: S, outcome: i32) -> &mut Script {
        let (began_ns, object) = self.waiting.remove(&tid).expect("it waits");
        self.now += 10;
        self.record(tid, operation, object, began_ns, 96, outcome);
        self
    }

    /// Counts this many operations of a single thread as not recorded.
    pub fn leaves_out(&mut self, operations: u64) -> &mut Script {
        self.left_out = operations;
        self
    }

    /// The probes on mutexes and condition variables are removed.
    pub fn loses_probes(&mut self) -> &mut Script {
        let reason = GapReason::OperationsOff { family: SyncFamily::Mutex as u8, tried: None };
        let kind = NoteKind::Gap { pid: 7, cpu: None, until_ns: u64::MAX, lost: 0, reason };
        self.now += 1;
        self.notes.push(Note { time_ns: self.now, kind });
        self
    }

    pub fn program(&self) -> Program {
        let mut events = self.records.clone();
        events.sort_by_key(|event| event.header().time_ns);
        let loss = LossCounts { operations_left_out: self.left_out, ..LossCounts::default() };
        let end = Some(WindowEnd { end_ns: self.now + 10, loss, ..WindowEnd::default() });
        let facts = Facts { end, ..Facts::default() };
        let recording = Recording { facts, events, notes: self.notes.clone() };
        from_timeline(&build(&recording))
    }
}

/// A thread's operations on objects, in words.
pub fn does(program: &Program, tid: u32) -> String {
    let name = |object: ObjectId| {
        let name = &program.objects[object.0 as usize];
        match name.split(' ').next() {
            Some("mutex") if name.ends_with("0x300") => "n",
            Some("mutex") => "m",
            Some("semaphore") => "s",
            _ => "c",
        }
    };
    let thread = program.threads.iter().find(|thread| thread.name.ends_with(&format!("/{tid}"))).expect("it");
    let words = thread.operations.iter().filter_map(|operation| {
        Some(match *operation {
            Operation::Lock(object) => format!("lock {}", name(object)),
            Operation::Unlock(object) => format!("unlock {}", name(object)),
            Operation::Held(object, _) => format!("held {}", name(object)),
            Operation::Freed(object, _) => format!("freed {}", name(object)),
            Operation::SemInit(object, count) => format!("init {} {count}", name(object)),
            Operation::SemWait(object) => format!("take {}", name(object)),
            Operation::SemPost(object) => format!("give {}", name(object)),
            Operation::Barrier(object, count) => format!("meet {} {count}", name(object)),
            Operation::Exec(_) | Operation::Io(..) => return None,
            other => format!("{other:?}"),
        })
    });
    words.collect::<Vec<_>>().join(", ")
}

pub fn kinds(program: &Program) -> Vec<&str> {
    program.findings.iter().map(|finding| finding.kind()).collect()
}
