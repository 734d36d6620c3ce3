//! Small programs with every kind of operation, for tests against the oracle. They may deadlock, which must be handled, too.

use crate::numbers::Numbers;
use crate::program::{EdgeId, Function, FunctionRef, ObjectId, Operation, Program, Thread, ThreadId};
use crate::time::Ticks;

/// Lengths of the timed steps of a random program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// Up to 10⁹ ns: two sums are hardly ever equal in a small program.
    Spread,
    /// 1 to 3 ns: ties everywhere.
    Tied,
}

const FUNCTIONS: u64 = 4;
const SEMAPHORES: u64 = 3;
const MUTEXES: u64 = 2;
/// Numbers of objects: semaphores, then mutexes, then one object of each other kind.
const READ_WRITE: u32 = 5;
const SPIN: u32 = 6;
const CONDITION: u32 = 7;
const ONCE: u32 = 8;
const DEVICE: u32 = 9;
const BARRIER: u32 = 10;
const OBJECTS: [&str; 11] =
    ["s0", "s1", "s2", "m0", "m1", "rw", "spin", "condition", "once", "disk", "barrier"];

/// A program of 1 to 5 threads.
pub fn random_program(seed: u64, lengths: Lengths) -> Program {
    let mut numbers = Numbers::new(seed);
    let count = 1 + numbers.below(5) as usize;
    let mut maker = Maker { numbers, lengths, edges: 0, awaited: Vec::new() };
    let mut threads: Vec<Thread> = (0..count)
        .map(|thread| {
            let mut list = Vec::new();
            let blocks = 1 + maker.numbers.below(5);
            for _ in 0..blocks {
                maker.block(&mut list, 2);
            }
            Thread { name: format!("T{}", thread + 1), operations: list, ..Thread::default() }
        })
        .collect();
    maker.meet(&mut threads);
    maker.create(&mut threads);
    maker.answer_waits(&mut threads);
    Program {
        functions: (0..FUNCTIONS)
            .map(|number| Function { name: format!("f{number}"), ..Function::default() })
            .collect(),
        objects: OBJECTS.map(str::to_owned).to_vec(),
        threads,
        ..Program::default()
    }
}

struct Maker {
    numbers: Numbers,
    lengths: Lengths,
    edges: u32,
    awaited: Vec<EdgeId>,
}

impl Maker {
    fn length(&mut self) -> Ticks {
        Ticks::from_ns(match self.lengths {
            Lengths::Spread => 1 + self.numbers.below(1_000_000_000),
            Lengths::Tied => 1 + self.numbers.below(3),
        })
    }

    fn function(&mut self) -> FunctionRef {
        FunctionRef(self.numbers.below(FUNCTIONS) as u32)
    }

    fn semaphore(&mut self) -> ObjectId {
        ObjectId(self.numbers.below(SEMAPHORES) as u32)
    }

    fn mutex(&mut self) -> ObjectId {
        ObjectId((SEMAPHORES + self.numbers.below(MUTEXES)) as u32)
    }

    fn exec(&mut self, list: &mut Vec<Operation>) {
        let length = self.length();
        list.push(if self.numbers.chance(1, 2) {
            Operation::Exec(length)
        } else {
            Operation::ExecIn(self.function(), length)
        });
    }

    /// Appends one block: either a step, or a step around another block.
    fn block(&mut self, list: &mut Vec<Operation>, depth: u32) {
        match self.numbers.below(if depth == 0 { 10 } else { 18 }) {
            0..=3 => self.exec(list),
            4 => list.push(Operation::Signal(self.semaphore())),
            5 => list.push(Operation::Wait(self.semaphore())),
            6 => list.push(Operation::Once(ObjectId(ONCE), self.length())),
            7 => list.push(Operation::Io(ObjectId(DEVICE), self.length())),
            8 => {
                let length = self.length();
                let repeats = self.numbers.chance(1, 2);
                list.push(if repeats { Operation::SleepNext(length) } else { Operation::Sleep(length) });
            }
            9 => {
                let edge = EdgeId(self.edges);
                self.edges += 1;
                self.awaited.push(edge);
                list.push(Operation::Await(edge));
            }
            10 | 11 => {
                list.push(Operation::Call(self.function()));
                self.inside(list, depth);
                list.push(Operation::Return);
            }
            12 | 13 => {
                let mutex = self.mutex();
                list.push(Operation::Lock(mutex));
                self.inside(list, depth);
                if self.numbers.chance(1, 4) {
                    list.push(Operation::CondWait(ObjectId(CONDITION), mutex));
                }
                list.push(Operation::Unlock(mutex));
            }
            14 => {
                list.push(Operation::SpinLock(ObjectId(SPIN)));
                self.inside(list, 0);
                list.push(Operation::SpinUnlock(ObjectId(SPIN)));
            }
            15 | 16 => {
                let lock = ObjectId(READ_WRITE);
                let reads = self.numbers.chance(1, 2);
                list.push(if reads { Operation::ReadLock(lock) } else { Operation::WriteLock(lock) });
                self.inside(list, 0);
                list.push(Operation::ReadWriteUnlock(lock));
            }
            _ => {
                let condition = ObjectId(CONDITION);
                self.exec(list);
                list.push(if self.numbers.chance(1, 2) {
                    Operation::CondSignal(condition)
                } else {
                    Operation::CondBroadcast(condition)
                });
            }
        }
    }

    fn inside(&mut self, list: &mut Vec<Operation>, depth: u32) {
        self.exec(list);
        if self.numbers.chance(1, 2) {
            self.block(list, depth.saturating_sub(1));
        }
    }

    /// In half of all programs, all threads meet at a barrier.
    fn meet(&mut self, threads: &mut [Thread]) {
        let count = threads.len() as u32;
        if self.numbers.chance(1, 2) {
            for thread in threads {
                let place = self.place(&thread.operations);
                thread.operations.insert(place, Operation::Barrier(ObjectId(BARRIER), count));
            }
        }
    }

    /// In half of all programs, the first thread creates the last one, and may join it.
    fn create(&mut self, threads: &mut [Thread]) {
        let last = threads.len() - 1;
        if last == 0 || self.numbers.chance(1, 2) {
            return;
        }
        let place = self.place(&threads[0].operations);
        if self.numbers.chance(1, 2) {
            threads[0].operations.push(Operation::Join(ThreadId(last as u32)));
        }
        threads[0].operations.insert(place, Operation::Create(ThreadId(last as u32)));
    }

    /// Inserts releases for most awaits and posts for most semaphore waits at random places.
    fn answer_waits(&mut self, threads: &mut [Thread]) {
        let mut answers: Vec<Operation> = self.awaited.iter().map(|edge| Operation::Release(*edge)).collect();
        for thread in threads.iter() {
            answers.extend(thread.operations.iter().filter_map(|operation| match operation {
                Operation::Wait(semaphore) => Some(Operation::SemPost(*semaphore)),
                _ => None,
            }));
        }
        for answer in answers {
            if self.numbers.chance(9, 10) {
                let thread = self.numbers.below(threads.len() as u64) as usize;
                let place = self.numbers.below(threads[thread].operations.len() as u64 + 1) as usize;
                threads[thread].operations.insert(place, answer);
            }
        }
        if self.numbers.chance(1, 3) {
            let count = self.numbers.below(3) as u32;
            threads[0].operations.insert(0, Operation::SemInit(self.semaphore(), count));
        }
    }

    /// A random place in the list.
    fn place(&mut self, list: &[Operation]) -> usize {
        self.numbers.below(list.len() as u64 + 1) as usize
    }
}
