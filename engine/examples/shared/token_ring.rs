//! A generated program for benchmarks.

use engine::program::{Function, FunctionRef, ObjectId, Operation, Program, Thread};
use engine::time::Ticks;

const FUNCTIONS: u32 = 64;
/// Operations of a round; every 64th round has one more, a barrier.
const ROUND: usize = 8;
const ROUNDS_PER_BARRIER: usize = 64;

/// Threads that compute in functions, share locks (half as many as threads), pass a token to their neighbour in every
/// round and meet at a barrier every 64 rounds. Every post comes before the wait of the same round, so no thread is
/// stuck. If `numbers_per_thread`, each thread has its own sequence of random numbers; otherwise all threads share one.
pub fn token_ring(operations: usize, threads: u32, numbers_per_thread: bool) -> Program {
    let locks = threads / 2;
    let rounds = operations / threads as usize / ROUND;
    let mut random = Random(1);
    let thread = |own| {
        if numbers_per_thread {
            random = Random(u64::from(own) + 1);
        }
        let mut operations = Vec::with_capacity(rounds * ROUND + rounds / ROUNDS_PER_BARRIER);
        for round in 0..rounds {
            let lock = ObjectId(random.below(locks));
            operations.extend([
                Operation::Call(FunctionRef(random.below(FUNCTIONS))),
                Operation::Exec(random.length(20_000)),
                Operation::Lock(lock),
                Operation::Exec(random.length(500)),
                Operation::Unlock(lock),
                Operation::Return,
                Operation::Signal(ObjectId(locks + own)),
                Operation::Wait(ObjectId(locks + (own + threads - 1) % threads)),
            ]);
            if round % ROUNDS_PER_BARRIER == ROUNDS_PER_BARRIER - 1 {
                operations.push(Operation::Barrier(ObjectId(locks + threads), threads));
            }
        }
        Thread { name: format!("T{own}"), operations, ..Thread::default() }
    };
    let names = (0..locks).map(|n| format!("m{n}")).chain((0..threads).map(|n| format!("s{n}")));
    let function = |n| Function { name: format!("f{n}"), ..Function::default() };
    Program {
        functions: (0..FUNCTIONS).map(function).collect(),
        objects: names.chain([String::from("b")]).collect(),
        threads: (0..threads).map(thread).collect(),
        ..Program::default()
    }
}

/// Linear congruential generator, of which the upper half is used: the same program in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(((self.0 >> 32) * u64::from(bound)) >> 32).unwrap_or(0)
    }

    fn length(&mut self, most_ns: u32) -> Ticks {
        Ticks::from_ns(u64::from(self.below(most_ns)) + 1)
    }
}
