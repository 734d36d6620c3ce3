//! The answer to a generated recording, collected while the program is executed: each thread's states over time, and the
//! program that the recording must give.

use super::trace_emitter::kept_name;
use crate::program::{EdgeId, Function, FunctionRef, ObjectId, Operation, Program, Thread, ThreadId};
use crate::time::Ticks;

/// Name of the binary of generated functions.
pub(super) const MODULE: &str = "synthetic";

/// A thread's true state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// On a CPU.
    Running,
    /// Waiting for a CPU.
    Runnable,
    /// Asleep.
    Blocked,
    /// Exited.
    Ended,
}

/// A thread's true life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truth {
    /// Index in the executed program.
    pub thread: usize,
    /// Its id.
    pub tid: u32,
    /// Its name, cut off as by the kernel.
    pub name: String,
    /// Whether the thread existed from the start.
    pub initial: bool,
    /// The thread's states in order, each with its start.
    pub changes: Vec<(u64, Doing)>,
    /// Its CPU time.
    pub cpu_time_ns: u64,
}

/// A timeline's name for waits in an uninterruptible state that an interrupt ends.
const DEVICE: &str = "device";

#[derive(Clone, Debug, Default)]
pub(super) struct ExpectedRun {
    /// The lives of all threads, in order of birth.
    pub(super) lives: Vec<Truth>,
    /// Index in `lives` of each thread of the program.
    lived: Vec<Option<usize>>,
    scripts: Vec<Vec<Operation>>,
    edges: u32,
    functions: Vec<Function>,
    names: Vec<String>,
    /// Names of the executed program's objects.
    objects: Vec<String>,
    /// Operations that initialize the semaphores.
    pub(super) first: Vec<Operation>,
    onces: Vec<(ObjectId, Ticks)>,
    /// Whether synchronization operations are recorded.
    decided: bool,
}

impl ExpectedRun {
    pub(super) fn new(program: &Program, decided: bool) -> ExpectedRun {
        ExpectedRun {
            objects: program.objects.clone(),
            decided,
            lived: vec![None; program.threads.len()],
            scripts: vec![Vec::new(); program.threads.len()],
            functions: program
                .functions
                .iter()
                .map(|function| {
                    Function { module: Some(MODULE.to_owned()), ..function.clone() }.with_origin()
                })
                .collect(),
            names: program.threads.iter().map(|thread| kept_name(&thread.name)).collect(),
            ..ExpectedRun::default()
        }
    }

    pub(super) fn starts(&mut self, thread: usize, tid: u32, time_ns: u64, initial: bool) {
        self.lived[thread] = Some(self.lives.len());
        let changes = vec![(time_ns, Doing::Runnable)];
        let name = self.names[thread].clone();
        self.lives.push(Truth { thread, tid, name, initial, changes, cpu_time_ns: 0 });
    }

    pub(super) fn does(&mut self, thread: usize, time_ns: u64, doing: Doing) {
        if let Some(life) = self.lived[thread].and_then(|index| self.lives.get_mut(index)) {
            life.changes.push((time_ns, doing));
        }
    }

    /// Adds CPU time of a recorded operation, which is not work.
    pub(super) fn uses_cpu(&mut self, thread: usize, length_ns: u64) {
        if let Some(life) = self.lived[thread].and_then(|index| self.lives.get_mut(index)) {
            life.cpu_time_ns += length_ns;
        }
    }

    /// Adds work of CPU time that [`ExpectedRun::uses_cpu`] has counted already.
    pub(super) fn work(&mut self, thread: usize, length_ns: u64) {
        let length = Ticks::from_ns(length_ns);
        match self.scripts[thread].last_mut() {
            Some(Operation::Exec(sum)) => sum.0 += length.0,
            _ => self.scripts[thread].push(Operation::Exec(length)),
        }
    }

    /// Adds an operation that is simulated.
    pub(super) fn operation(&mut self, thread: usize, operation: Operation) {
        let passed = matches!(operation, Operation::Once(..)) && self.scripts[thread].contains(&operation);
        if !passed {
            self.scripts[thread].push(operation);
        }
    }

    /// Notes the length of the body of a `once`.
    pub(super) fn once(&mut self, object: ObjectId, length_ns: u64) {
        self.onces.push((object, Ticks::from_ns(length_ns)));
    }

    pub(super) fn computes(&mut self, thread: usize, length_ns: u64) {
        self.uses_cpu(thread, length_ns);
        self.work(thread, length_ns);
    }

    pub(super) fn call(&mut self, thread: usize, function: u32, outermost: bool) {
        if outermost {
            self.scripts[thread].push(Operation::Call(FunctionRef(function)));
        }
    }

    pub(super) fn ret(&mut self, thread: usize, outermost: bool) {
        if outermost {
            self.scripts[thread].push(Operation::Return);
        }
    }

    pub(super) fn io(&mut self, thread: usize, length_ns: u64) {
        self.scripts[thread].push(Operation::Io(ObjectId(0), Ticks::from_ns(length_ns)));
    }

    pub(super) fn sleep(&mut self, thread: usize, length_ns: u64) {
        self.scripts[thread].push(Operation::Sleep(Ticks::from_ns(length_ns)));
    }

    pub(super) fn edge(&mut self, waker: usize, wakee: usize) {
        let edge = EdgeId(self.edges);
        self.edges += 1;
        self.scripts[waker].push(Operation::Release(edge));
        self.scripts[wakee].push(Operation::Await(edge));
    }

    pub(super) fn create(&mut self, thread: usize, other: usize) {
        self.scripts[thread].push(Operation::Create(ThreadId(other as u32)));
    }

    /// A thread's operations; the first thread to exist also initializes the semaphores.
    fn script<'s>(&'s self, life: &'s Truth) -> impl Iterator<Item = &'s Operation> {
        let first =
            life.initial && self.lives.iter().find(|life| life.initial).is_some_and(|f| f.tid == life.tid);
        let first = if first { self.first.as_slice() } else { &[] };
        first.iter().chain(&self.scripts[life.thread])
    }

    /// The program that the recording must give.
    pub(super) fn program(&self) -> Program {
        let operations = || self.scripts.iter().flatten();
        let mut functions: Vec<FunctionRef> = operations()
            .filter_map(|operation| match operation {
                Operation::Call(function) => Some(*function),
                _ => None,
            })
            .collect();
        functions.sort_unstable();
        functions.dedup();
        let does_io = operations().any(|operation| matches!(operation, Operation::Io(..)));
        let renumber = |operation: &Operation| match *operation {
            Operation::Call(function) => {
                let number = functions.binary_search(&function).unwrap_or_default();
                Operation::Call(FunctionRef(number as u32))
            }
            Operation::Create(thread) => {
                let number = self.lived[thread.0 as usize].unwrap_or_default();
                Operation::Create(ThreadId(number as u32))
            }
            Operation::Join(thread) => {
                let number = self.lived[thread.0 as usize].unwrap_or_default();
                Operation::Join(ThreadId(number as u32))
            }
            // The device comes after the executed program's own objects.
            Operation::Io(_, length) if self.decided => {
                Operation::Io(ObjectId(self.objects.len() as u32), length)
            }
            Operation::Once(object, _) => {
                let length = self.onces.iter().find(|(once, _)| *once == object).map(|(_, length)| *length);
                Operation::Once(object, length.unwrap_or_default())
            }
            operation => operation,
        };
        let objects = match (self.decided, does_io) {
            (true, _) => self.objects.iter().cloned().chain([DEVICE.to_owned()]).collect(),
            (false, true) => vec![DEVICE.to_owned()],
            (false, false) => Vec::new(),
        };
        Program {
            functions: functions.iter().map(|f| self.functions[f.0 as usize].clone()).collect(),
            objects,
            threads: self
                .lives
                .iter()
                .map(|life| Thread {
                    name: format!("{}/{}", life.name, life.tid),
                    operations: self.script(life).map(renumber).collect(),
                    ..Thread::default()
                })
                .collect(),
            ..Program::default()
        }
    }
}
