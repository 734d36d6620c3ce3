//! Names of operations and parts of a program in results.

use super::activity::{Activity, ActivityGraph, ActivityKind};
use super::subjects::{Class, Subject};
use crate::program::{FunctionRef, ObjectId, Operation, Program, ThreadId};

/// The kind of a part of a program: `function`, `thread`, `lock`, `class`, `process` or `cpu`.
pub(super) fn kind(subject: Subject) -> &'static str {
    match subject {
        Subject::Function(_) => "function",
        Subject::Thread(_) => "thread",
        Subject::Lock(_) => "lock",
        Subject::Class(_) => "class",
        Subject::Process(_) => "process",
        Subject::Cpu(_) => "cpu",
    }
}

/// The name of a part; for a class `compute`, `io` or `wait`, for a CPU its number.
pub(super) fn name(program: &Program, subject: Subject) -> String {
    match subject {
        Subject::Function(function) => function_name(program, function),
        Subject::Thread(thread) => thread_name(program, thread),
        Subject::Lock(lock) => object_name(program, lock),
        Subject::Class(Class::Compute) => "compute".to_owned(),
        Subject::Class(Class::Io) => "io".to_owned(),
        Subject::Class(Class::Wait) => "wait".to_owned(),
        Subject::Process(first) => {
            let thread = program.threads.get(first.0 as usize);
            thread.and_then(|thread| thread.process.clone()).unwrap_or_default()
        }
        Subject::Cpu(cpu) => cpu.to_string(),
    }
}

pub(super) fn function_name(program: &Program, function: FunctionRef) -> String {
    program.functions.get(function.0 as usize).map(|function| function.name.clone()).unwrap_or_default()
}

pub(super) fn thread_name(program: &Program, thread: ThreadId) -> String {
    program.threads.get(thread.0 as usize).map(|thread| thread.name.clone()).unwrap_or_default()
}

pub(super) fn object_name(program: &Program, object: ObjectId) -> String {
    program.objects.get(object.0 as usize).cloned().unwrap_or_default()
}

pub(super) fn operation(program: &Program, activity: &Activity) -> Option<Operation> {
    let thread = program.threads.get(activity.thread.0 as usize)?;
    thread.operations.get(activity.operation as usize).copied()
}

/// The device that an edge waits for.
pub(super) fn device(program: &Program, activity: &Activity) -> Option<String> {
    match operation(program, activity) {
        Some(Operation::Io(device, _)) => Some(object_name(program, device)),
        _ => None,
    }
}

/// How a path reaches a thread, such as `lock m` or `end of T2`. `edge` enters the thread's vertex.
pub(super) fn by(program: &Program, graph: &ActivityGraph, edge: &Activity) -> String {
    let object = |what: &str, object: ObjectId| format!("{what} {}", object_name(program, object));
    match edge.kind {
        ActivityKind::Start if edge.tail.0 == 0 => return "start".to_owned(),
        ActivityKind::Start => return "create".to_owned(),
        ActivityKind::Sleep => return "timer".to_owned(),
        _ => {}
    }
    match operation(program, edge) {
        Some(Operation::Lock(lock) | Operation::SpinLock(lock)) => object("lock", lock),
        Some(Operation::ReadLock(lock)) => object("read lock", lock),
        Some(Operation::WriteLock(lock)) => object("write lock", lock),
        Some(Operation::Wait(semaphore)) => object("signal", semaphore),
        Some(Operation::SemWait(semaphore)) => object("semaphore", semaphore),
        Some(Operation::Barrier(barrier, _)) => object("barrier", barrier),
        Some(Operation::Once(once, _)) => object("once", once),
        Some(Operation::Join(other)) => format!("end of {}", thread_name(program, other)),
        Some(Operation::Await(wake)) => format!("wake-up {}", program.edge_name(wake)),
        Some(Operation::CondWait(condition, mutex)) => {
            // Either the signal came last, or another thread's unlock of the mutex.
            let waker = graph.into_vertex(edge.tail).next();
            match waker.and_then(|waker| operation(program, &waker)) {
                Some(Operation::CondSignal(_) | Operation::CondBroadcast(_)) => {
                    object("condition", condition)
                }
                _ => object("lock", mutex),
            }
        }
        _ => "wake-up".to_owned(),
    }
}
