//! Times the extended critical path of a generated program; `./x bench weights` calls it in a release build.
//! usage: weights_bench (sweep | warm | oracle) OPERATIONS TIMES; prints one line of JSON, the mean of TIMES
//! runs. `warm` is the sweep after one that is not timed, so that the allocator already has the memory.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::Instant;

use engine::critical_path::{CriticalPath, oracle};
use engine::program::{Function, FunctionRef, ObjectId, Operation, Program, Thread};
use engine::report::Cpus;
use engine::time::Ticks;

const THREADS: u32 = 32;
const LOCKS: u32 = 16;
const FUNCTIONS: u32 = 64;
const CPUS: [u32; 8] = [1, 2, 3, 4, 8, 16, 24, 32];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (way, operations, times) = match arguments.as_slice() {
        [way, operations, times] => {
            (way.as_str(), operations.parse().unwrap_or(0), times.parse().unwrap_or(0_u32))
        }
        _ => ("", 0, 0),
    };
    let work: fn(&Program, &[Cpus]) -> Result<(), String> = match way {
        "sweep" | "warm" if operations > 0 && times > 0 => sweep,
        "oracle" if operations > 0 && times > 0 => brute_force,
        _ => {
            eprintln!("usage: weights_bench (sweep | warm | oracle) OPERATIONS TIMES");
            return ExitCode::from(2);
        }
    };
    let program = generate(operations);
    let count: usize = program.threads.iter().map(|thread| thread.operations.len()).sum();
    let cpus: Vec<Cpus> = CPUS.into_iter().filter_map(NonZeroU32::new).map(Cpus::Count).collect();
    if way == "warm"
        && let Err(error) = work(&program, &cpus)
    {
        eprintln!("weights_bench: {error}");
        return ExitCode::FAILURE;
    }
    let (start, start_cpu) = (Instant::now(), processor_ns());
    for _ in 0..times {
        if let Err(error) = work(&program, &cpus) {
            eprintln!("weights_bench: {error}");
            return ExitCode::FAILURE;
        }
    }
    let wall = start.elapsed().as_nanos() / u128::from(times);
    let cpu = processor_ns().saturating_sub(start_cpu) / u64::from(times);
    println!("{{\"operations\":{count},\"wall_ns\":{wall},\"cpu_ns\":{cpu}}}");
    ExitCode::SUCCESS
}

fn sweep(program: &Program, cpus: &[Cpus]) -> Result<(), String> {
    let path = CriticalPath::of(program).map_err(|error| error.to_string())?;
    if let Some(finding) = path.findings().first() {
        return Err(format!("{finding:?}"));
    }
    for weights in path.weights(cpus) {
        for segment in path.segments() {
            for place in 0..weights.cpus().len() {
                black_box(weights.scaled(segment.point, place));
            }
        }
    }
    Ok(())
}

fn brute_force(program: &Program, cpus: &[Cpus]) -> Result<(), String> {
    for count in cpus {
        black_box(oracle::weights(program, *count).map_err(|error| error.to_string())?);
    }
    Ok(())
}

/// Threads that compute in functions, share locks, pass a token to their neighbour in every round and meet at a
/// barrier every 64 rounds. Every post comes before the wait of the same round, so nothing can stick.
fn generate(operations: usize) -> Program {
    let mut random = Random(1);
    let barrier = ObjectId(LOCKS + THREADS);
    let names = (0..LOCKS).map(|n| format!("m{n}")).chain((0..THREADS).map(|n| format!("s{n}")));
    let rounds = operations / THREADS as usize / 8;
    let threads = (0..THREADS).map(|own| {
        let mut steps = Vec::with_capacity(rounds * 8 + rounds / 64);
        for round in 0..rounds {
            let lock = ObjectId(random.below(LOCKS));
            steps.extend([
                Operation::Call(FunctionRef(random.below(FUNCTIONS))),
                Operation::Exec(random.length(20_000)),
                Operation::Lock(lock),
                Operation::Exec(random.length(500)),
                Operation::Unlock(lock),
                Operation::Return,
                Operation::Signal(ObjectId(LOCKS + own)),
                Operation::Wait(ObjectId(LOCKS + (own + THREADS - 1) % THREADS)),
            ]);
            if round % 64 == 63 {
                steps.push(Operation::Barrier(barrier, THREADS));
            }
        }
        Thread { name: format!("T{own}"), operations: steps, ..Thread::default() }
    });
    let threads: Vec<Thread> = threads.collect();
    Program {
        functions: (0..FUNCTIONS)
            .map(|n| Function { name: format!("f{n}"), ..Function::default() })
            .collect(),
        objects: names.chain([String::from("b")]).collect(),
        threads,
        ..Program::default()
    }
}

/// Linear congruential, the upper half used: the same program in every run.
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

/// Processor time of this thread so far: on a shared machine the wall clock says little.
fn processor_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}
