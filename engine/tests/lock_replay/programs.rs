//! Random programs of threads that share all kinds of objects without deadlock. Locks are taken in one order, threads wait
//! only for earlier ones, and all reach the barrier equally often.

use engine::program::{Function, FunctionRef, ObjectId, Operation, Program, Thread, ThreadId};
use engine::synth::Numbers;
use engine::time::Ticks;

pub const NAMES: [&str; 11] =
    ["m0", "m1", "rw", "spin", "barrier", "s0", "s1", "s2", "room", "once", "empty"];
const MUTEXES: [ObjectId; 2] = [ObjectId(0), ObjectId(1)];
const READ_WRITE: ObjectId = ObjectId(2);
const SPIN: ObjectId = ObjectId(3);
const BARRIER: ObjectId = ObjectId(4);
const SIGNALS: [ObjectId; 3] = [ObjectId(5), ObjectId(6), ObjectId(7)];
const ROOM: ObjectId = ObjectId(8);
const ONCE: ObjectId = ObjectId(9);

pub struct Kinds {
    pub locks: bool,
    pub waits: bool,
}

pub fn program(seed: u64, kinds: &Kinds) -> Program {
    let mut numbers = Numbers::new(seed);
    let workers = 1 + numbers.below(4) as u32;
    let rounds = 1 + numbers.below(3);
    let mut maker = Maker { numbers, kinds };
    let mut threads = vec![Thread { name: "main".to_owned(), operations: Vec::new(), ..Thread::default() }];
    for worker in 0..workers {
        let mut operations = Vec::new();
        for round in 0..rounds {
            for _ in 0..1 + maker.numbers.below(4) {
                maker.block(&mut operations);
            }
            if kinds.waits {
                // Each worker posts to the next worker.
                if worker > 0 {
                    operations.push(Operation::SemWait(SIGNALS[worker as usize - 1]));
                    maker.block(&mut operations);
                }
                if worker + 1 < workers {
                    operations.push(Operation::SemPost(SIGNALS[worker as usize]));
                }
                maker.block(&mut operations);
                if round % 2 == 0 {
                    operations.push(Operation::Barrier(BARRIER, workers));
                }
            }
        }
        // No thread ends in the instant in which it returns from an operation.
        maker.exec(&mut operations);
        threads.push(Thread { name: format!("worker-{worker}"), operations, ..Thread::default() });
    }
    let list = &mut threads[0].operations;
    if kinds.locks {
        list.push(Operation::SemInit(ROOM, 1 + maker.numbers.below(2) as u32));
    }
    for worker in 0..workers {
        maker.exec(list);
        list.push(Operation::Create(ThreadId(worker + 1)));
    }
    maker.block(list);
    for worker in 0..workers {
        if maker.numbers.chance(3, 4) {
            list.push(Operation::Join(ThreadId(worker + 1)));
            maker.exec(list);
        }
    }
    Program {
        functions: ["f", "g"].map(|name| Function { name: name.to_owned(), ..Function::default() }).to_vec(),
        objects: NAMES.map(str::to_owned).to_vec(),
        threads,
        ..Program::default()
    }
}

struct Maker<'k> {
    numbers: Numbers,
    kinds: &'k Kinds,
}

impl Maker<'_> {
    fn exec(&mut self, list: &mut Vec<Operation>) {
        list.push(Operation::Exec(Ticks::from_ns(64 * (1 + self.numbers.below(300)))));
    }

    fn block(&mut self, list: &mut Vec<Operation>) {
        self.exec(list);
        let (kinds, below) = (self.kinds, self.numbers.below(9));
        match below {
            0 | 1 if kinds.locks => {
                let nested = self.numbers.chance(1, 3);
                let outer = if nested { MUTEXES[0] } else { MUTEXES[self.numbers.below(2) as usize] };
                list.push(Operation::Lock(outer));
                self.exec(list);
                if nested {
                    list.push(Operation::Lock(MUTEXES[1]));
                    self.exec(list);
                    list.push(Operation::Unlock(MUTEXES[1]));
                }
                self.exec(list);
                list.push(Operation::Unlock(outer));
            }
            2 if kinds.locks => {
                let reads = self.numbers.chance(1, 2);
                list.push(if reads {
                    Operation::ReadLock(READ_WRITE)
                } else {
                    Operation::WriteLock(READ_WRITE)
                });
                self.exec(list);
                list.push(Operation::ReadWriteUnlock(READ_WRITE));
            }
            3 if kinds.locks => {
                list.push(Operation::SpinLock(SPIN));
                list.push(Operation::Exec(Ticks::from_ns(64 * (1 + self.numbers.below(20)))));
                list.push(Operation::SpinUnlock(SPIN));
            }
            4 if kinds.locks => {
                list.push(Operation::SemWait(ROOM));
                self.exec(list);
                list.push(Operation::SemPost(ROOM));
            }
            5 if kinds.waits => list.push(Operation::Once(ONCE, Ticks::from_ns(64 * 200))),
            6 => list.push(Operation::Io(ObjectId(10), Ticks::from_ns(64 * (1 + self.numbers.below(50))))),
            // Shorter sleeps count as polling.
            7 => list.push(Operation::Sleep(Ticks::from_ns(64 * (1_600 + self.numbers.below(50))))),
            8 => {
                list.push(Operation::Call(FunctionRef(self.numbers.below(2) as u32)));
                self.exec(list);
                list.push(Operation::Return);
            }
            _ => {}
        }
        self.exec(list);
    }
}

/// Stages with bounded buffers between them, several threads to a stage. Each buffer is a mutex and two semaphores, for its
/// items and its room, taken right before the mutex is locked.
pub fn pipeline(seed: u64) -> Program {
    let mut numbers = Numbers::new(seed);
    let stages = 2 + numbers.below(2) as usize;
    let threads_of: Vec<u64> = (0..stages).map(|_| 1 + numbers.below(2)).collect();
    let items = 12 + 12 * numbers.below(3);
    let mut objects = Vec::new();
    let mut queues = Vec::new();
    for queue in 0..stages - 1 {
        let first = objects.len() as u32;
        queues.push((ObjectId(first), ObjectId(first + 1), ObjectId(first + 2)));
        objects.extend(["mutex", "filled", "room"].map(|name| format!("{name} {queue}")));
    }
    let mut length = |most: u64| Operation::Exec(Ticks::from_ns(64 * (1 + numbers.below(most))));
    let mut main = Vec::new();
    let mut threads = Vec::new();
    for (stage, count) in threads_of.iter().enumerate() {
        let slow = 20 * (1 + stage as u64 % 2 * 9);
        for _ in 0..*count {
            let mut operations = vec![length(50)];
            for _ in 0..items / count {
                if stage > 0 {
                    let (mutex, filled, room) = queues[stage - 1];
                    operations.extend([Operation::SemWait(filled), Operation::Lock(mutex), length(3)]);
                    operations.extend([Operation::SemPost(room), length(3), Operation::Unlock(mutex)]);
                }
                operations.push(length(slow));
                if stage + 1 < stages {
                    let (mutex, filled, room) = queues[stage];
                    operations.extend([Operation::SemWait(room), Operation::Lock(mutex), length(3)]);
                    operations.extend([Operation::SemPost(filled), length(3), Operation::Unlock(mutex)]);
                }
            }
            operations.push(length(5));
            threads.push(Thread { name: format!("stage-{stage}"), operations, ..Thread::default() });
        }
    }
    for (_, _, room) in &queues {
        main.push(Operation::SemInit(*room, 1 + (seed % 4) as u32));
    }
    for thread in 0..threads.len() as u32 {
        main.extend([length(20), Operation::Create(ThreadId(thread + 1))]);
    }
    for thread in 0..threads.len() as u32 {
        main.extend([length(20), Operation::Join(ThreadId(thread + 1))]);
    }
    main.push(length(20));
    threads.insert(0, Thread { name: "main".to_owned(), operations: main, ..Thread::default() });
    Program { objects, threads, ..Program::default() }
}
