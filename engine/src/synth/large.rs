//! A large program for benchmarks.

use crate::numbers::Numbers;
use crate::program::{Function, FunctionRef, ObjectId, Operation, Program, Thread};
use crate::time::Ticks;

const FUNCTIONS: u32 = 64;
/// Rounds between two signals to the next thread, and between two barriers.
const ROUNDS_PER_HAND_ON: usize = 8;
const ROUNDS_PER_BARRIER: usize = 64;

/// A program with exactly this number of operations on this number of threads (at least one), deadlock-free by
/// construction. It has nested calls, computing under shared locks, a ring of semaphores through all threads, and
/// occasional barriers. About half of the operations compute.
pub fn large_program(operations: usize, threads: usize, seed: u64) -> Program {
    let threads = threads.max(1);
    let locks = threads.div_ceil(2);
    let mut objects: Vec<String> = (0..locks).map(|lock| format!("lock{lock}")).collect();
    objects.extend((0..threads).map(|ring| format!("ring{ring}")));
    objects.push("barrier".to_owned());
    let function = |number| Function { name: format!("function{number}"), ..Function::default() };

    let mut numbers = Numbers::new(seed);
    let shortest = operations / threads;
    let longer = operations % threads;
    let built = (0..threads).map(|thread| {
        let length = shortest + usize::from(thread < longer);
        let mut steps = Steps { list: Vec::with_capacity(length), numbers: &mut numbers, locks };
        let mut round = 0;
        // Every thread has as many rounds as the shortest one, so that every wait has its signal. A round has the same
        // number of operations in every thread.
        while steps.list.len() + Steps::MOST_IN_A_ROUND <= shortest {
            steps.round(round, thread, threads);
            round += 1;
        }
        while steps.list.len() < length {
            steps.exec();
        }
        Thread { name: format!("T{thread}"), operations: steps.list, ..Thread::default() }
    });
    let threads = built.collect();
    Program { functions: (0..FUNCTIONS).map(function).collect(), objects, threads, ..Program::default() }
}

struct Steps<'n> {
    list: Vec<Operation>,
    numbers: &'n mut Numbers,
    locks: usize,
}

impl Steps<'_> {
    const MOST_IN_A_ROUND: usize = 17;

    fn round(&mut self, round: usize, thread: usize, threads: usize) {
        let lock = ObjectId(self.numbers.below(self.locks as u64) as u32);
        self.call();
        self.exec();
        self.call();
        self.exec();
        self.exec_in();
        self.list.push(Operation::Return);
        self.list.push(Operation::Lock(lock));
        self.exec_in();
        self.list.push(Operation::Unlock(lock));
        self.exec();
        self.list.push(Operation::Return);
        self.exec_in();
        self.exec();
        if round % ROUNDS_PER_HAND_ON == ROUNDS_PER_HAND_ON - 1 {
            let ring = |place: usize| ObjectId((self.locks + place % threads) as u32);
            let (to, from) = (ring(thread + 1), ring(thread));
            self.list.push(Operation::Signal(to));
            self.exec();
            self.list.push(Operation::Wait(from));
        }
        if round % ROUNDS_PER_BARRIER == ROUNDS_PER_BARRIER - 1 {
            let barrier = ObjectId((self.locks + threads) as u32);
            self.list.push(Operation::Barrier(barrier, threads as u32));
        }
    }

    fn function(&mut self) -> FunctionRef {
        FunctionRef(self.numbers.below(u64::from(FUNCTIONS)) as u32)
    }

    /// A random length from 1 ns to about 1 µs, in integer nanoseconds.
    fn length(&mut self) -> Ticks {
        Ticks::from_ns(1 + self.numbers.below(1000))
    }

    fn call(&mut self) {
        let function = self.function();
        self.list.push(Operation::Call(function));
    }

    fn exec(&mut self) {
        let length = self.length();
        self.list.push(Operation::Exec(length));
    }

    fn exec_in(&mut self) {
        let (function, length) = (self.function(), self.length());
        self.list.push(Operation::ExecIn(function, length));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpus::Cpus;
    use crate::critical_path::CriticalPath;

    #[test]
    fn a_large_generated_program_has_the_size_asked_for_and_runs_to_its_end() {
        for (operations, threads) in [(0, 1), (1, 0), (100, 7), (20_011, 32)] {
            let program = large_program(operations, threads, 1);
            let count: usize = program.threads.iter().map(|thread| thread.operations.len()).sum();
            assert_eq!((count, program.threads.len()), (operations, threads.max(1)));
            let path = CriticalPath::of(&program).expect("a program");
            assert_eq!(path.findings(), []);
            let work: u64 = program
                .threads
                .iter()
                .flat_map(|thread| &thread.operations)
                .filter_map(|operation| operation.length().map(|length| length.0))
                .sum();
            assert_eq!(path.time(Cpus::ONE).value, i128::from(work), "one CPU is never idle in it");
        }
    }
}
